//! Builds the result of a tool call: content within the limit, overflow in files, warnings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{CallMetadata, CallResult, Content, ErrorKind, ResultInfo, ServerId, Tool, ToolResult};
use mcp_host_registry::{Problem, ProblemKind};
use mcp_host_transport::RequestId;

use crate::calls::raw_result::RequestFailure;
use crate::calls::result_limit::{Overflow, limit_result};
use crate::calls::spill::{SpillError, SpillPart, SpillStore};
use crate::calls::supervisor_handle::SupervisorHandle;
use crate::error::HostError;
use crate::error::excerpt::excerpt;
use crate::telemetry::spans::CallGuard;

/// A finished call.
pub(super) struct FinishedCall<T> {
    /// The called tool, if it was found.
    pub(super) target: Option<CallTarget>,
    pub(super) duration: Duration,
    pub(super) outcome: Result<CallSuccess<T>, RequestFailure>,
}

/// A called tool.
pub(super) struct CallTarget {
    pub(super) server: ServerId,
    pub(super) tool: Arc<Tool>,
    /// The maximum size of a result, in bytes.
    pub(super) result_bytes: usize,
}

/// A successful call.
pub(super) struct CallSuccess<T> {
    pub(super) request_id: Option<RequestId>,
    pub(super) value: T,
    /// The kind of the result.
    pub(super) info: ResultInfo,
    /// Deviations of the result from the tool's output schema.
    pub(super) warnings: Vec<String>,
}

/// Builds results. Writes what exceeds their limit to files.
pub(super) struct ResultBuilder<'a> {
    pub(super) spills: &'a SpillStore,
    pub(super) supervisor: &'a SupervisorHandle,
    pub(super) guard: &'a CallGuard<'a>,
}

impl ResultBuilder<'_> {
    /// Builds the result of a finished call of the tool called `name`.
    pub(super) async fn build(&self, name: &str, call: FinishedCall<ToolResult>) -> CallResult {
        let FinishedCall { target, duration, outcome } = call;
        let tool = target.as_ref().map_or(name, |it| &it.tool.name);
        let mut metadata = CallMetadata::new(tool.to_owned());
        metadata.duration = duration;
        let budget = target.as_ref().map_or(usize::MAX, |it| it.result_bytes);
        metadata.server = target.map(|it| it.server);
        let done = match outcome {
            Ok(done) => done,
            Err(error) => {
                return CallResult::failure(error.error.into_call_failure(), metadata);
            }
        };
        metadata.request_id = done.request_id;
        metadata.warnings = done.warnings;
        let ToolResult { content, structured, is_error, .. } = done.value;
        let rest = if self.spills.is_on() { Overflow::Spill } else { Overflow::Drop };
        let mut limited = limit_result(content, structured, budget, rest);
        self.guard.record_bytes(limited.bytes);
        let files = match limited.is_cut {
            // Boxed, because it is rare and would enlarge the future of every call.
            true => Box::pin(self.spill(metadata.server.as_ref(), limited.take_overflow())).await,
            false => Vec::new(),
        };
        let (content, structured) = limited.finish(files);
        metadata.structured_content = structured;
        if !is_error {
            return CallResult::success(content, metadata);
        }
        let error = HostError::new(ErrorKind::Tool, tool_error_message(&content)).into_call_failure();
        let mut failed = CallResult::failure(error, metadata);
        failed.content = content;
        failed
    }

    /// Writes parts to files. A part that could not be written has no path.
    async fn spill(&self, server: Option<&ServerId>, parts: Vec<SpillPart>) -> Vec<Option<PathBuf>> {
        let mut files = Vec::new();
        if !parts.is_empty() {
            files =
                self.report_spill(self.spills.write(parts).await.unwrap_or_else(|error| vec![Err(error)]));
        }
        let spilled = files.iter().flatten().count();
        self.supervisor.shared.metrics.record_cut(server.map(ServerId::as_str), spilled);
        files
    }

    fn report_spill(&self, written: Vec<Result<PathBuf, SpillError>>) -> Vec<Option<PathBuf>> {
        let mut problem = None;
        let has_problem = self.supervisor.has_problem(|it| it.kind == ProblemKind::SpillFailed);
        let mut any = false;
        let files = written.into_iter().map(|it| match it {
            Ok(path) => {
                any = true;
                Some(path)
            }
            Err(error) => {
                tracing::warn!(%error, "a large result is cut");
                // Only these errors are problems of the folder; a part that is too large is not.
                if matches!(error, SpillError::Io { .. } | SpillError::Slow { .. } | SpillError::Failed) {
                    problem = Some(Problem::spill_failed(&error.to_string()));
                }
                None
            }
        });
        let files = files.collect();
        if problem.is_some() || any && has_problem {
            self.supervisor.report_spill(problem);
        }
        files
    }
}

/// The error message of a failed tool. Its content is passed on in full.
fn tool_error_message(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::text).collect();
    let res = texts.join("\n");
    if res.trim().is_empty() {
        return "the tool failed without an error message".to_owned();
    }
    excerpt(res)
}

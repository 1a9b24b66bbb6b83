//! The result of a tool call: content within the limit, overflow in files, and warnings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{CallMetadata, CallResult, Content, ErrorKind, ResultInfo, ServerId, Tool, ToolResult};
use mcp_host_registry::{Problem, ProblemKind};
use mcp_host_transport::RequestId;

use crate::calls::policy::CallRuling;
use crate::calls::raw_result::RequestFailure;
use crate::calls::result_limit::{OverflowHandling, limit_result};
use crate::calls::spill::{SpillError, SpillPart, SpillStore};
use crate::calls::supervisor_handle::SupervisorHandle;
use crate::error::HostError;
use crate::error::excerpt::excerpt;
use crate::telemetry::spans::CallGuard;

/// A finished call. `T` is the type of its result.
pub(super) struct FinishedCall<T> {
    /// The called tool, if it was found.
    pub(super) target: Option<CallTarget>,
    /// The rule that decided, if one did.
    pub(super) ruling: Option<CallRuling>,
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
    /// The result.
    pub(super) value: T,
    /// The kind of the result.
    pub(super) info: ResultInfo,
    /// Violations of the tool's output schema by the result.
    pub(super) warnings: Vec<String>,
}

/// Builds the results of calls. Writes the parts above the limit to files.
pub(super) struct ResultBuilder<'a> {
    pub(super) spills: &'a SpillStore,
    pub(super) supervisor: &'a SupervisorHandle,
    pub(super) guard: &'a CallGuard<'a>,
}

impl ResultBuilder<'_> {
    /// Builds the result of a finished call of the tool called `name`.
    pub(super) async fn build(&self, name: &str, call: FinishedCall<ToolResult>) -> CallResult {
        let FinishedCall { target, ruling: _, duration, outcome } = call;
        let tool = target.as_ref().map_or(name, |it| &it.tool.name);
        let mut metadata = CallMetadata::new(tool.to_owned());
        metadata.duration = duration;
        let budget = target.as_ref().map_or(usize::MAX, |it| it.result_bytes);
        metadata.server = target.map(|it| it.server);
        let CallSuccess { request_id, value, info: _, warnings } = match outcome {
            Ok(success) => success,
            Err(error) => {
                return CallResult::failure(error.error.into_call_failure(), metadata);
            }
        };
        metadata.request_id = request_id;
        metadata.warnings = warnings;
        let ToolResult { content, structured, is_error, .. } = value;
        let overflow =
            if self.spills.is_enabled() { OverflowHandling::Spill } else { OverflowHandling::Drop };
        let mut limited = limit_result(content, structured, budget, overflow);
        self.guard.record_bytes(limited.bytes);
        let files = match limited.is_cut {
            // Boxed, because it is rare and would enlarge the future of every call.
            true => Box::pin(self.spill(metadata.server.as_ref(), limited.take_overflow())).await,
            false => Vec::new(),
        };
        metadata.full_bytes = limited.is_cut.then_some(limited.bytes);
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

    /// Writes parts to files and counts the cut result. Returns a path for each part that was written.
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

    /// Publishes a problem if a write failed, or withdraws it after a success. Returns the path of each written part.
    fn report_spill(&self, written: Vec<Result<PathBuf, SpillError>>) -> Vec<Option<PathBuf>> {
        let mut problem = None;
        let mut files = Vec::with_capacity(written.len());
        for outcome in written {
            if let Err(error) = &outcome {
                tracing::warn!(%error, "a large result is cut");
                // Only these errors are problems of the folder; a part that is too large is not.
                if matches!(error, SpillError::Io { .. } | SpillError::Slow { .. } | SpillError::Failed) {
                    problem = Some(Problem::spill_failed(&error.to_string()));
                }
            }
            files.push(outcome.ok());
        }
        let has_problem = || self.supervisor.has_problem(|it| it.kind == ProblemKind::SpillFailed);
        if problem.is_some() || files.iter().any(Option::is_some) && has_problem() {
            self.supervisor.report_spill(problem);
        }
        files
    }
}

/// Returns the error message of a failed tool: an excerpt of its content, which the result has in full.
fn tool_error_message(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::text).collect();
    let message = texts.join("\n");
    if message.trim().is_empty() {
        return "the tool failed without an error message".to_owned();
    }
    excerpt(message)
}

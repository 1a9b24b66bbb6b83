//! Builds the result of a tool call: content within the limit, overflow in files, warnings.

use std::path::PathBuf;

use mcp_host_model::{CallMetadata, CallResult, Content, ErrorKind, ServerId, Tool, ToolResult};
use mcp_host_registry::{Problem, ProblemKind, ValidationOutcome};

use super::result_limit::{Overflow, limit_result};
use super::{CallOutcome, CallRouter, ToolCall};
use crate::calls::spill::{SpillError, SpillPart};
use crate::error::HostError;
use crate::error::excerpt::excerpt;
use crate::supervisor::machine::MachineEvent;
use crate::supervisor::task::Command;
use crate::supervisor::tool_problem::ToolProblem;
use crate::telemetry::spans::CallGuard;

impl CallRouter {
    /// Builds the result of a finished call.
    pub(super) async fn result(
        &self,
        call: &ToolCall,
        outcome: CallOutcome<ToolResult>,
        guard: &CallGuard<'_>,
    ) -> CallResult {
        let CallOutcome { tool, budget, duration, outcome } = outcome;
        let (server, tool) = match tool {
            Some((server, tool)) => (Some(server), tool),
            None => (None, call.name.clone()),
        };
        let mut metadata = CallMetadata::new(tool);
        metadata.server = server;
        metadata.duration = duration;
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
        guard.record_bytes(limited.bytes);
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
        self.shared.metrics.record_cut(server.map(ServerId::as_str), spilled);
        files
    }

    fn report_spill(&self, written: Vec<Result<PathBuf, SpillError>>) -> Vec<Option<PathBuf>> {
        let mut problem = None;
        let has_problem = self.is_problem(|it| it.kind == ProblemKind::SpillFailed);
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
            // If the queue is full, a later call reports it.
            let _ = self.commands.try_send(Command::event(MachineEvent::SpillResult(problem)));
        }
        files
    }

    /// Checks the result against the tool's output schema and returns warnings. The result is passed on in any case.
    pub(super) fn check_output(&self, server: &ServerId, tool: &Tool, value: &ToolResult) -> Vec<String> {
        let Some(schema) = tool.output_schema.as_ref().filter(|_| !value.is_error) else { return Vec::new() };
        match self.validators.check_result(schema, value.structured.as_ref()) {
            Ok(ValidationOutcome::Valid) => {
                let is_its = |it: &Problem| {
                    it.kind == ProblemKind::ResultInvalid
                        && it.server.as_ref() == Some(server)
                        && it.tool.as_deref() == Some(&*tool.name)
                };
                if self.is_problem(is_its) {
                    self.report_tool_problem(server, tool, ToolProblem::ResultInvalid, None);
                }
                Vec::new()
            }
            Ok(ValidationOutcome::Unvalidated(reason)) => {
                tracing::debug!(reason, "the structured content is passed on unchecked");
                self.report_tool_problem(server, tool, ToolProblem::ResultsUnchecked, Some(excerpt(reason)));
                Vec::new()
            }
            Err(invalid) => {
                let reason = excerpt(invalid.to_string().replace('\n', "; "));
                let warning =
                    format!("the structured content does not fit the tool's output schema: {reason}");
                self.report_tool_problem(server, tool, ToolProblem::ResultInvalid, Some(reason));
                vec![warning]
            }
        }
    }

    fn is_problem(&self, which: impl Fn(&Problem) -> bool) -> bool {
        self.latest().snapshot.problems.iter().any(|it| which(&it.problem))
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

//! What a call's caller gets: its content within the budget, the rest in files where there is room, and what is not as
//! it should be.

use std::path::PathBuf;

use mcp_model::{CallMetadata, CallResult, Content, ErrorKind, ServerId, Tool, ToolResult};
use mcp_registry::{Problem, ProblemKind, ValidationOutcome};

use super::bound::{Rest, bound};
use super::{Desk, Ending, ToolCall};
use crate::calls::spill::{SpillError, Whole};
use crate::failure::HostError;
use crate::failure::excerpt::excerpt;
use crate::supervisor::committer::Command;
use crate::supervisor::machine::{Event, ToolNote};
use crate::telemetry::spans::CallRecord;

impl Desk {
    /// The result of a call that has ended.
    pub(super) async fn result(
        &self,
        call: &ToolCall,
        ending: Ending<ToolResult>,
        record: &CallRecord<'_>,
    ) -> CallResult {
        let Ending { tool, budget, duration, outcome } = ending;
        let (server, tool) = match tool {
            Some((server, tool)) => (Some(server), tool),
            None => (None, call.name.clone()),
        };
        let mut metadata = CallMetadata {
            server,
            tool,
            duration,
            request_id: None,
            structured_content: None,
            warnings: Vec::new(),
        };
        let done = match outcome {
            Ok(done) => done,
            Err(trouble) => {
                let error = Some(trouble.failure.into_call_failure());
                return CallResult { success: false, content: Vec::new(), error, metadata };
            }
        };
        metadata.request_id = done.request_id;
        metadata.warnings = done.warnings;
        let ToolResult { content, structured, is_error } = done.value;
        let rest = if self.spills.is_on() { Rest::Kept } else { Rest::Lost };
        let mut bounded = bound(content, structured, budget, rest);
        record.weighed(bounded.bytes);
        let files = match bounded.is_cut {
            // Boxed, for it is rare, and every call's future would be as large.
            true => Box::pin(self.spill(metadata.server.as_ref(), bounded.over())).await,
            false => Vec::new(),
        };
        let (content, structured) = bounded.told(files);
        metadata.structured_content = structured;
        let error =
            is_error.then(|| HostError::new(ErrorKind::Tool, failed_tool(&content)).into_call_failure());
        CallResult { success: !is_error, content, error, metadata }
    }

    /// Writes parts to files; those that cannot be written have no path.
    async fn spill(&self, server: Option<&ServerId>, parts: Vec<Whole>) -> Vec<Option<PathBuf>> {
        let mut files = Vec::new();
        if !parts.is_empty() {
            files = self.written(self.spills.write(parts).await.unwrap_or_else(|error| vec![Err(error)]));
        }
        let spilled = files.iter().flatten().count();
        self.meter.cut(server.map(ServerId::as_str), spilled);
        files
    }

    fn written(&self, written: Vec<Result<PathBuf, SpillError>>) -> Vec<Option<PathBuf>> {
        let mut trouble = None;
        let is_shown = self.is_problem(|it| it.kind == ProblemKind::SpillFailed);
        let mut any = false;
        let files = written.into_iter().map(|it| match it {
            Ok(path) => {
                any = true;
                Some(path)
            }
            Err(error) => {
                tracing::warn!(%error, "a large result is cut");
                // One that is larger than all that may be kept says nothing about the folder.
                if matches!(error, SpillError::Io { .. } | SpillError::Slow { .. } | SpillError::Failed) {
                    trouble = Some(Problem::spill_failed(&error.to_string()));
                }
                None
            }
        });
        let files = files.collect();
        if trouble.is_some() || any && is_shown {
            // A full queue only means that the problem is shown, or goes, after another call.
            let _ = self.commands.try_send(Command::Found(Event::Spilling(trouble)));
        }
        files
    }

    /// Looks whether the result of a tool is what the tool promises, and gives a warning for each way in which it is
    /// not. The result itself is for its caller to judge: it is never lost.
    pub(super) fn judge(&self, server: &ServerId, tool: &Tool, value: &ToolResult) -> Vec<String> {
        let Some(schema) = tool.output_schema.as_ref().filter(|_| !value.is_error) else { return Vec::new() };
        match self.validators.check_result(schema, value.structured.as_ref()) {
            Ok(ValidationOutcome::Valid) => {
                let is_its = |it: &Problem| {
                    it.kind == ProblemKind::ResultInvalid
                        && it.server.as_ref() == Some(server)
                        && it.tool.as_deref() == Some(&*tool.name)
                };
                if self.is_problem(is_its) {
                    self.note(server, tool, ToolNote::ResultInvalid, None);
                }
                Vec::new()
            }
            Ok(ValidationOutcome::Unvalidated(reason)) => {
                tracing::debug!(reason, "the structured content is passed on unchecked");
                self.note(server, tool, ToolNote::ResultsUnchecked, Some(excerpt(reason)));
                Vec::new()
            }
            Err(invalid) => {
                let reason = excerpt(invalid.to_string().replace('\n', "; "));
                let warning =
                    format!("the structured content does not fit the tool's output schema: {reason}");
                self.note(server, tool, ToolNote::ResultInvalid, Some(reason));
                vec![warning]
            }
        }
    }

    fn is_problem(&self, which: impl Fn(&Problem) -> bool) -> bool {
        self.latest().published.problems.iter().any(|it| which(&it.problem))
    }
}

/// What a tool that failed said, or that it said nothing. Its content is there in full.
fn failed_tool(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::text).collect();
    let res = texts.join("\n");
    if res.trim().is_empty() {
        return "the tool failed and did not say why".to_owned();
    }
    excerpt(res)
}

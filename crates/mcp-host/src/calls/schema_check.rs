//! Validation of arguments and results with the schemas of their tool.

use mcp_host_model::{ErrorKind, ServerId, Tool, ToolResult};
use mcp_host_registry::{ExposedTool, Problem, ProblemKind, ValidationOutcome, ValidatorCache};

use crate::calls::supervisor_handle::SupervisorHandle;
use crate::calls::tool_call::ToolCall;
use crate::calls::tool_lookup::display_name;
use crate::error::HostError;
use crate::error::excerpt::excerpt;
use crate::supervisor::tool_problem::ToolProblem;

/// Validates the calls of one tool, and reports problems of its schemas and results.
pub(super) struct SchemaCheck<'a> {
    pub(super) validators: &'a ValidatorCache,
    pub(super) supervisor: &'a SupervisorHandle,
    pub(super) server: &'a ServerId,
    pub(super) tool: &'a Tool,
}

impl SchemaCheck<'_> {
    /// Validates the arguments of a call of `tool`, the exposed form of the called tool.
    pub(super) fn check_arguments(&self, call: &ToolCall, tool: &ExposedTool) -> Result<(), HostError> {
        let invalid = |reason: &str| {
            let message = format!("Invalid arguments for tool '{}': {reason}", display_name(call.name()));
            HostError::new(ErrorKind::Validation, message)
        };
        if !call.arguments.is_object() {
            return Err(invalid("they must be a JSON object"));
        }
        match tool.check_arguments(self.validators, &call.arguments) {
            Ok(ValidationOutcome::Valid) => {}
            Ok(ValidationOutcome::Unvalidated(reason)) => {
                tracing::debug!(reason, "arguments are passed on unchecked");
                self.report(ToolProblem::ArgumentsUnchecked, Some(excerpt(reason)));
            }
            Err(errors) => return Err(invalid(&excerpt(errors.to_string().replace('\n', "; ")))),
        }
        Ok(())
    }

    /// Validates a result. Returns warnings, because an invalid result is forwarded all the same.
    pub(super) fn check_result(&self, value: &ToolResult) -> Vec<String> {
        let SchemaCheck { server, tool, .. } = self;
        let Some(schema) = tool.output_schema.as_ref().filter(|_| !value.is_error) else { return Vec::new() };
        match self.validators.check_result(schema, value.structured.as_ref()) {
            Ok(ValidationOutcome::Valid) => {
                let is_of_tool = |it: &Problem| {
                    it.kind == ProblemKind::ResultInvalid
                        && it.server.as_ref() == Some(server)
                        && it.tool.as_deref() == Some(&*tool.name)
                };
                if self.supervisor.has_problem(is_of_tool) {
                    self.report(ToolProblem::ResultInvalid, None);
                }
                Vec::new()
            }
            Ok(ValidationOutcome::Unvalidated(reason)) => {
                tracing::debug!(reason, "the structured content is passed on unchecked");
                self.report(ToolProblem::ResultsUnchecked, Some(excerpt(reason)));
                Vec::new()
            }
            Err(invalid) => {
                let reason = excerpt(invalid.to_string().replace('\n', "; "));
                let warning =
                    format!("the structured content does not fit the tool's output schema: {reason}");
                self.report(ToolProblem::ResultInvalid, Some(reason));
                vec![warning]
            }
        }
    }

    /// Reports a problem of the tool, or withdraws it if there is no reason.
    fn report(&self, problem: ToolProblem, reason: Option<String>) {
        self.supervisor.report_tool_problem(self.server, self.tool, problem, reason);
    }
}

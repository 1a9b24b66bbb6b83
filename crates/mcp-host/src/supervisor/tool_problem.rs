//! A problem of a tool that a call or a read of its list finds.

use mcp_host_model::ServerId;
use mcp_host_registry::Problem;

/// A problem of a tool that a call reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ToolProblem {
    /// Its arguments cannot be validated.
    ArgumentsUnchecked,
    /// Its structured results cannot be validated.
    ResultsUnchecked,
    /// Its last structured result did not match its schema.
    ResultInvalid,
}

impl ToolProblem {
    pub(super) fn publish(self, server: &ServerId, tool: &str, reason: &str) -> Problem {
        match self {
            ToolProblem::ArgumentsUnchecked => Problem::tool_unvalidated(server, tool, reason),
            ToolProblem::ResultsUnchecked => Problem::tool_result_unvalidated(server, tool, reason),
            ToolProblem::ResultInvalid => Problem::tool_result_invalid(server, tool, reason),
        }
    }
}

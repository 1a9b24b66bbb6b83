//! Problems of tools that calls, or reads of their lists, find.

use mcp_host_model::ServerId;
use mcp_host_registry::Problem;

/// A problem of a tool.
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
    /// Returns the problem to publish.
    pub(super) fn to_problem(self, server: &ServerId, tool: &str, reason: &str) -> Problem {
        match self {
            ToolProblem::ArgumentsUnchecked => Problem::tool_unvalidated(server, tool, reason),
            ToolProblem::ResultsUnchecked => Problem::tool_result_unvalidated(server, tool, reason),
            ToolProblem::ResultInvalid => Problem::tool_result_invalid(server, tool, reason),
        }
    }
}

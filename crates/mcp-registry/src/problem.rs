//! What a user should know although nothing has failed: a tool that is not shown, a server that is not there.
//!
//! Problems are derived from the state each time it changes, never kept: one whose cause is gone is simply not there
//! any more (DM-124). Its id says what it is about, so that two states can be compared; since when it is there is
//! known from the generation before, see [`ActiveProblem`](crate::catalog::generation::ActiveProblem).

use std::fmt;

use mcp_model::{ServerId, Severity};
use serde::{Serialize, Serializer};

use crate::catalog::lists::ListKind;
use crate::filter::rules::{Decision, Verdict};
use crate::lock::NEVER_APPROVED;
use crate::name::display::escape_name;

/// One thing a user should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What it is about; the same cause has the same id.
    pub id: String,
    /// Which sort of thing it is.
    pub kind: ProblemKind,
    /// How bad it is.
    pub severity: Severity,
    /// The server it is about.
    pub server: Option<ServerId>,
    /// The tool, prompt or resource it is about, by its original name.
    pub tool: Option<String>,
    /// A sentence.
    pub message: String,
}

/// The sorts of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// The configuration as a whole could not be used (DM-121).
    WorkspaceConfigError,
    /// The system does not tell of changes to the configuration, so that they are noticed late (DM-092).
    WorkspaceUnwatched,
    /// A server's entry does not count, because a file that stands before its own has one of that name.
    ServerShadowed,
    /// A server could not be used (DM-122).
    ServerError,
    /// An item of a server's list is not shown (DM-123).
    Hidden {
        /// Which of the server's lists it stands in.
        list: ListKind,
        /// Why; never [`Verdict::Exposed`].
        verdict: Verdict,
    },
    /// An item is shown although it is not what was approved.
    Drifted {
        /// Which of the server's lists it stands in.
        list: ListKind,
    },
    /// A server is not as it was approved: it says other things about itself, or has lost some, or was never approved.
    ServerDrifted,
    /// A tool's arguments or results are not checked, because its schema cannot be used.
    Unvalidated,
    /// A tool's structured result is not what its `outputSchema` promises.
    ResultInvalid,
    /// A result that is too large for its caller could not be written to a file, and is cut.
    SpillFailed,
    /// A view names a toolset that is not there.
    ToolsetNotFound,
    /// A tool cannot be said to a language model's provider (DM-065).
    ProviderExcluded,
    /// A language model's provider refused a request (DM-062, DM-066).
    ProviderRejected,
}

impl fmt::Display for ProblemKind {
    /// `mcp_server_error`, `mcp_tool_blacklisted` and so on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProblemKind::WorkspaceConfigError => f.write_str("mcp_workspace_config_error"),
            ProblemKind::WorkspaceUnwatched => f.write_str("mcp_workspace_unwatched"),
            ProblemKind::ServerShadowed => f.write_str("mcp_server_shadowed"),
            ProblemKind::ServerError => f.write_str("mcp_server_error"),
            ProblemKind::Hidden { list, verdict } => write!(f, "mcp_{}_{}", list.as_str(), verdict.as_str()),
            ProblemKind::Drifted { list } => write!(f, "mcp_{}_drifted", list.as_str()),
            ProblemKind::ServerDrifted => f.write_str("mcp_server_drifted"),
            ProblemKind::Unvalidated => f.write_str("mcp_tool_unvalidated"),
            ProblemKind::ResultInvalid => f.write_str("mcp_tool_result_invalid"),
            ProblemKind::SpillFailed => f.write_str("mcp_spill_failed"),
            ProblemKind::ToolsetNotFound => f.write_str("toolset_not_found"),
            ProblemKind::ProviderExcluded => f.write_str("mcp_tool_provider_excluded"),
            ProblemKind::ProviderRejected => f.write_str("llm_provider_rejected"),
        }
    }
}

impl Serialize for ProblemKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Problem {
    /// The configuration as a whole could not be used.
    pub fn workspace_config_error(message: impl Into<String>) -> Problem {
        Problem {
            id: "mcp/workspace_config_error".to_owned(),
            kind: ProblemKind::WorkspaceConfigError,
            severity: Severity::Error,
            server: None,
            tool: None,
            message: message.into(),
        }
    }

    /// Changes to the configuration are noticed late, because the system does not tell of them; `reason` says why.
    pub fn workspace_unwatched(reason: &str) -> Problem {
        Problem {
            id: "mcp/workspace_unwatched".to_owned(),
            kind: ProblemKind::WorkspaceUnwatched,
            severity: Severity::Warning,
            server: None,
            tool: None,
            message: format!(
                "changes to the configuration are noticed late, for its files cannot be watched: {reason}"
            ),
        }
    }

    /// An entry of this name does not count; `message` says where it stands, and which one counts.
    pub fn server_shadowed(server: &str, message: impl Into<String>) -> Problem {
        Problem {
            id: format!("mcp/server/{}/server_shadowed", escape_name(server)),
            kind: ProblemKind::ServerShadowed,
            severity: Severity::Warning,
            server: ServerId::parse(server).ok(),
            tool: None,
            message: message.into(),
        }
    }

    /// A server could not be used.
    pub fn server_error(server: &ServerId, severity: Severity, message: impl Into<String>) -> Problem {
        Problem {
            id: format!("mcp/server/{server}/server_error"),
            kind: ProblemKind::ServerError,
            severity,
            server: Some(server.clone()),
            tool: None,
            message: message.into(),
        }
    }

    /// A tool's arguments are not checked; `reason` is what [`ValidationOutcome::Unvalidated`](crate::validate::ValidationOutcome) gave.
    pub fn tool_unvalidated(server: &ServerId, tool: &str, reason: &str) -> Problem {
        Problem {
            id: format!("mcp/server/{server}/tool_unvalidated/{}", escape_name(tool)),
            kind: ProblemKind::Unvalidated,
            severity: Severity::Warning,
            server: Some(server.clone()),
            tool: Some(tool.to_owned()),
            message: format!(
                "arguments of tool `{}` of server `{server}` are passed on unchecked: {reason}",
                escape_name(tool)
            ),
        }
    }

    /// A tool's structured results are not checked; `reason` is what [`ValidationOutcome::Unvalidated`](crate::validate::ValidationOutcome) gave.
    pub fn tool_result_unvalidated(server: &ServerId, tool: &str, reason: &str) -> Problem {
        Problem {
            id: format!("mcp/server/{server}/tool_result_unvalidated/{}", escape_name(tool)),
            kind: ProblemKind::Unvalidated,
            severity: Severity::Warning,
            server: Some(server.clone()),
            tool: Some(tool.to_owned()),
            message: format!(
                "structured results of tool `{}` of server `{server}` are passed on unchecked: {reason}",
                escape_name(tool)
            ),
        }
    }

    /// A tool's last structured result did not keep what its `outputSchema` promises; `reason` is what
    /// [`InvalidResult`](crate::validate::InvalidResult) says.
    pub fn tool_result_invalid(server: &ServerId, tool: &str, reason: &str) -> Problem {
        Problem {
            id: format!("mcp/server/{server}/tool_result_invalid/{}", escape_name(tool)),
            kind: ProblemKind::ResultInvalid,
            severity: Severity::Warning,
            server: Some(server.clone()),
            tool: Some(tool.to_owned()),
            message: format!(
                "tool `{}` of server `{server}` does not keep its output schema: {reason}",
                escape_name(tool)
            ),
        }
    }

    /// The last result that was too large for its caller could not be written to a file; `reason` says why.
    pub fn spill_failed(reason: &str) -> Problem {
        Problem {
            id: "mcp/spill_failed".to_owned(),
            kind: ProblemKind::SpillFailed,
            severity: Severity::Warning,
            server: None,
            tool: None,
            message: format!("large results are cut, for they cannot be written to files: {reason}"),
        }
    }

    /// A view names a toolset that is not there; its agent simply does without.
    pub fn toolset_not_found(toolset: &str) -> Problem {
        let name = escape_name(toolset);
        Problem {
            id: format!("view/toolset_not_found/{name}"),
            kind: ProblemKind::ToolsetNotFound,
            severity: Severity::Warning,
            server: None,
            tool: None,
            message: format!("Toolset not found: {name}"),
        }
    }

    /// The item that `decision` is about is shown, although it is not what was approved; `why` says what differs.
    pub(crate) fn drifted(list: ListKind, decision: &Decision, why: &str) -> Problem {
        let Decision { server, original, .. } = decision;
        let (kind, name) = (list.as_str(), escape_name(original));
        Problem {
            id: format!("mcp/server/{server}/{kind}_drifted/{name}"),
            kind: ProblemKind::Drifted { list },
            severity: Severity::Warning,
            server: Some(server.clone()),
            tool: Some(original.clone()),
            message: format!("{kind} `{name}` of server `{server}` is shown although {why}"),
        }
    }

    /// The item that `decision` is about is not shown; `None` where it is.
    pub(crate) fn hidden(list: ListKind, decision: &Decision) -> Option<Problem> {
        let Decision { server, original, exposed: _, verdict, rule } = decision;
        let what = match verdict {
            Verdict::Exposed => return None,
            Verdict::NotWhitelisted | Verdict::Blacklisted => "is filtered out",
            Verdict::InvalidName => "has a name that providers refuse",
            Verdict::Collision => "is skipped",
            Verdict::Malformed => "is malformed",
            // One problem of the server says it for all.
            Verdict::NotApproved if rule == NEVER_APPROVED => return None,
            Verdict::NotApproved => "is withheld",
        };
        let (kind, name) = (list.as_str(), escape_name(original));
        Some(Problem {
            id: format!("mcp/server/{server}/{kind}_{}/{name}", verdict.as_str()),
            kind: ProblemKind::Hidden { list, verdict: *verdict },
            severity: Severity::Warning,
            server: Some(server.clone()),
            tool: Some(original.clone()),
            message: format!("{kind} `{name}` of server `{server}` {what}: {rule}"),
        })
    }
}

//! Problems: conditions that a running host publishes, such as a hidden tool or a missing server.
//!
//! Problems are derived from the state at each change and never stored, so a problem ends with its cause (DM-124). An
//! id names the cause, so two states can be compared. [`ActiveProblem`](crate::catalog::active_problem::ActiveProblem)
//! adds the start time.

use std::fmt;

use mcp_host_model::{ServerId, Severity};
use serde::{Serialize, Serializer};

use crate::filter::rules::{Decision, ExposureVerdict, NEVER_APPROVED};
use crate::lists::ListKind;
use crate::name::display::escape_name;

/// A condition that a running host publishes, because a user should know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// The id. It names the cause, so the same cause always has the same id.
    pub id: String,
    /// The kind.
    pub kind: ProblemKind,
    /// The severity.
    pub severity: Severity,
    /// The server, if it concerns one.
    pub server: Option<ServerId>,
    /// The original name of the tool, prompt or resource, if it concerns one.
    pub tool: Option<String>,
    /// The message: one sentence.
    pub message: String,
    /// The message without the name of the server and the operation, for lists by server.
    #[serde(skip)]
    pub detail: Option<String>,
}

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The configuration as a whole cannot be used (DM-121).
    WorkspaceConfigError,
    /// The system cannot watch the configuration, so changes are detected late (DM-092).
    WorkspaceUnwatched,
    /// A server's entry is ignored, because a file with priority has an entry of that name.
    ServerShadowed,
    /// A server cannot be used (DM-122).
    ServerError,
    /// Each client has an instance of its own, because the server sends requests to its client.
    ServerLeased,
    /// An item is hidden (DM-123).
    Hidden {
        /// The list that contains it.
        list: ListKind,
        /// The reason; never [`ExposureVerdict::Exposed`].
        verdict: ExposureVerdict,
    },
    /// An item is exposed although it differs from the approved one.
    Drifted {
        /// The list that contains it.
        list: ListKind,
    },
    /// A server differs from the approved one: its identity changed, it lost items, or it was never approved.
    ServerDrifted,
    /// A text of a server is about tools of another one, and tries something.
    SuspiciousText,
    /// The arguments or results of a tool are not validated, because its schema cannot be used.
    Unvalidated,
    /// A structured result violates the tool's `outputSchema`.
    ResultInvalid,
    /// A result that is too large for its caller could not be written to a file, and was cut.
    SpillFailed,
    /// Tools of a view are left out, because of a limit on their number or size.
    ToolsLeftOut,
    /// A view names a missing toolset.
    ToolsetNotFound,
    /// A model provider does not accept a tool (DM-065).
    ProviderExcluded,
    /// A model provider refused a request (DM-062, DM-066).
    ProviderRejected,
}

impl fmt::Display for ProblemKind {
    /// Prints `mcp_server_error`, `mcp_tool_blacklisted` and so on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProblemKind::WorkspaceConfigError => f.write_str("mcp_workspace_config_error"),
            ProblemKind::WorkspaceUnwatched => f.write_str("mcp_workspace_unwatched"),
            ProblemKind::ServerShadowed => f.write_str("mcp_server_shadowed"),
            ProblemKind::ServerError => f.write_str("mcp_server_error"),
            ProblemKind::ServerLeased => f.write_str("mcp_server_leased"),
            ProblemKind::Hidden { list, verdict } => write!(f, "mcp_{}_{}", list.as_str(), verdict.as_str()),
            ProblemKind::Drifted { list } => write!(f, "mcp_{}_drifted", list.as_str()),
            ProblemKind::ServerDrifted => f.write_str("mcp_server_drifted"),
            ProblemKind::SuspiciousText => f.write_str("mcp_suspicious_text"),
            ProblemKind::Unvalidated => f.write_str("mcp_tool_unvalidated"),
            ProblemKind::ResultInvalid => f.write_str("mcp_tool_result_invalid"),
            ProblemKind::SpillFailed => f.write_str("mcp_spill_failed"),
            ProblemKind::ToolsLeftOut => f.write_str("mcp_tools_left_out"),
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
    /// A problem of the whole host.
    pub fn new(id: String, kind: ProblemKind, severity: Severity, message: String) -> Problem {
        Problem { id, kind, severity, server: None, tool: None, message, detail: None }
    }

    /// A warning about a tool, a server, or the host.
    pub(crate) fn warning(
        id: impl Into<String>,
        kind: ProblemKind,
        server: Option<&ServerId>,
        tool: Option<&str>,
        message: impl Into<String>,
    ) -> Problem {
        Problem {
            id: id.into(),
            kind,
            severity: Severity::Warning,
            server: server.cloned(),
            tool: tool.map(str::to_owned),
            message: message.into(),
            detail: None,
        }
    }

    /// The configuration as a whole cannot be used.
    pub fn workspace_config_error(message: impl Into<String>) -> Problem {
        let kind = ProblemKind::WorkspaceConfigError;
        let warning = Problem::warning("mcp/workspace_config_error", kind, None, None, message);
        Problem { severity: Severity::Error, ..warning }
    }

    /// Changes to the configuration are detected late, because the system cannot watch it, for this reason.
    pub fn workspace_unwatched(reason: &str) -> Problem {
        let message = format!(
            "changes to the configuration are detected late, because its files cannot be watched: {reason}"
        );
        Problem::warning("mcp/workspace_unwatched", ProblemKind::WorkspaceUnwatched, None, None, message)
    }

    /// The entry of this name is ignored; `message` gives its location and that of the entry in effect.
    pub fn server_shadowed(server: &str, message: impl Into<String>) -> Problem {
        let id = format!("mcp/server/{}/server_shadowed", escape_name(server));
        let server = ServerId::parse(server).ok();
        Problem::warning(id, ProblemKind::ServerShadowed, server.as_ref(), None, message)
    }

    /// A server cannot be used.
    pub fn server_error(server: &ServerId, severity: Severity, message: impl Into<String>) -> Problem {
        let id = format!("mcp/server/{server}/server_error");
        Problem { severity, ..Problem::warning(id, ProblemKind::ServerError, Some(server), None, message) }
    }

    /// Each client has an instance of the server of its own, because the server sent a request of this method.
    pub fn server_leased(server: &ServerId, method: &str) -> Problem {
        let id = format!("mcp/server/{server}/server_leased");
        let message = format!(
            "server '{server}' sends requests to its client (`{method}`), so each client has an instance of its own; \
             `sharing: per-client` does so from the start, `sharing: shared` never"
        );
        let warning = Problem::warning(id, ProblemKind::ServerLeased, Some(server), None, message);
        Problem { severity: Severity::Info, ..warning }
    }

    /// A tool's arguments are not validated, for the reason in
    /// [`ValidationOutcome::Unvalidated`](crate::validate::ValidationOutcome).
    pub fn tool_unvalidated(server: &ServerId, tool: &str, reason: &str) -> Problem {
        let name = escape_name(tool);
        let id = format!("mcp/server/{server}/tool_unvalidated/{name}");
        let message =
            format!("arguments of tool `{name}` of server `{server}` are passed on unchecked: {reason}");
        Problem::warning(id, ProblemKind::Unvalidated, Some(server), Some(tool), message)
    }

    /// A tool's structured results are not validated, for this reason.
    pub fn tool_result_unvalidated(server: &ServerId, tool: &str, reason: &str) -> Problem {
        let name = escape_name(tool);
        let id = format!("mcp/server/{server}/tool_result_unvalidated/{name}");
        let message = format!(
            "structured results of tool `{name}` of server `{server}` are passed on unchecked: {reason}"
        );
        Problem::warning(id, ProblemKind::Unvalidated, Some(server), Some(tool), message)
    }

    /// A tool's last structured result violates its `outputSchema`; `reason` is the text of
    /// [`InvalidResult`](crate::validate::InvalidResult).
    pub fn tool_result_invalid(server: &ServerId, tool: &str, reason: &str) -> Problem {
        let name = escape_name(tool);
        let id = format!("mcp/server/{server}/tool_result_invalid/{name}");
        let message = format!("tool `{name}` of server `{server}` does not keep its output schema: {reason}");
        Problem::warning(id, ProblemKind::ResultInvalid, Some(server), Some(tool), message)
    }

    /// The last result that was too large for its caller could not be written to a file, for this reason.
    pub fn spill_failed(reason: &str) -> Problem {
        let message = format!("large results are cut, because they cannot be written to files: {reason}");
        Problem::warning("mcp/spill_failed", ProblemKind::SpillFailed, None, None, message)
    }

    /// A view names a missing toolset, and ignores it.
    pub fn toolset_not_found(toolset: &str) -> Problem {
        let name = escape_name(toolset);
        let (id, message) = (format!("view/toolset_not_found/{name}"), format!("Toolset not found: {name}"));
        Problem::warning(id, ProblemKind::ToolsetNotFound, None, None, message)
    }

    /// `left_out` of the `total` tools of a view are left out, because of these limits. `names` are the first ones.
    pub(crate) fn tools_left_out(
        view: &str,
        left_out: usize,
        total: usize,
        limits: &str,
        names: &str,
    ) -> Problem {
        let id = format!("view/tools_left_out/{}", escape_name(view));
        let message = format!(
            "{left_out} of {total} tools are left out for {view}, because of the limit of {limits}: {names}"
        );
        Problem::warning(id, ProblemKind::ToolsLeftOut, None, None, message)
    }

    /// The item of `decision` is exposed although it differs from the approved one, in this way.
    pub(crate) fn drifted(list: ListKind, decision: &Decision, difference: &str) -> Problem {
        let Decision { server, original, .. } = decision;
        let (kind, name) = (list.as_str(), escape_name(original));
        let id = format!("mcp/server/{server}/{kind}_drifted/{name}");
        let message = format!("{kind} `{name}` of server `{server}` is shown although {difference}");
        Problem::warning(id, ProblemKind::Drifted { list }, Some(server), Some(original), message)
    }

    /// The item of `decision` is hidden; `None` if it is exposed. The severity is `Info` if the user's own filter hides
    /// it (DM-123).
    pub(crate) fn hidden(list: ListKind, decision: &Decision) -> Option<Problem> {
        let Decision { server, original, exposed: _, verdict, rule } = decision;
        let effect = match verdict {
            ExposureVerdict::Exposed => return None,
            ExposureVerdict::NotWhitelisted | ExposureVerdict::Blacklisted => "is filtered out",
            ExposureVerdict::InvalidName => "has a name that providers refuse",
            ExposureVerdict::Collision | ExposureVerdict::OwnCollision => "is skipped",
            ExposureVerdict::Malformed => "is malformed",
            // One problem of the server reports this for all its items.
            ExposureVerdict::NotApproved if rule == NEVER_APPROVED => return None,
            ExposureVerdict::NotApproved => "is withheld",
        };
        let (kind, name) = (list.as_str(), escape_name(original));
        let id = format!("mcp/server/{server}/{kind}_{}/{name}", verdict.as_str());
        let message = format!("{kind} `{name}` of server `{server}` {effect}: {rule}");
        let problem_kind = ProblemKind::Hidden { list, verdict: *verdict };
        let severity = match verdict {
            ExposureVerdict::NotWhitelisted | ExposureVerdict::Blacklisted => Severity::Info,
            ExposureVerdict::Exposed
            | ExposureVerdict::InvalidName
            | ExposureVerdict::Collision
            | ExposureVerdict::OwnCollision
            | ExposureVerdict::Malformed
            | ExposureVerdict::NotApproved => Severity::Warning,
        };
        let warning = Problem::warning(id, problem_kind, Some(server), Some(original), message);
        Some(Problem { severity, ..warning })
    }
}

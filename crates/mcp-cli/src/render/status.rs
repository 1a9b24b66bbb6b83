//! Renders server states and problems as text lines.

use mcp_host_config::Colour;
use mcp_host_registry::{ExposureVerdict, ListKind, Problem, ProblemKind};
use mcp_host_runtime::{ActiveProblem, HostSnapshot, ServerState, ServerStatus};

use crate::output::console::{Console, Report};
use crate::output::failure::Failure;
use crate::output::{count, sanitize, style};

/// One line per server, with its error.
pub(crate) fn server_lines(published: &HostSnapshot, colour: Colour) -> String {
    server_lines_where(published, |_| true, colour)
}

/// A failure, followed by the lines of the servers that are not ready: one of them may have what was not found.
pub(crate) fn failure_with_servers(failure: Failure, published: &HostSnapshot, console: &Console) -> Failure {
    let lines =
        server_lines_where(published, |status| status.state != ServerState::Ready, console.err_colour);
    let report = failure.report(console);
    Failure::Report(Report { err: report.err.clone() + &lines, ..report })
}

/// The lines of the servers that `is_included` accepts.
pub(crate) fn server_lines_where(
    published: &HostSnapshot,
    is_included: impl Fn(&ServerStatus) -> bool,
    colour: Colour,
) -> String {
    let servers: Vec<&ServerStatus> = published.servers.iter().filter(|status| is_included(status)).collect();
    let width = servers.iter().map(|it| sanitize::line(&it.id).chars().count()).max().unwrap_or_default();
    servers
        .into_iter()
        .map(|status| server_line(status, server_warning(published, status), width, colour))
        .collect()
}

/// The first invalid definition reported for a ready server.
pub(crate) fn server_warning<'a>(published: &'a HostSnapshot, status: &ServerStatus) -> Option<&'a Problem> {
    let is_own = |active: &&ActiveProblem| {
        let (ProblemKind::Hidden { verdict: ExposureVerdict::Malformed, list: _ } | ProblemKind::Unvalidated) =
            active.problem.kind
        else {
            return false;
        };
        active.problem.server.as_ref().is_some_and(|id| status.id == *id)
    };
    let is_ready = status.state == ServerState::Ready && status.error.is_none();
    published.problems.iter().filter(|_| is_ready).find(is_own).map(|active| &active.problem)
}

/// The line of one server, with its name padded to `width`, and an optional help line.
pub(crate) fn server_line(
    status: &ServerStatus,
    warning: Option<&Problem>,
    width: usize,
    colour: Colour,
) -> String {
    let ServerStatus { id, state, era, error, .. } = status;
    let (style, mark) = match state {
        ServerState::Ready if warning.is_some() => (style::WARNING, "!"),
        ServerState::Ready => (style::SUCCESS, "✓"),
        ServerState::Failed | ServerState::Disabled | ServerState::Stopped => (style::FAILURE, "✗"),
        _ => (style::WARNING, "…"),
    };
    let mark = style::paint(colour, style, mark);
    let mut text = format!("{mark} {:width$}  {}", sanitize::line(id), state.as_str());
    if let Some(era) = era {
        let era = format!(" ({})", era.as_str());
        text.push_str(&style::paint(colour, style::DIM, &era));
    }
    if let Some(error) = error {
        text.push_str(&format!("  {}", sanitize::line(&error.to_string())));
    } else if let Some(problem) = warning {
        text.push_str(&format!("  {}", sanitize::line(&problem.message)));
    }
    text.push('\n');
    let help = error.as_ref().and_then(|error| error.help.as_deref());
    if let Some(help) = help.or_else(|| warning.and_then(|problem| problem_help(problem.kind))) {
        text.push_str(&style::help(colour, &sanitize::line(help)));
    }
    text
}

/// The problems that are not part of a server line, most severe first.
pub(crate) fn problem_lines(published: &HostSnapshot, colour: Colour) -> String {
    let warnings: Vec<&str> = published
        .servers
        .iter()
        .filter_map(|status| server_warning(published, status))
        .map(|problem| problem.id.as_str())
        .collect();
    let is_in_server_line = |active: &ActiveProblem| {
        if warnings.contains(&active.problem.id.as_str()) {
            return true;
        }
        let server = active.problem.server.as_ref();
        active.problem.kind == ProblemKind::ServerError
            && published
                .servers
                .iter()
                .any(|status| status.error.is_some() && server.is_some_and(|server| status.id == *server))
    };
    let mut remaining: Vec<&ActiveProblem> =
        published.problems.iter().filter(|active| !is_in_server_line(active)).collect();
    remaining.sort_by_key(|active| active.problem.severity);
    let mut lines = Vec::new();
    // The partition is stable, so a group is printed at the position of its first member.
    while let Some(first) = remaining.first().copied() {
        let (group, rest): (Vec<_>, Vec<_>) =
            remaining.into_iter().partition(|active| is_same_group(&first.problem, &active.problem));
        remaining = rest;
        let line = match group.as_slice() {
            [_, _, ..] => filter_summary(&group),
            [] | [_] => first.problem.message.clone(),
        };
        let severity = style::severity(colour, first.problem.severity);
        lines.push((format!("{severity}: {}\n", sanitize::line(&line)), problem_help(first.problem.kind)));
    }
    let mut text = String::new();
    for (index, (line, help)) in lines.iter().enumerate() {
        text.push_str(line);
        // Consecutive lines with the same help share one help line.
        if let Some(help) = help
            && lines.get(index + 1).is_none_or(|next| next.1 != Some(*help))
        {
            text.push_str(&style::help(colour, help));
        }
    }
    text
}

/// Whether the problems share a line: they are the same, or items that one filter hides.
fn is_same_group(first: &Problem, other: &Problem) -> bool {
    let by_filter = matches!(
        first.kind,
        ProblemKind::Hidden {
            list: _,
            verdict: ExposureVerdict::NotWhitelisted | ExposureVerdict::Blacklisted
        }
    );
    first.id == other.id || by_filter && first.kind == other.kind && first.server == other.server
}

/// One line for all items that a filter of a server hides.
fn filter_summary(group: &[&ActiveProblem]) -> String {
    let first = &group[0].problem;
    let ProblemKind::Hidden { list, verdict } = first.kind else { return first.message.clone() };
    let filter = if verdict == ExposureVerdict::Blacklisted { "blacklist" } else { "whitelist" };
    let names: Vec<&str> = group.iter().filter_map(|it| it.problem.tool.as_deref()).collect();
    let server = first.server.as_ref().map(|it| it.as_str()).unwrap_or_default();
    format!(
        "{} of server `{server}` are hidden by its {filter}: {}",
        count(group.len(), list.as_str()),
        names.join(", ")
    )
}

/// The help for an item that differs from the lock file.
pub(crate) const DRIFT_HELP: &str =
    "`mcp-host lock --check` shows the changes; `mcp-host lock --update SERVER` approves them";

/// The help for a problem of this kind.
fn problem_help(kind: ProblemKind) -> Option<&'static str> {
    match kind {
        ProblemKind::WorkspaceConfigError => Some("`mcp-host check` shows every mistake with its line"),
        ProblemKind::WorkspaceUnwatched => {
            Some("if the system limits the number of file watches, raise the limit")
        }
        ProblemKind::ServerShadowed => Some("remove one of the two entries, or rename it"),
        ProblemKind::Drifted { list: _ } | ProblemKind::ServerDrifted => Some(DRIFT_HELP),
        ProblemKind::Unvalidated => Some("only the server's author can correct the schema; calls still work"),
        ProblemKind::ResultInvalid => {
            Some("only the server's author can correct this; the result is returned unchanged")
        }
        ProblemKind::SpillFailed => Some("free space in the folder for results, or make it writable"),
        ProblemKind::ToolsLeftOut => Some(
            "raise the limit, or show fewer tools: with filters in the configuration, or in the scope of the token",
        ),
        ProblemKind::ToolsetNotFound => Some("use the name of a server as the name of the toolset"),
        ProblemKind::ProviderRejected => {
            Some("the dialog continues after the tool or its server has changed")
        }
        ProblemKind::Hidden { list, verdict } => match (verdict, list) {
            (ExposureVerdict::NotWhitelisted, _) => {
                Some("to show it, add a matching pattern to the whitelist")
            }
            (ExposureVerdict::Blacklisted, _) => Some("to show it, remove the pattern from the blacklist"),
            (ExposureVerdict::InvalidName, ListKind::Tool | ListKind::Prompt) => {
                Some("a name has 1 to 64 letters, digits, `_` and `-`; a transform can shorten it")
            }
            (ExposureVerdict::Collision, _) => Some("rename one of the two servers, or add a prefix"),
            (ExposureVerdict::OwnCollision, _) => {
                Some("both are of one server: the first one is used; only its author can correct it")
            }
            (ExposureVerdict::NotApproved, _) => Some(DRIFT_HELP),
            (ExposureVerdict::Malformed, _) => {
                Some("only the server's author can correct it; the other items are available")
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    use mcp_host_model::{Era, ErrorKind, ServerId, Severity};
    use mcp_host_registry::Catalog;
    use mcp_host_runtime::HostError;

    use super::*;

    fn published() -> HostSnapshot {
        let bad = ServerId::parse("broken").unwrap();
        let mut failure = HostError::new(ErrorKind::Connection, "it \u{1b}[2Jended\nat once");
        failure.help = Some("start it by hand".into());
        let since = UNIX_EPOCH;
        let active = |problem| ActiveProblem { problem, since };
        let mut snapshot = HostSnapshot::default();
        snapshot.generation = 1;
        snapshot.catalog = Arc::new(Catalog::empty());
        snapshot.servers = vec![
            {
                let mut status = ServerStatus::new("demo", ServerState::Ready);
                status.era = Some(Era::Modern);
                status
            },
            {
                let mut status = ServerStatus::new("broken", ServerState::Failed);
                status.error = Some(failure);
                status
            },
        ];
        snapshot.problems = vec![
            active(Problem::server_error(&bad, Severity::Error, "in the server line")),
            active(Problem::tool_unvalidated(&bad, "x", "its schema is odd")),
            active(Problem::workspace_config_error("all of it is wrong")),
        ];
        snapshot
    }

    #[test]
    fn server_line_is_sanitized() {
        assert_eq!(
            server_lines(&published(), Colour::Never),
            "✓ demo    ready (modern)\n\
             ✗ broken  failed  MCPConnectionError: it ended at once\n  help: start it by hand\n"
        );
        let painted = server_lines(&published(), Colour::Always);
        assert!(painted.contains("\u{1b}[1m\u{1b}[32m✓") && !painted.contains("\u{1b}[2J"), "{painted:?}");
    }

    #[test]
    fn items_hidden_by_one_filter_share_a_line() {
        use mcp_host_model::{Exposure, ExposureFilter, NamePolicy, RawJson, read_tools};
        use mcp_host_registry::{Builtins, CatalogServer, ServerLists};

        let mut exposure = Exposure::all(NamePolicy::Reject);
        exposure.tools.filter = ExposureFilter { whitelist: vec!["keep".into()], blacklist: vec![] };
        let json = r#"{"tools":[{"name":"a","inputSchema":{}},{"name":"keep","inputSchema":{}},{"name":"b","inputSchema":{}}]}"#;
        let tools = read_tools(&RawJson::parse(json.into()).unwrap()).unwrap().into_shared();
        let lists = Arc::new(ServerLists::of_tools(tools));
        let entry = CatalogServer::new(ServerId::parse("s").unwrap(), exposure, lists);
        let catalog = Catalog::build(&Builtins::default(), &[entry]);
        let active = |problem: &Problem| ActiveProblem { problem: problem.clone(), since: UNIX_EPOCH };
        let problems_found = catalog.problems().iter().map(active).collect();
        let mut published = HostSnapshot::default();
        published.generation = 1;
        published.catalog = Arc::new(catalog);
        published.problems = problems_found;
        assert_eq!(
            problem_lines(&published, Colour::Never),
            "info: 2 tools of server `s` are hidden by its whitelist: a, b\n  \
             help: to show it, add a matching pattern to the whitelist\n"
        );
    }

    #[test]
    fn problems_are_listed_once_most_severe_first() {
        assert_eq!(
            problem_lines(&published(), Colour::Never),
            "error: all of it is wrong\n  help: `mcp-host check` shows every mistake with its line\n\
             warning: arguments of tool `x` of server `broken` are passed on unchecked: its schema is odd\n  \
             help: only the server's author can correct the schema; calls still work\n"
        );
    }
}

//! Servers and problems in words: the second half of what `tools` shows.

use mcp_config::Colour;
use mcp_host::{ActiveProblem, HostSnapshot, ServerState, ServerStatus};
use mcp_registry::{ListKind, Problem, ProblemKind, Verdict};

use crate::output::{paint, plain};

/// A line for each server, with what is wrong with it.
pub(crate) fn servers(published: &HostSnapshot, colour: Colour) -> String {
    some(published, |_| true, colour)
}

/// The lines of those servers that are wanted.
pub(crate) fn some(
    published: &HostSnapshot,
    wanted: impl Fn(&ServerStatus) -> bool,
    colour: Colour,
) -> String {
    let servers: Vec<&ServerStatus> = published.servers.iter().filter(|it| wanted(it)).collect();
    let longest = servers.iter().map(|it| plain::line(&it.id).chars().count()).max().unwrap_or_default();
    servers.into_iter().map(|it| server(it, doubt(published, it), longest, colour)).collect()
}

/// What is wrong with a server that runs all the same: the first of its problems that is its own doing.
pub(super) fn doubt<'a>(published: &'a HostSnapshot, status: &ServerStatus) -> Option<&'a Problem> {
    let own = |it: &&ActiveProblem| {
        let (ProblemKind::Hidden { verdict: Verdict::Malformed, list: _ } | ProblemKind::Unvalidated) =
            it.problem.kind
        else {
            return false;
        };
        it.problem.server.as_ref().is_some_and(|it| it.as_str() == status.id)
    };
    let runs = status.state == ServerState::Ready && status.error.is_none();
    published.problems.iter().filter(|_| runs).find(own).map(|it| &it.problem)
}

/// One server's line, its name as wide as the longest, and what to do about it.
pub(super) fn server(
    status: &ServerStatus,
    doubt: Option<&Problem>,
    longest: usize,
    colour: Colour,
) -> String {
    let ServerStatus { id, state, era, error: failure } = status;
    let (style, mark) = match state {
        ServerState::Ready if doubt.is_some() => (paint::DOUBTFUL, "!"),
        ServerState::Ready => (paint::GOOD, "✓"),
        ServerState::Starting | ServerState::Restarting => (paint::DOUBTFUL, "…"),
        ServerState::Failed | ServerState::Disabled | ServerState::Stopped => (paint::BAD, "✗"),
    };
    let mark = paint::paint(colour, style, mark);
    let mut res = format!("{mark} {:longest$}  {}", plain::line(id), state.as_str());
    if let Some(era) = era {
        let era = format!(" ({})", era.as_str());
        res.push_str(&paint::paint(colour, paint::FAINT, &era));
    }
    if let Some(failure) = failure {
        res.push_str(&format!("  {}", plain::line(&failure.to_string())));
    } else if let Some(problem) = doubt {
        res.push_str(&format!("  {}", plain::line(&problem.message)));
    }
    res.push('\n');
    let help = failure.as_ref().and_then(|it| it.help.as_deref());
    if let Some(help) = help.or_else(|| doubt.and_then(|it| self::help(it.kind))) {
        res.push_str(&paint::help(colour, &plain::line(help)));
    }
    res
}

/// The problems that no server's line has told already, worst first.
pub(crate) fn problems(published: &HostSnapshot, colour: Colour) -> String {
    let doubts: Vec<&str> =
        published.servers.iter().filter_map(|it| doubt(published, it)).map(|it| it.id.as_str()).collect();
    let told = |it: &ActiveProblem| {
        if doubts.contains(&it.problem.id.as_str()) {
            return true;
        }
        let server = it.problem.server.as_ref();
        it.problem.kind == ProblemKind::ServerError
            && published.servers.iter().any(|status| {
                status.error.is_some() && server.is_some_and(|server| server.as_str() == status.id)
            })
    };
    let mut untold: Vec<&ActiveProblem> = published.problems.iter().filter(|it| !told(it)).collect();
    untold.sort_by_key(|it| it.problem.severity);
    let mut told = Vec::new();
    // Stable, so that what belongs together stands where its first member stood.
    while let Some(first) = untold.first().copied() {
        let (alike, rest): (Vec<_>, Vec<_>) =
            untold.into_iter().partition(|it| is_alike(&first.problem, &it.problem));
        untold = rest;
        let line = match alike.as_slice() {
            [_, _, ..] => filtered(&alike),
            [] | [_] => first.problem.message.clone(),
        };
        let severity = paint::severity(colour, first.problem.severity);
        told.push((format!("{severity}: {}\n", plain::line(&line)), help(first.problem.kind)));
    }
    let mut res = String::new();
    for (at, (line, help)) in told.iter().enumerate() {
        res.push_str(line);
        // Advice that fits a whole run of lines is given once, under the last of them.
        if let Some(help) = help
            && told.get(at + 1).is_none_or(|next| next.1 != Some(*help))
        {
            res.push_str(&paint::help(colour, help));
        }
    }
    res
}

/// Is `other` the same problem, or of the same filter? A filter that hides twenty tools is one thing to say.
fn is_alike(first: &Problem, other: &Problem) -> bool {
    let by_filter = matches!(
        first.kind,
        ProblemKind::Hidden { list: _, verdict: Verdict::NotWhitelisted | Verdict::Blacklisted }
    );
    first.id == other.id || by_filter && first.kind == other.kind && first.server == other.server
}

/// What one filter of one server hides.
fn filtered(alike: &[&ActiveProblem]) -> String {
    let first = &alike[0].problem;
    let (list, filter) = match first.kind {
        ProblemKind::Hidden { list, verdict: Verdict::Blacklisted } => (list, "blacklist"),
        ProblemKind::Hidden { list, verdict: _ } => (list, "whitelist"),
        ProblemKind::WorkspaceConfigError
        | ProblemKind::WorkspaceUnwatched
        | ProblemKind::ServerShadowed
        | ProblemKind::ServerError
        | ProblemKind::Drifted { list: _ }
        | ProblemKind::ServerDrifted
        | ProblemKind::Unvalidated
        | ProblemKind::ResultInvalid
        | ProblemKind::SpillFailed
        | ProblemKind::ToolsetNotFound
        | ProblemKind::ProviderExcluded
        | ProblemKind::ProviderRejected => return first.message.clone(),
    };
    let names: Vec<&str> = alike.iter().filter_map(|it| it.problem.tool.as_deref()).collect();
    let server = first.server.as_ref().map(|it| it.as_str()).unwrap_or_default();
    let count = alike.len();
    format!(
        "{count} {}s of server `{server}` are hidden by its {filter}: {}",
        list.as_str(),
        names.join(", ")
    )
}

/// What to do where something is not as it was approved.
const DRIFTED: &str =
    "`mcp-host lock --check` shows what has changed, `mcp-host lock --update SERVER` approves of it";

/// What a user can do about a problem of this kind.
fn help(kind: ProblemKind) -> Option<&'static str> {
    match kind {
        ProblemKind::WorkspaceConfigError => Some("`mcp-host check` shows every mistake with its line"),
        ProblemKind::WorkspaceUnwatched => Some("where the system has a limit for watches, raise it"),
        ProblemKind::ServerShadowed => {
            Some("take one of the two entries out, or give one of them another name")
        }
        ProblemKind::ServerError => None,
        ProblemKind::Drifted { list: _ } | ProblemKind::ServerDrifted => Some(DRIFTED),
        ProblemKind::Unvalidated => {
            Some("only the server's authors can mend its schema; calls work all the same")
        }
        ProblemKind::ResultInvalid => {
            Some("only the server's authors can mend it; the result is given as it came")
        }
        ProblemKind::SpillFailed => Some("make room in the folder for results, or make it writable"),
        ProblemKind::ToolsetNotFound => Some("a toolset has the name of its server"),
        ProblemKind::ProviderExcluded => None,
        ProblemKind::ProviderRejected => Some("the dialog goes on once the tool or its server is changed"),
        ProblemKind::Hidden { list, verdict } => match (verdict, list) {
            (Verdict::Exposed, _) => None,
            (Verdict::NotWhitelisted, _) => {
                Some("add a pattern that fits to the whitelist if it should be shown")
            }
            (Verdict::Blacklisted, _) => Some("take the pattern out of the blacklist if it should be shown"),
            (Verdict::InvalidName, ListKind::Tool | ListKind::Prompt) => {
                Some("names are 1 to 64 letters, digits, `_` and `-`; a transform may make this one too long")
            }
            (Verdict::InvalidName, ListKind::Resource) => None,
            (Verdict::Collision, _) => Some("give one of the two servers another name, or a prefix"),
            (Verdict::NotApproved, _) => Some(DRIFTED),
            (Verdict::Malformed, _) => Some("only the server's authors can mend it; the others are there"),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    use mcp_host::HostError;
    use mcp_model::{Era, ErrorKind, ServerId, Severity};
    use mcp_registry::Catalog;

    use super::*;

    fn published() -> HostSnapshot {
        let bad = ServerId::parse("broken").unwrap();
        let failure = HostError {
            kind: ErrorKind::Connection,
            message: "it \u{1b}[2Jended\nat once".into(),
            help: Some("start it by hand".into()),
        };
        let since = UNIX_EPOCH;
        let active = |problem| ActiveProblem { problem, since };
        HostSnapshot {
            generation: 1,
            catalog: Arc::new(Catalog::empty()),
            servers: vec![
                ServerStatus {
                    id: "demo".into(),
                    state: ServerState::Ready,
                    era: Some(Era::Modern),
                    error: None,
                },
                ServerStatus {
                    id: "broken".into(),
                    state: ServerState::Failed,
                    era: None,
                    error: Some(failure),
                },
            ],
            problems: vec![
                active(Problem::server_error(&bad, Severity::Error, "told above")),
                active(Problem::tool_unvalidated(&bad, "x", "its schema is odd")),
                active(Problem::workspace_config_error("all of it is wrong")),
            ],
        }
    }

    #[test]
    fn a_server_has_a_line_and_a_strangers_words_are_harmless() {
        assert_eq!(
            servers(&published(), Colour::Never),
            "✓ demo    ready (modern)\n\
             ✗ broken  failed  MCPConnectionError: it ended at once\n  help: start it by hand\n"
        );
        let painted = servers(&published(), Colour::Always);
        assert!(painted.contains("\u{1b}[1m\u{1b}[32m✓") && !painted.contains("\u{1b}[2J"), "{painted:?}");
    }

    #[test]
    fn what_one_filter_hides_is_one_line() {
        use mcp_model::{Exposure, Filter, NamePolicy, RawJson, read_tools};
        use mcp_registry::{Builtins, ServerEntry, ServerLists};

        let mut exposure = Exposure::all(NamePolicy::Reject);
        exposure.tools.filter = Filter { whitelist: vec!["keep".into()], blacklist: vec![] };
        let json = r#"{"tools":[{"name":"a","inputSchema":{}},{"name":"keep","inputSchema":{}},{"name":"b","inputSchema":{}}]}"#;
        let tools = read_tools(&RawJson::parse(json.into()).unwrap()).unwrap().into_shared();
        let lists = Arc::new(ServerLists { tools, ..ServerLists::default() });
        let entry = ServerEntry { id: ServerId::parse("s").unwrap(), exposure, lists };
        let catalog = Catalog::build(&Builtins::default(), &[entry]);
        let active = |problem: &Problem| ActiveProblem { problem: problem.clone(), since: UNIX_EPOCH };
        let problems_found = catalog.problems().iter().map(active).collect();
        let published = HostSnapshot {
            generation: 1,
            catalog: Arc::new(catalog),
            servers: vec![],
            problems: problems_found,
        };
        assert_eq!(
            problems(&published, Colour::Never),
            "warning: 2 tools of server `s` are hidden by its whitelist: a, b\n  \
             help: add a pattern that fits to the whitelist if it should be shown\n"
        );
    }

    #[test]
    fn problems_are_told_once_and_worst_first() {
        assert_eq!(
            problems(&published(), Colour::Never),
            "error: all of it is wrong\n  help: `mcp-host check` shows every mistake with its line\n\
             warning: arguments of tool `x` of server `broken` are passed on unchecked: its schema is odd\n  \
             help: only the server's authors can mend its schema; calls work all the same\n"
        );
    }
}

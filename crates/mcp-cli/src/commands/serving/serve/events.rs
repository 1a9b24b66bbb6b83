//! The log lines about files, servers and problems, for the operator of `serve`.

use std::collections::BTreeMap;
use std::convert::Infallible;

use mcp_host_model::{ServerId, Severity};
use mcp_host_registry::{ExposureVerdict, ProblemKind};
use mcp_host_runtime::{
    ActiveProblem, FilePresence, FollowEvent, FollowHandle, Host, HostSnapshot, ReloadedFile, ServerState,
};
use tokio::sync::oneshot::error::RecvError;
use tracing::Level;

use crate::output::log::OPERATOR;
use crate::output::sanitize;
use crate::render::events::{EventLine, change_lines};
use crate::runtime::signal::Signal;

/// Maximum number of names in the line about withheld items.
const MAX_NAMES: usize = 10;

/// A line of the log. The text may contain text of a server.
#[derive(Debug, PartialEq, Eq)]
struct LogLine {
    level: Level,
    text: String,
}

/// Logs the events of the configuration files. Never returns.
pub(super) async fn log_file_events(mut follow_handle: FollowHandle) -> Infallible {
    while let Some(event) = follow_handle.next().await {
        match event {
            FollowEvent::Refused(file) => {
                let first = file.diagnostics.iter().find(|it| it.severity == Severity::Error);
                let help = first.and_then(|diagnostic| diagnostic.help.as_deref());
                let help = help.map(|help| format!(" ({help})")).unwrap_or_default();
                write_log(&LogLine::new(
                    Level::WARN,
                    format!("refused the configuration: {}{help}", file.error),
                ));
            }
            FollowEvent::Approved(path) => {
                write_log(&LogLine::new(Level::INFO, format!("applied the lock file {path}")));
            }
            FollowEvent::Reloaded(reload) => reload_log_lines(&reload.files).iter().for_each(write_log),
            other => tracing::debug!(target: OPERATOR, ?other, "configuration event"),
        }
    }
    std::future::pending().await
}

/// The log lines about files that were read again.
fn reload_log_lines(files: &[ReloadedFile]) -> Vec<LogLine> {
    let (present, absent): (Vec<&ReloadedFile>, Vec<&ReloadedFile>) =
        files.iter().partition(|file| file.presence == FilePresence::Present);
    let paths: Vec<&str> = present.iter().map(|file| file.path.as_str()).collect();
    let applied = (!paths.is_empty())
        .then(|| LogLine::new(Level::INFO, format!("applied the configuration {}", paths.join(", "))));
    let missing = absent.iter().map(|file| {
        let path = &file.path;
        LogLine::new(Level::WARN, format!("the configuration {path} does not exist, so it has no servers"))
    });
    applied.into_iter().chain(missing).collect()
}

/// Logs what changes in the state of the servers. Never returns.
pub(super) async fn log_server_events(host: &Host) -> Infallible {
    let mut changes = host.subscribe();
    // An empty state, so that the first lines report every server and problem.
    let mut before = (*host.snapshot()).clone();
    before.generation = 0;
    before.servers = Vec::new();
    before.problems = Vec::new();
    loop {
        let after = changes.borrow_and_update().clone();
        change_log_lines(&before, &after).iter().for_each(write_log);
        before = (*after).clone();
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// The log lines of the changes from one generation to a later one.
fn change_log_lines(before: &HostSnapshot, after: &HostSnapshot) -> Vec<LogLine> {
    let mut lines = Vec::new();
    let mut withheld: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in change_lines(before, after) {
        let (level, text) = match event {
            EventLine::Server(status) => {
                let (id, error) = (&status.id, &status.error);
                let reason = error.as_ref().map_or("no reason", |error| error.detail());
                let help = error.as_ref().and_then(|error| error.help.as_deref());
                let reason = format!("{reason}{}", help.map(|it| format!(" ({it})")).unwrap_or_default());
                match status.state {
                    ServerState::Starting => (Level::DEBUG, format!("server {id} is starting")),
                    ServerState::Ready if error.is_some() => {
                        (Level::WARN, format!("server {id} is up, and a change of it failed: {reason}"))
                    }
                    ServerState::Ready => (Level::INFO, format!("server {id} is up")),
                    ServerState::Restarting => (Level::WARN, format!("server {id} is down: {reason}")),
                    ServerState::Failed => (Level::ERROR, format!("server {id} failed: {reason}")),
                    ServerState::Disabled => (Level::INFO, format!("server {id} is disabled")),
                    other => (Level::DEBUG, format!("server {id} is {}", other.as_str())),
                }
            }
            EventLine::ServerRemoved { name } => (Level::INFO, format!("server {name} was removed")),
            EventLine::Problem(ActiveProblem { problem, since: _ }) => match problem.kind {
                // The line of its server says the same. A server without an error has a problem of its lists.
                ProblemKind::ServerError if has_error(after, problem.server.as_ref()) => continue,
                ProblemKind::Hidden { verdict: ExposureVerdict::NotApproved, list: _ } => {
                    let server = problem.server.map(|id| id.to_string()).unwrap_or_default();
                    withheld.entry(server).or_default().extend(problem.tool);
                    continue;
                }
                // The configuration asks for this.
                ProblemKind::Hidden {
                    verdict: ExposureVerdict::NotWhitelisted | ExposureVerdict::Blacklisted,
                    list: _,
                } => (Level::DEBUG, problem.message),
                _ if problem.severity == Severity::Error => (Level::ERROR, problem.message),
                _ if problem.severity == Severity::Info => (Level::INFO, problem.message),
                _ => (Level::WARN, problem.message),
            },
            EventLine::ProblemCleared { id } => (Level::DEBUG, format!("problem {id} is resolved")),
            _ => continue,
        };
        lines.push(LogLine::new(level, text));
    }
    for (server, names) in withheld {
        let (count, more) = (names.len(), names.len().saturating_sub(MAX_NAMES));
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
        let text =
            format!("withheld {count} items of server {server} that differ from mcp.lock: {shown}{more}");
        lines.push(LogLine::new(Level::WARN, text));
    }
    lines
}

/// Logs the signal that ends the command. Without one, the command ends for a reason that is reported elsewhere.
pub(super) fn log_stop(signal: Result<Signal, RecvError>) {
    if let Ok(signal) = signal {
        tracing::info!(target: OPERATOR, "stopping because of {signal}: running requests may finish");
    }
}

/// Whether the status of a server has an error. True for a server without a status.
fn has_error(snapshot: &HostSnapshot, server: Option<&ServerId>) -> bool {
    let status = server.and_then(|id| snapshot.server(id));
    status.is_none_or(|status| status.error.is_some())
}

impl LogLine {
    fn new(level: Level, text: String) -> LogLine {
        LogLine { level, text: sanitize::line(&text) }
    }
}

fn write_log(line: &LogLine) {
    let text = &line.text;
    // The level of an event is part of its static description.
    match line.level {
        Level::ERROR => tracing::error!(target: OPERATOR, "{text}"),
        Level::WARN => tracing::warn!(target: OPERATOR, "{text}"),
        Level::INFO => tracing::info!(target: OPERATOR, "{text}"),
        _ => tracing::debug!(target: OPERATOR, "{text}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use mcp_host_model::{ErrorKind, ServerId};
    use mcp_host_registry::{ListKind, Problem};
    use mcp_host_runtime::HostError;

    use super::*;
    use crate::tests::published;

    #[track_caller]
    fn check(before: &HostSnapshot, after: &HostSnapshot, want: &[(Level, &str)]) {
        let lines = change_log_lines(before, after);
        let lines: Vec<(Level, &str)> = lines.iter().map(|line| (line.level, line.text.as_str())).collect();
        assert_eq!(lines, want);
    }

    #[test]
    fn each_change_of_a_server_is_one_line() {
        use ServerState::{Failed, Ready, Restarting, Starting};
        let starting = published(&[("a", Starting), ("b", Ready)]);
        let with_error = |state| {
            let mut res = published(&[("a", state), ("b", Ready)]);
            let detail = "it \u{1b}[2Jended\nat once";
            let help = Some("start it by hand".to_owned());
            res.servers[0].error = Some({
                let mut error = HostError::of_server(ErrorKind::Connection, "a", detail);
                error.help = help;
                error
            });
            res
        };
        let reason = "it ended at once (start it by hand)";
        check(&starting, &with_error(Failed), &[(Level::ERROR, &format!("server a failed: {reason}"))]);
        let down = with_error(Restarting);
        check(&starting, &down, &[(Level::WARN, &format!("server a is down: {reason}"))]);
        let up = published(&[("a", Ready), ("b", Ready)]);
        check(&down, &up, &[(Level::INFO, "server a is up")]);
        check(&up, &published(&[("a", Ready)]), &[(Level::INFO, "server b was removed")]);
        check(&up, &up, &[]);
    }

    // RPT-067
    #[test]
    fn problem_of_the_lists_of_a_ready_server_is_a_line() {
        let server = ServerId::parse("a").unwrap();
        let before = published(&[("a", ServerState::Ready)]);
        let mut after = before.clone();
        let problem = Problem::server_error(&server, Severity::Warning, "server 'a': it declares nothing");
        after.problems = vec![ActiveProblem { problem, since: UNIX_EPOCH }];
        check(&before, &after, &[(Level::WARN, "server 'a': it declares nothing")]);
        let mut failed = after.clone();
        failed.servers[0].error = Some(HostError::of_server(ErrorKind::Connection, "a", "no"));
        // The line of the server says the same.
        let mut without_problem = failed.clone();
        without_problem.problems.clear();
        check(&without_problem, &failed, &[]);
    }

    #[test]
    fn withheld_items_of_a_server_share_a_line() {
        let server = ServerId::parse("a").unwrap();
        let problem = |number: usize| {
            let kind = ProblemKind::Hidden { list: ListKind::Tool, verdict: ExposureVerdict::NotApproved };
            let mut problem = Problem::server_error(&server, Severity::Warning, "m");
            (problem.id, problem.kind) = (format!("p{number}"), kind);
            problem.tool = Some(format!("t{number}"));
            ActiveProblem { problem, since: UNIX_EPOCH }
        };
        let before = published(&[("a", ServerState::Ready)]);
        let mut after = before.clone();
        after.problems = (0..12).map(problem).collect();
        let text = "withheld 12 items of server a that differ from mcp.lock: t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 \
            and 2 more";
        check(&before, &after, &[(Level::WARN, text)]);
    }
}

//! Events of a running host, as text lines or as one JSON document per line.

use anstyle::Style;
use mcp_host_config::{Colour, Diagnostic};
use mcp_host_model::{ServerId, Severity};
use mcp_host_registry::{Catalog, CatalogDiff, ExposedName, ListDiff, ReloadPlan};
use mcp_host_runtime::{
    ActiveProblem, FilePresence, FollowEvent, HostError, HostSnapshot, RefusedFile, Reload, ReloadedFile,
    ServerState, ServerStatus, ShadowedServer, WatchMode,
};
use serde::Serialize;

use crate::output::{self, sanitize, style};

/// One event.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum EventLine {
    /// The files are being watched.
    Watching {
        /// Whether the system reports changes, or the files are polled.
        by: WatchMethod,
        /// Why the system cannot report changes.
        reason: Option<String>,
    },
    /// New content of the files was applied.
    Reloaded {
        /// The files that changed.
        files: Vec<ReloadedFileJson>,
        /// The effect on each server.
        #[serde(flatten)]
        plan: ReloadPlan,
        /// Entries that an earlier file overrides.
        shadowed: Vec<String>,
    },
    /// A new lock file was applied.
    Approved {
        /// The path of the lock file.
        path: String,
    },
    /// A file was refused; the previous content stays in use.
    Refused {
        /// The path of the file.
        path: String,
        /// The reason.
        error: HostError,
        /// All diagnostics of the file.
        diagnostics: Vec<Diagnostic>,
    },
    /// A server changed its state.
    Server(ServerStatus),
    /// A server was removed.
    ServerRemoved {
        /// Its name.
        name: String,
    },
    /// The catalog changed.
    Catalog {
        /// The new generation.
        generation: u64,
        /// The number of tools.
        count: usize,
        /// The changes.
        #[serde(flatten)]
        difference: Box<CatalogDiff>,
    },
    /// A problem appeared or changed.
    Problem(ActiveProblem),
    /// A problem was resolved.
    ProblemCleared {
        /// Its id.
        id: String,
    },
    /// Events were dropped because the queue was full.
    Missed {
        /// How many.
        events: u64,
    },
}

/// How file changes are detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WatchMethod {
    System,
    Poll,
}

/// A file of a reload.
#[derive(Debug, Serialize)]
pub(crate) struct ReloadedFileJson {
    path: String,
    present: bool,
    diagnostics: Vec<Diagnostic>,
}

/// The lines of a file event.
pub(crate) fn file_event_lines(event: FollowEvent) -> Vec<EventLine> {
    match event {
        FollowEvent::WatchModeChanged(WatchMode::System) => {
            vec![EventLine::Watching { by: WatchMethod::System, reason: None }]
        }
        FollowEvent::WatchModeChanged(WatchMode::PollOnly(reason)) => {
            vec![EventLine::Watching { by: WatchMethod::Poll, reason }]
        }
        FollowEvent::Reloaded(Reload { files, plan, shadowed, .. }) => {
            let file = |file: ReloadedFile| ReloadedFileJson {
                path: file.path,
                present: file.presence == FilePresence::Present,
                diagnostics: file.diagnostics,
            };
            vec![EventLine::Reloaded {
                files: files.into_iter().map(file).collect(),
                plan,
                shadowed: shadowed.iter().map(ShadowedServer::to_string).collect(),
            }]
        }
        FollowEvent::Refused(RefusedFile { path, error, diagnostics, .. }) => {
            vec![EventLine::Refused { path, error, diagnostics }]
        }
        FollowEvent::Approved(path) => vec![EventLine::Approved { path }],
        FollowEvent::Lagged(events) => vec![EventLine::Missed { events }],
        // Other events are visible by their effects.
        _ => Vec::new(),
    }
}

/// The lines of the changes from one generation to a later one.
pub(crate) fn change_lines(before: &HostSnapshot, after: &HostSnapshot) -> Vec<EventLine> {
    let mut lines = Vec::new();
    let removed = before.servers.iter().filter(|it| !after.servers.iter().any(|now| now.id == it.id));
    lines.extend(removed.map(|it| EventLine::ServerRemoved { name: it.id.to_string() }));
    let changed = after.servers.iter().filter(|it| !before.servers.contains(it));
    lines.extend(changed.cloned().map(EventLine::Server));
    if before.catalog.hash() != after.catalog.hash() {
        let difference = Catalog::diff(&before.catalog, &after.catalog);
        let (generation, count) = (after.generation, after.catalog.tools().len());
        if !difference.is_empty() {
            lines.push(EventLine::Catalog { generation, count, difference: Box::new(difference) });
        }
    }
    let cleared =
        before.problems.iter().filter(|it| !after.problems.iter().any(|now| now.problem.id == it.problem.id));
    lines.extend(cleared.map(|it| EventLine::ProblemCleared { id: it.problem.id.clone() }));
    let new = after.problems.iter().filter(|it| !before.problems.contains(it));
    lines.extend(new.cloned().map(EventLine::Problem));
    lines
}

impl EventLine {
    /// Whether the files contain a mistake.
    pub(crate) fn is_file_problem(&self) -> bool {
        match self {
            EventLine::Reloaded { files, plan: _, shadowed } => {
                !shadowed.is_empty() || files.iter().any(|file| !file.diagnostics.is_empty())
            }
            event => matches!(event, EventLine::Refused { .. }),
        }
    }

    /// The event as text. Each diagnostic of a file has its own line.
    pub(crate) fn text(&self, colour: Colour) -> String {
        let mut res = EventText { colour, text: String::new() };
        match self {
            EventLine::Watching { by: WatchMethod::System, reason: _ } => {
                res.line(style::NOTE, "watching", "for changes")
            }
            EventLine::Watching { by: WatchMethod::Poll, reason } => {
                let reason = reason.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
                res.line(style::NOTE, "polling", &format!("for changes{reason}"));
            }
            EventLine::Reloaded { files, plan, shadowed } => {
                let paths = files.iter().map(|file| match file.present {
                    true => file.path.clone(),
                    false => format!("{} (missing)", file.path),
                });
                let paths = paths.collect::<Vec<_>>().join(", ");
                res.line(style::NOTE, "reloaded", &format!("{paths}: {}", plan_text(plan)));
                for file in files {
                    res.diagnostics(&file.path, &file.diagnostics);
                }
                shadowed.iter().for_each(|it| res.line(style::NOTE, "shadowed", it));
            }
            EventLine::Approved { path } => {
                res.line(style::NOTE, "approved", &format!("by {path}"));
            }
            EventLine::Refused { path, error, diagnostics } => {
                res.line(style::FAILURE, "refused", &error.to_string());
                res.diagnostics(path, diagnostics);
            }
            EventLine::Server(ServerStatus { id, state, era, error, .. }) => {
                let style = match state {
                    ServerState::Ready => style::SUCCESS,
                    ServerState::Disabled => style::DIM,
                    ServerState::Failed | ServerState::Stopped => style::FAILURE,
                    _ => style::WARNING,
                };
                let era = era.map(|it| format!(" ({})", it.as_str())).unwrap_or_default();
                // The cause comes first, because a full screen cuts the line.
                let error = error.as_ref().map(|error| format!(": {}", error.detail())).unwrap_or_default();
                res.line(style, state.as_str(), &format!("{id}{era}{error}"));
            }
            EventLine::ServerRemoved { name } => res.line(style::DIM, "removed", name),
            EventLine::Catalog { generation, count, difference } => {
                let CatalogDiff { tools, prompts, resources, templates, toolsets: _, .. } = &**difference;
                let ListDiff { added, removed, changed, .. } = tools;
                let names = |sign: char, names: &[ExposedName]| {
                    names.iter().map(|it| format!(" {sign}{it}")).collect::<String>()
                };
                let names = names('+', added) + &names('-', removed) + &names('*', changed);
                let tools = output::count(*count, "tool");
                let others = change_count(prompts, "prompt")
                    + &change_count(resources, "resource")
                    + &change_count(templates, "template");
                res.line(style::NOTE, "generation", &format!("{generation}: {tools}{names}{others}"));
            }
            EventLine::Problem(ActiveProblem { problem, since: _ }) => {
                res.severity_line(problem.severity, &format!("{}: {}", problem.id, problem.message));
            }
            EventLine::ProblemCleared { id } => res.line(style::SUCCESS, "cleared", id),
            EventLine::Missed { events } => {
                res.line(style::WARNING, "missed", &format!("{events} events: they arrived too fast"));
            }
        }
        res.text
    }
}

/// The number of changes in another list: ` (2 prompts)`; empty if there are none.
fn change_count<K>(changes: &ListDiff<K>, noun: &str) -> String {
    let ListDiff { added, removed, changed, .. } = changes;
    match added.len() + removed.len() + changed.len() {
        0 => String::new(),
        changed => format!(" ({})", output::count(changed, noun)),
    }
}

/// Builds text lines. The first word is ours; the rest may be untrusted text.
struct EventText {
    colour: Colour,
    text: String,
}

impl EventText {
    /// Appends a line.
    fn line(&mut self, style: Style, word: &str, rest: &str) {
        let word = style::paint(self.colour, style, word);
        self.text.push_str(&format!("{word} {}\n", sanitize::line(rest)));
    }

    fn severity_line(&mut self, severity: Severity, rest: &str) {
        let word = style::severity(self.colour, severity);
        self.text.push_str(&format!("{word} {}\n", sanitize::line(rest)));
    }

    /// One line per diagnostic: `error file:line:column: message`.
    fn diagnostics(&mut self, path: &str, diagnostics: &[Diagnostic]) {
        for it in diagnostics {
            let help = it.help.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
            self.severity_line(it.severity, &format!("{path}:{}:{}: {it}{help}", it.line, it.column));
        }
    }
}

/// The effect of a reload on the servers: `added a; changed b, c`.
fn plan_text(plan: &ReloadPlan) -> String {
    let ReloadPlan { added, removed, changed, re_exposed, unchanged, .. } = plan;
    let lists = [
        ("added", added),
        ("removed", removed),
        ("changed", changed),
        ("renamed or filtered", re_exposed),
        ("unchanged", unchanged),
    ];
    let lists = lists.iter().filter(|(_, ids)| !ids.is_empty()).map(|(word, ids)| {
        format!("{word} {}", ids.iter().map(ServerId::as_str).collect::<Vec<_>>().join(", "))
    });
    let lists: Vec<String> = lists.collect();
    if lists.is_empty() { "no servers".to_owned() } else { lists.join("; ") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    use mcp_host_model::{Era, ErrorKind, Exposure, NamePolicy, RawJson, read_tools};
    use mcp_host_registry::{Builtins, CatalogServer, Problem, ServerLists};

    use super::*;
    use crate::tests::published;

    fn with_tools(names: &[&str], before: HostSnapshot) -> HostSnapshot {
        let tools: Vec<String> =
            names.iter().map(|it| format!(r#"{{"name":"{it}","inputSchema":{{}}}}"#)).collect();
        let page = RawJson::parse(format!(r#"{{"tools":[{}]}}"#, tools.join(",")).into()).unwrap();
        let lists = Arc::new(ServerLists::of_tools(read_tools(&page).unwrap().into_shared()));
        let id = ServerId::parse("s").unwrap();
        let entry = CatalogServer::new(id, Exposure::all(NamePolicy::Reject), lists);
        let catalog = Arc::new(Catalog::build(&Builtins::default(), &[entry]));
        let mut snapshot = before;
        snapshot.generation += 1;
        snapshot.catalog = catalog;
        snapshot
    }

    #[track_caller]
    fn check(before: &HostSnapshot, after: &HostSnapshot, want: &str) {
        let text: String = change_lines(before, after).iter().map(|it| it.text(Colour::Never)).collect();
        assert_eq!(text, want);
    }

    #[test]
    fn server_changes_have_lines() {
        use ServerState::{Failed, Ready, Starting};
        let before = published(&[("a", Starting), ("b", Ready)]);
        check(&before, &before, "");
        let mut after = published(&[("a", Failed), ("c", Starting)]);
        after.servers[0].error = Some(HostError::new(ErrorKind::Connection, "it \u{1b}[2Jended\nat once"));
        check(&before, &after, "removed b\nfailed a: it ended at once\nstarting c\n");
        let mut ready = published(&[("a", Ready), ("b", Ready)]);
        ready.servers[0].era = Some(Era::Modern);
        check(&before, &ready, "ready a (modern)\n");
    }

    #[test]
    fn tool_and_problem_changes_have_lines() {
        let before = with_tools(&["x", "y"], published(&[]));
        let mut after = with_tools(&["y", "z"], before.clone());
        check(&before, &after, "generation 3: 2 tools +z -x\n");
        let problem = Problem::workspace_config_error("it is broken");
        after.problems.push(ActiveProblem { problem, since: UNIX_EPOCH });
        let text = "generation 3: 2 tools +z -x\nerror mcp/workspace_config_error: it is broken\n";
        check(&before, &after, text);
        check(&after, &before, "generation 2: 2 tools +x -z\ncleared mcp/workspace_config_error\n");
    }

    #[test]
    fn json_document_is_one_line_with_its_event_name() {
        let before = with_tools(&["x"], published(&[]));
        let mut after = with_tools(&["x", "y"], published(&[("a", ServerState::Ready)]));
        let problem = Problem::workspace_config_error("m");
        after.problems.push(ActiveProblem { problem, since: UNIX_EPOCH });
        let lines: Vec<String> =
            change_lines(&before, &after).iter().map(crate::output::json::line).collect();
        assert_eq!(
            lines.concat(),
            concat!(
                r#"{"event":"server","name":"a","state":"ready","era":null,"error":null}"#,
                "\n",
                r#"{"event":"catalog","generation":2,"count":2,"tools":{"added":["y"],"removed":[],"changed":[]},"#,
                r#""prompts":{"added":[],"removed":[],"changed":[]},"#,
                r#""resources":{"added":[],"removed":[],"changed":[]},"#,
                r#""templates":{"added":[],"removed":[],"changed":[]},"#,
                r#""toolsets":{"added":[],"removed":[],"changed":["s"]}}"#,
                "\n",
                r#"{"event":"problem","id":"mcp/workspace_config_error","kind":"mcp_workspace_config_error","#,
                r#""severity":"error","server":null,"tool":null,"message":"m","since":"1970-01-01T00:00:00.000Z"}"#,
                "\n",
            )
        );
    }

    #[track_caller]
    fn check_event(event: FollowEvent, text: &str, document: &str) {
        let lines = file_event_lines(event);
        assert_eq!(lines.iter().map(|it| it.text(Colour::Never)).collect::<String>(), text);
        assert_eq!(lines.iter().map(crate::output::json::line).collect::<String>(), document);
    }

    #[test]
    fn file_events_have_lines() {
        check_event(
            FollowEvent::WatchModeChanged(WatchMode::System),
            "watching for changes\n",
            "{\"event\":\"watching\",\"by\":\"system\",\"reason\":null}\n",
        );
        check_event(
            FollowEvent::WatchModeChanged(WatchMode::PollOnly(Some("too many".into()))),
            "polling for changes: too many\n",
            "{\"event\":\"watching\",\"by\":\"poll\",\"reason\":\"too many\"}\n",
        );
        let id = |it| ServerId::parse(it).unwrap();
        let mut plan = ReloadPlan::default();
        plan.added = vec![id("a")];
        plan.changed = vec![id("b"), id("c")];
        let file = ReloadedFile::new("f", FilePresence::Absent);
        let shadowed = vec![ShadowedServer::new("d", "g", "f")];
        check_event(
            FollowEvent::Reloaded({
                let mut reload = Reload::default();
                reload.files = vec![file];
                reload.plan = plan;
                reload.shadowed = shadowed;
                reload
            }),
            "reloaded f (missing): added a; changed b, c\n\
             shadowed server 'd' of g is shadowed by that of f, which takes precedence\n",
            concat!(
                r#"{"event":"reloaded","files":[{"path":"f","present":false,"diagnostics":[]}],"added":["a"],"removed":[],"#,
                r#""changed":["b","c"],"re_exposed":[],"unchanged":[],"shadowed":["server 'd' of g is shadowed by that of "#,
                r#"f, which takes precedence"]}"#,
                "\n",
            ),
        );
        check_event(
            FollowEvent::Approved("mcp.lock".into()),
            "approved by mcp.lock\n",
            "{\"event\":\"approved\",\"path\":\"mcp.lock\"}\n",
        );
        let failure = HostError::new(ErrorKind::Config, "no");
        check_event(
            FollowEvent::Refused(RefusedFile::new("f", failure)),
            "refused ConfigError: no\n",
            concat!(
                r#"{"event":"refused","path":"f","error":{"kind":"ConfigError","message":"no"},"diagnostics":[]}"#,
                "\n"
            ),
        );
    }
}

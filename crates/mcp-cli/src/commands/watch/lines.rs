//! What is told of each thing that happens: one line in words, or one document on one line.

use anstyle::Style;
use mcp_config::{Colour, Diagnostic};
use mcp_host::{
    ActiveProblem, FilePresence, FollowEvent, HostError, HostSnapshot, RefusedFile, Reload, ReloadedFile,
    ServerState, ServerStatus, ShadowedServer, WatchMode,
};
use mcp_model::{ServerId, Severity};
use mcp_registry::{Catalog, CatalogDiff, ExposedName, ListDiff, ReloadPlan};
use serde::Serialize;

use crate::output::{paint, plain};

/// One thing that happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Line {
    /// How changes are noticed from now on.
    Watching {
        /// Does the system tell of them? Otherwise they are looked for.
        by: By,
        /// Why it does not.
        reason: Option<String>,
    },
    /// Other content was taken.
    Reloaded {
        /// The files that are others now.
        files: Vec<File>,
        /// What becomes of each server.
        #[serde(flatten)]
        servers: Servers,
        /// What does not count because of an earlier file.
        shadowed: Vec<String>,
    },
    /// Another lock says what is approved.
    Approved {
        /// The lock.
        path: String,
    },
    /// A file is not used as it is.
    Refused {
        /// The file.
        path: String,
        /// Why not.
        error: HostError,
        /// All that is wrong with it.
        diagnostics: Vec<Diagnostic>,
    },
    /// A server is in another state.
    Server(ServerStatus),
    /// A server is none any more.
    ServerRemoved {
        /// Its name.
        name: String,
    },
    /// There are other tools, prompts or resources.
    Catalog {
        /// The generation that has them.
        generation: u64,
        /// How many tools there are.
        count: usize,
        /// What is other.
        #[serde(flatten)]
        difference: Box<CatalogDiff>,
    },
    /// There is another problem.
    Problem(ActiveProblem),
    /// There is no such problem any more.
    ProblemCleared {
        /// Its id.
        id: String,
    },
    /// There was more to tell than could be told.
    Missed {
        /// So many events.
        events: u64,
    },
}

/// Who notices changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    System,
    Poll,
}

/// A file of a reload.
#[derive(Debug, Serialize)]
pub(crate) struct File {
    path: String,
    present: bool,
    diagnostics: Vec<Diagnostic>,
}

/// What a reload did.
#[derive(Debug, Serialize)]
pub(crate) struct Servers {
    added: Vec<ServerId>,
    removed: Vec<ServerId>,
    changed: Vec<ServerId>,
    re_exposed: Vec<ServerId>,
    unchanged: Vec<ServerId>,
}

/// What is told of an event of the files.
pub(crate) fn of_event(event: FollowEvent) -> Vec<Line> {
    match event {
        FollowEvent::WatchModeChanged(WatchMode::System) => {
            vec![Line::Watching { by: By::System, reason: None }]
        }
        FollowEvent::WatchModeChanged(WatchMode::PollOnly(reason)) => {
            vec![Line::Watching { by: By::Poll, reason }]
        }
        FollowEvent::Reloaded(Reload { files, plan, shadowed }) => {
            let file = |it: ReloadedFile| File {
                path: it.path,
                present: it.presence == FilePresence::Present,
                diagnostics: it.diagnostics,
            };
            let ReloadPlan { added, removed, changed, re_exposed, unchanged } = plan;
            vec![Line::Reloaded {
                files: files.into_iter().map(file).collect(),
                servers: Servers { added, removed, changed, re_exposed, unchanged },
                shadowed: shadowed.iter().map(ShadowedServer::to_string).collect(),
            }]
        }
        FollowEvent::Refused(RefusedFile { path, error: failure, diagnostics }) => {
            vec![Line::Refused { path, error: failure, diagnostics }]
        }
        FollowEvent::Approved(path) => vec![Line::Approved { path }],
        FollowEvent::Lagged(events) => vec![Line::Missed { events }],
        // What is not known here yet is told by its effects.
        _ => Vec::new(),
    }
}

/// What is told of the way from one generation to a later one.
pub(crate) fn between(before: &HostSnapshot, after: &HostSnapshot) -> Vec<Line> {
    let mut res = Vec::new();
    let gone = before.servers.iter().filter(|it| !after.servers.iter().any(|now| now.id == it.id));
    res.extend(gone.map(|it| Line::ServerRemoved { name: it.id.clone() }));
    let other = after.servers.iter().filter(|it| !before.servers.contains(it));
    res.extend(other.cloned().map(Line::Server));
    if before.catalog.hash() != after.catalog.hash() {
        let difference = Catalog::diff(&before.catalog, &after.catalog);
        let (generation, count) = (after.generation, after.catalog.tools().len());
        if !difference.is_empty() {
            res.push(Line::Catalog { generation, count, difference: Box::new(difference) });
        }
    }
    let cleared =
        before.problems.iter().filter(|it| !after.problems.iter().any(|now| now.problem.id == it.problem.id));
    res.extend(cleared.map(|it| Line::ProblemCleared { id: it.problem.id.clone() }));
    let news = after.problems.iter().filter(|it| !before.problems.contains(it));
    res.extend(news.cloned().map(Line::Problem));
    res
}

impl Line {
    /// Does it tell of something to mend in the files?
    pub(crate) fn is_mistake(&self) -> bool {
        match self {
            Line::Refused { .. } => true,
            Line::Reloaded { files, servers: _, shadowed } => {
                !shadowed.is_empty() || files.iter().any(|it| !it.diagnostics.is_empty())
            }
            Line::Watching { .. }
            | Line::Approved { .. }
            | Line::Server(_)
            | Line::ServerRemoved { .. }
            | Line::Catalog { .. }
            | Line::Problem(_)
            | Line::ProblemCleared { .. }
            | Line::Missed { .. } => false,
        }
    }

    /// In words, a line end behind each line. Mistakes of a file have a line each.
    pub(crate) fn text(&self, colour: Colour) -> String {
        let mut res = Told { colour, text: String::new() };
        match self {
            Line::Watching { by: By::System, reason: _ } => res.line(paint::NOTE, "watching", "for changes"),
            Line::Watching { by: By::Poll, reason } => {
                let reason = reason.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
                res.line(paint::NOTE, "looking", &format!("for changes now and then{reason}"));
            }
            Line::Reloaded { files, servers, shadowed } => {
                let paths = files.iter().map(|it| match it.present {
                    true => it.path.clone(),
                    false => format!("{} (it is not there)", it.path),
                });
                let paths = paths.collect::<Vec<_>>().join(", ");
                res.line(paint::NOTE, "reloaded", &format!("{paths}: {}", servers.text()));
                for file in files {
                    res.mistakes(&file.path, &file.diagnostics);
                }
                shadowed.iter().for_each(|it| res.line(paint::NOTE, "shadowed", it));
            }
            Line::Approved { path } => {
                res.line(paint::NOTE, "approved", &format!("is what {path} says"));
            }
            Line::Refused { path, error, diagnostics } => {
                res.line(paint::BAD, "refused", &error.to_string());
                res.mistakes(path, diagnostics);
            }
            Line::Server(ServerStatus { id, state, era, error: failure }) => {
                let style = match state {
                    ServerState::Ready => paint::GOOD,
                    ServerState::Starting | ServerState::Restarting => paint::DOUBTFUL,
                    ServerState::Disabled => paint::FAINT,
                    ServerState::Failed | ServerState::Stopped => paint::BAD,
                };
                let era = era.map(|it| format!(" ({})", it.as_str())).unwrap_or_default();
                let failure = failure.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
                res.line(style, state.as_str(), &format!("{id}{era}{failure}"));
            }
            Line::ServerRemoved { name } => res.line(paint::FAINT, "removed", name),
            Line::Catalog { generation, count, difference } => {
                let CatalogDiff { tools, prompts, resources, templates, toolsets: _ } = &**difference;
                let ListDiff { added, removed, changed } = tools;
                let names = |sign: char, names: &[ExposedName]| {
                    names.iter().map(|it| format!(" {sign}{it}")).collect::<String>()
                };
                let names = names('+', added) + &names('-', removed) + &names('*', changed);
                let noun = if *count == 1 { "tool" } else { "tools" };
                let besides = other(prompts, "prompts")
                    + &other(resources, "resources")
                    + &other(templates, "templates");
                res.line(paint::NOTE, "generation", &format!("{generation}: {count} {noun}{names}{besides}"));
            }
            Line::Problem(ActiveProblem { problem, since: _ }) => {
                res.severe(problem.severity, &format!("{}: {}", problem.id, problem.message));
            }
            Line::ProblemCleared { id } => res.line(paint::GOOD, "cleared", id),
            Line::Missed { events } => {
                res.line(
                    paint::DOUBTFUL,
                    "missed",
                    &format!("{events} events that were not fetched in time"),
                );
            }
        }
        res.text
    }
}

/// How many of another list are not what they were: ` (2 prompts)`; nothing where none is.
fn other<K>(changes: &ListDiff<K>, what: &str) -> String {
    let ListDiff { added, removed, changed } = changes;
    match added.len() + removed.len() + changed.len() {
        0 => String::new(),
        count => format!(" ({count} {what})"),
    }
}

/// Lines in words: a word of ours, and what may be a stranger's.
struct Told {
    colour: Colour,
    text: String,
}

impl Told {
    fn line(&mut self, style: Style, word: &str, rest: &str) {
        let word = paint::paint(self.colour, style, word);
        self.text.push_str(&format!("{word} {}\n", plain::line(rest)));
    }

    fn severe(&mut self, severity: Severity, rest: &str) {
        let word = paint::severity(self.colour, severity);
        self.text.push_str(&format!("{word} {}\n", plain::line(rest)));
    }

    /// `error file:line:column: what`.
    fn mistakes(&mut self, path: &str, diagnostics: &[Diagnostic]) {
        for it in diagnostics {
            let help = it.help.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
            self.severe(it.severity, &format!("{path}:{}:{}: {it}{help}", it.line, it.column));
        }
    }
}

impl Servers {
    fn text(&self) -> String {
        let Servers { added, removed, changed, re_exposed, unchanged } = self;
        let lists = [
            ("added", added),
            ("removed", removed),
            ("changed", changed),
            ("shown otherwise", re_exposed),
            ("unchanged", unchanged),
        ];
        let lists = lists.iter().filter(|it| !it.1.is_empty()).map(|(word, ids)| {
            format!("{word} {}", ids.iter().map(ServerId::as_str).collect::<Vec<_>>().join(", "))
        });
        let lists: Vec<String> = lists.collect();
        match lists.is_empty() {
            true => "no servers".to_owned(),
            false => lists.join("; "),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    use mcp_model::{Era, ErrorKind, Exposure, NamePolicy, RawJson, read_tools};
    use mcp_registry::{Builtins, Problem, ServerEntry, ServerLists};

    use super::*;
    use crate::fixture::published;

    fn with_tools(names: &[&str], before: HostSnapshot) -> HostSnapshot {
        let tools: Vec<String> =
            names.iter().map(|it| format!(r#"{{"name":"{it}","inputSchema":{{}}}}"#)).collect();
        let page = RawJson::parse(format!(r#"{{"tools":[{}]}}"#, tools.join(",")).into()).unwrap();
        let lists = Arc::new(ServerLists {
            tools: read_tools(&page).unwrap().into_shared(),
            ..ServerLists::default()
        });
        let id = ServerId::parse("s").unwrap();
        let entry = ServerEntry { id, exposure: Exposure::all(NamePolicy::Reject), lists };
        let catalog = Arc::new(Catalog::build(&Builtins::default(), &[entry]));
        HostSnapshot { generation: before.generation + 1, catalog, ..before }
    }

    #[track_caller]
    fn check(before: &HostSnapshot, after: &HostSnapshot, want: &str) {
        let told: String = between(before, after).iter().map(|it| it.text(Colour::Never)).collect();
        assert_eq!(told, want);
    }

    #[test]
    fn a_generation_is_told_by_what_is_another_than_before() {
        use ServerState::{Failed, Ready, Starting};
        let before = published(&[("a", Starting), ("b", Ready)]);
        check(&before, &before, "");
        let mut after = published(&[("a", Failed), ("c", Starting)]);
        after.servers[0].error = Some(HostError {
            kind: ErrorKind::Connection,
            message: "it \u{1b}[2Jended\nat once".into(),
            help: None,
        });
        check(&before, &after, "removed b\nfailed a: MCPConnectionError: it ended at once\nstarting c\n");
        let mut ready = published(&[("a", Ready), ("b", Ready)]);
        ready.servers[0].era = Some(Era::Modern);
        check(&before, &ready, "ready a (modern)\n");
    }

    #[test]
    fn tools_and_problems_come_and_go() {
        let before = with_tools(&["x", "y"], published(&[]));
        let mut after = with_tools(&["y", "z"], before.clone());
        check(&before, &after, "generation 3: 2 tools +z -x\n");
        let problem = Problem::workspace_config_error("it is broken");
        after.problems.push(ActiveProblem { problem, since: UNIX_EPOCH });
        let told = "generation 3: 2 tools +z -x\nerror mcp/workspace_config_error: it is broken\n";
        check(&before, &after, told);
        check(&after, &before, "generation 2: 2 tools +x -z\ncleared mcp/workspace_config_error\n");
    }

    #[test]
    fn a_document_is_one_line_and_says_what_it_is() {
        let before = with_tools(&["x"], published(&[]));
        let mut after = with_tools(&["x", "y"], published(&[("a", ServerState::Ready)]));
        let problem = Problem::workspace_config_error("m");
        after.problems.push(ActiveProblem { problem, since: UNIX_EPOCH });
        let told: Vec<String> = between(&before, &after).iter().map(crate::output::json::line).collect();
        assert_eq!(
            told.concat(),
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
        let lines = of_event(event);
        assert_eq!(lines.iter().map(|it| it.text(Colour::Never)).collect::<String>(), text);
        assert_eq!(lines.iter().map(crate::output::json::line).collect::<String>(), document);
    }

    #[test]
    fn what_happens_to_the_files_is_told() {
        check_event(
            FollowEvent::WatchModeChanged(WatchMode::System),
            "watching for changes\n",
            "{\"event\":\"watching\",\"by\":\"system\",\"reason\":null}\n",
        );
        check_event(
            FollowEvent::WatchModeChanged(WatchMode::PollOnly(Some("too many".into()))),
            "looking for changes now and then: too many\n",
            "{\"event\":\"watching\",\"by\":\"poll\",\"reason\":\"too many\"}\n",
        );
        let id = |it| ServerId::parse(it).unwrap();
        let plan =
            ReloadPlan { added: vec![id("a")], changed: vec![id("b"), id("c")], ..ReloadPlan::default() };
        let file = ReloadedFile { path: "f".into(), presence: FilePresence::Absent, diagnostics: Vec::new() };
        let shadowed = vec![ShadowedServer { server: "d".into(), file: "g".into(), by: "f".into() }];
        check_event(
            FollowEvent::Reloaded(Reload { files: vec![file], plan, shadowed }),
            "reloaded f (it is not there): added a; changed b, c\n\
             shadowed server 'd' of g is shadowed by that of f, which stands before it\n",
            concat!(
                r#"{"event":"reloaded","files":[{"path":"f","present":false,"diagnostics":[]}],"added":["a"],"removed":[],"#,
                r#""changed":["b","c"],"re_exposed":[],"unchanged":[],"shadowed":["server 'd' of g is shadowed by that of "#,
                r#"f, which stands before it"]}"#,
                "\n",
            ),
        );
        check_event(
            FollowEvent::Approved("mcp.lock".into()),
            "approved is what mcp.lock says\n",
            "{\"event\":\"approved\",\"path\":\"mcp.lock\"}\n",
        );
        let failure = HostError { kind: ErrorKind::Config, message: "no".into(), help: None };
        check_event(
            FollowEvent::Refused(RefusedFile { path: "f".into(), error: failure, diagnostics: Vec::new() }),
            "refused ConfigError: no\n",
            concat!(
                r#"{"event":"refused","path":"f","error":{"kind":"ConfigError","message":"no"},"diagnostics":[]}"#,
                "\n"
            ),
        );
    }
}

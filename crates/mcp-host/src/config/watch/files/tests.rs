//! Tests of followed files: a sequence of contents and the events that it causes, without file system and clock.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use mcp_host_model::Era;
use mcp_host_registry::{ProblemKind, ReloadPlan};

use super::*;
use crate::config::load::FileError;
use crate::config::load::load_with;
use crate::config::watch::snapshot::FileContent;
use crate::supervisor::machine::tests::fixture::listing;
use crate::supervisor::machine::{Machine, MachineAction, MachineEvent, MachineSettings, StartedInstance};

/// The content of each file: in `a b=2 c!`, `b` has another revision and `c` is invalid; `?` is a text that cannot
/// be parsed, `-` a missing file.
type Disk<'a> = BTreeMap<&'a str, &'a str>;

fn text(path: &str, words: &str) -> Option<String> {
    let is_dominds = path.ends_with("mcp.yaml");
    match (words, is_dominds) {
        ("-", _) => return None,
        ("", _) => return Some(String::new()),
        ("?", true) => return Some("version: 1\nservers: {a\n".to_owned()),
        ("?", false) => return Some("name: a\ntools: [\n".to_owned()),
        (words, false) if path.ends_with("mcp.json") => {
            let servers = words.split_whitespace().map(|id| format!(r#""{id}":{{"command":"npx"}}"#));
            return Some(format!(r#"{{"mcpServers":{{{}}}}}"#, servers.collect::<Vec<_>>().join(",")));
        }
        // The text of an environment file is used unchanged.
        (words, false) if !path.ends_with("agent.yaml") => return Some(words.to_owned()),
        (_, true | false) => {}
    }
    let mut res = String::from(if is_dominds { "version: 1\nservers:\n" } else { "name: a\ntools:\n" });
    for word in words.split_whitespace() {
        let (id, revision) = word.split_once('=').unwrap_or((word.trim_end_matches('!'), "1"));
        let command = if word.ends_with('!') { "comand" } else { "command" };
        res.push_str(&match is_dominds {
            true => format!("  {id}: {{transport: stdio, {command}: npx, args: ['{revision}']}}\n"),
            false => format!(
                "  - {{name: {id}, description: d, type: mcp, server: s, {command}: npx, args: ['{revision}'], \
                 envFile: s.env}}\n"
            ),
        });
    }
    Some(res)
}

fn read_config(request: &LoadRequest, disk: &Disk<'_>) -> FileSnapshot {
    let sources = std::cell::RefCell::new(SourceContents::new());
    let outcome = load_with(request, &|path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let words = disk.iter().find(|it| Path::new(it.0).file_name() == path.file_name());
        let text = words.and_then(|(path, words)| text(path, words));
        let content = match &text {
            None => FileContent::Absent,
            Some(text) if text.is_empty() => FileContent::Empty,
            Some(text) => FileContent::Text(blake3::hash(text.as_bytes())),
        };
        sources.borrow_mut().insert(PathBuf::from(name), content);
        text.ok_or_else(|| FileError::Io(io::ErrorKind::NotFound.into()))
    });
    FileSnapshot { sources: sources.into_inner(), outcome }
}

/// The time in milliseconds, the changes since the last step, and the expected outcome of the read.
type Step<'a> = (u64, &'a [(&'a str, &'a str)], &'a str);

/// Runs the steps for `paths`, with a settle time of 1 s.
#[track_caller]
fn check(paths: &[&str], steps: &[Step<'_>]) {
    let begun = Instant::now();
    let requests: Vec<LoadRequest> = paths.iter().map(LoadRequest::new).collect();
    let mut files = FollowedFiles::new(requests.clone(), Duration::from_secs(1));
    let mut disk = Disk::new();
    let mut machine = Machine::new(MachineSettings::default());
    for (number, (at, changes, want)) in steps.iter().enumerate() {
        disk.extend(changes.iter().copied());
        let snapshots = requests.iter().map(|it| Some(read_config(it, &disk))).collect();
        let hint = if changes.is_empty() { ChangeHint::NotReported } else { ChangeHint::Reported };
        let update = files.update(snapshots, hint, begun + Duration::from_millis(*at));
        let mut words: Vec<String> = update.refused.iter().map(refused).collect();
        if let Some(desired) = &update.desired {
            words.push(reloaded(&update.reloaded, &configure(&mut machine, desired), files.shadowed()));
        }
        words.extend(update.recheck_at.map(|it| format!("again at {}", (it - begun).as_millis())));
        if let Some(desired) = &update.desired {
            let servers = desired.servers.iter().map(|it| it.spec.id.to_string());
            let failed = desired.failed.iter().map(|it| format!("{}!", it.id));
            words.push(format!("wants [{}]", servers.chain(failed).collect::<Vec<_>>().join(" ")));
        }
        words.extend(files.problems(None).into_iter().map(|it| match it.kind {
            ProblemKind::ServerShadowed => format!("shadowed {}", it.server.unwrap()),
            _ => "problem".to_owned(),
        }));
        assert_eq!(words.join(", "), *want, "step {number}");
    }
}

/// Applies a configuration to a host whose servers start at once; returns what changed.
fn configure(machine: &mut Machine<u64>, desired: &DesiredServers) -> ReloadPlan {
    let now = Instant::now();
    for action in machine.handle(MachineEvent::Configure(desired.clone()), now) {
        if let MachineAction::Start(ticket, _) = action {
            let (instance, era) = (ticket.number, Era::Legacy);
            machine.handle(
                MachineEvent::Started(ticket, StartedInstance { instance, era, listing: listing("t") }),
                now,
            );
        }
    }
    machine.take_reload_plan()
}

/// Formats a reload, with a reload plan as `+a -b *c ~d =e`: added, removed, changed, re-exposed, unchanged.
fn reloaded(files: &[ReloadedFile], plan: &ReloadPlan, shadowed: &[ShadowedServer]) -> String {
    let absent = files.iter().filter(|it| it.presence == FilePresence::Absent);
    let mut words: Vec<String> = absent.map(|it| format!("no {}", it.path)).collect();
    let ReloadPlan { added, removed, changed, re_exposed, unchanged, .. } = plan;
    let lists = [('+', added), ('-', removed), ('*', changed), ('~', re_exposed), ('=', unchanged)];
    words.extend(lists.iter().flat_map(|(sign, ids)| ids.iter().map(move |it| format!("{sign}{it}"))));
    words.extend(shadowed.iter().map(|it| format!("{}<{}", it.server, it.by)));
    format!("reloaded {}", words.join(" ")).trim().to_owned()
}

fn refused(file: &RefusedFile) -> String {
    let is_kept = file.error.message.ends_with("; its previous content remains in effect");
    format!("refused {}{}", file.path, if is_kept { ", keeps" } else { "" })
}

const DOMINDS: &[&str] = &[".minds/mcp.yaml"];
const HOLODECK: &[&str] = &["agent.yaml"];
const EDITOR: &[&str] = &[".cursor/mcp.json"];

#[test]
fn dm_091_dm_098_to_dm_101_reload_plan_has_each_changed_server() {
    check(
        DOMINDS,
        &[
            (0, &[("mcp.yaml", "a b")], "reloaded +a +b, wants [a b]"),
            (1, &[], ""),
            (2, &[("mcp.yaml", "a b=2 c")], "reloaded +c *b =a, wants [a b c]"),
            (3, &[("mcp.yaml", "c a")], "reloaded -b =c =a, wants [c a]"),
            (4, &[("mcp.yaml", "c a")], ""),
        ],
    );
}

#[test]
fn dm_105_dm_122_invalid_entry_keeps_its_server_and_all_others() {
    check(
        DOMINDS,
        &[
            (0, &[("mcp.yaml", "a b")], "reloaded +a +b, wants [a b]"),
            (1, &[("mcp.yaml", "a! b=2")], "reloaded *b =a, wants [b a!]"),
            (2, &[("mcp.yaml", "a b=2")], "reloaded =a =b, wants [a b]"),
            (3, &[("mcp.yaml", "a b=2 c!")], "reloaded =a =b, wants [a b c!]"),
            (4, &[("mcp.yaml", "a!")], "reloaded -b =a, wants [a!]"),
        ],
    );
}

#[test]
fn dm_121_dm_124_broken_file_keeps_its_previous_content() {
    check(
        DOMINDS,
        &[
            (0, &[("mcp.yaml", "?")], "refused .minds/mcp.yaml, problem"),
            (1, &[("mcp.yaml", "a")], "reloaded +a, wants [a]"),
            (2, &[("mcp.yaml", "?")], "refused .minds/mcp.yaml, keeps, problem"),
            (3, &[], "problem"),
            (4, &[("mcp.yaml", "a")], "reloaded =a, wants [a]"),
        ],
    );
}

#[test]
fn hd_134_any_error_refuses_the_whole_holodeck_file() {
    check(
        HOLODECK,
        &[
            (0, &[("agent.yaml", "a"), ("s.env", "A=1")], "reloaded +a, wants [a]"),
            (1, &[("agent.yaml", "a=2 b!")], "refused agent.yaml, keeps, problem"),
            (2, &[("agent.yaml", "a=2 b")], "reloaded +b *a, wants [a b]"),
            // HoloDeck requires its file: deleting it does not stop the servers.
            (3, &[("agent.yaml", "-")], "again at 1003"),
            (1003, &[], "refused agent.yaml, keeps, problem"),
            (1004, &[("agent.yaml", "a=2 b")], "reloaded =a =b, wants [a b]"),
        ],
    );
}

#[test]
fn hd_058_changed_env_file_reloads_its_configuration() {
    check(
        HOLODECK,
        &[
            (0, &[("agent.yaml", "a"), ("s.env", "A=1")], "reloaded +a, wants [a]"),
            (1, &[("s.env", "A=2")], "reloaded *a, wants [a]"),
            (2, &[("s.env", "")], "again at 1002"),
            (3, &[("s.env", "A=3")], "reloaded *a, wants [a]"),
            (4, &[("s.env", "-")], "again at 1004"),
            (1004, &[], "refused agent.yaml, keeps, problem"),
            (1005, &[("s.env", "A=3")], "reloaded =a, wants [a]"),
        ],
    );
}

#[test]
fn dm_094_removal_takes_effect_after_the_settle_time() {
    check(
        DOMINDS,
        &[
            (0, &[("mcp.yaml", "-")], "reloaded no .minds/mcp.yaml, wants []"),
            (1, &[("mcp.yaml", "a")], "reloaded +a, wants [a]"),
            (2, &[("mcp.yaml", "-")], "again at 1002"),
            (500, &[("mcp.yaml", "")], "again at 1500"),
            // The file was missing only during a save.
            (501, &[("mcp.yaml", "a")], ""),
            (600, &[("mcp.yaml", "-")], "again at 1600"),
            (1599, &[], "again at 1600"),
            (1600, &[], "reloaded no .minds/mcp.yaml -a, wants []"),
            (1601, &[("mcp.yaml", "a")], "reloaded +a, wants [a]"),
            // An empty file is refused, but only after the settle time.
            (1602, &[("mcp.yaml", "")], "again at 2602"),
            (2602, &[], "refused .minds/mcp.yaml, keeps, problem"),
            // The file was empty before, so its removal takes effect at once.
            (2603, &[("mcp.yaml", "-")], "reloaded no .minds/mcp.yaml -a, wants []"),
        ],
    );
}

// RPT-190
#[test]
fn file_of_an_editor_that_disappears_keeps_its_servers() {
    check(
        EDITOR,
        &[
            (0, &[("mcp.json", "-")], "reloaded no .cursor/mcp.json, wants []"),
            (1, &[("mcp.json", "a")], "reloaded +a, wants [a]"),
            // An editor that renames its new file leaves none for a moment.
            (2, &[("mcp.json", "-")], "again at 1002"),
            (3, &[("mcp.json", "a")], ""),
            (4, &[("mcp.json", "-")], "again at 1004"),
            (1004, &[], "refused .cursor/mcp.json, keeps, problem"),
            (1005, &[], "problem"),
            (1006, &[("mcp.json", "a b")], "reloaded +b =a, wants [a b]"),
            // A file without servers removes them on purpose.
            (1007, &[("mcp.json", " ")], "reloaded -a -b, wants []"),
            (1008, &[("mcp.json", "-")], "again at 2008"),
            (2008, &[], "reloaded no .cursor/mcp.json, wants []"),
        ],
    );
}

#[test]
fn dm_094_reported_changes_restart_the_settle_time() {
    let gone: &[(&str, &str)] = &[("mcp.yaml", "-")];
    check(
        DOMINDS,
        &[
            (0, &[("mcp.yaml", "a")], "reloaded +a, wants [a]"),
            (100, gone, "again at 1100"),
            (1099, gone, "again at 2099"),
            (2000, gone, "again at 3000"),
            (3000, &[], "reloaded no .minds/mcp.yaml -a, wants []"),
            (3001, &[("mcp.yaml", "a")], "reloaded +a, wants [a]"),
            // Reported changes extend the wait to at most 8 s, because they may concern other files.
            (4000, gone, "again at 5000"),
            (4900, gone, "again at 5900"),
            (11800, gone, "again at 12000"),
            (12000, gone, "reloaded no .minds/mcp.yaml -a, wants []"),
        ],
    );
}

#[test]
fn several_files_are_one_configuration() {
    let files = &[".minds/mcp.yaml", "agent.yaml"];
    check(
        files,
        &[
            (
                0,
                &[("mcp.yaml", "a"), ("agent.yaml", "-")],
                "refused agent.yaml, reloaded +a, wants [a], problem",
            ),
            (
                1,
                &[("agent.yaml", "b a"), ("s.env", "")],
                "reloaded +b =a a<.minds/mcp.yaml, wants [a b], shadowed a",
            ),
            (2, &[("mcp.yaml", "?")], "refused .minds/mcp.yaml, keeps, problem, shadowed a"),
            // An error in one file does not prevent edits of another one.
            (
                3,
                &[("agent.yaml", "b=2 c a")],
                "reloaded +c *b =a a<.minds/mcp.yaml, wants [a b c], problem, shadowed a",
            ),
            (4, &[("mcp.yaml", "-")], "again at 1004, problem, shadowed a"),
            (1004, &[], "reloaded no .minds/mcp.yaml *a =b =c, wants [b c a]"),
        ],
    );
}

#[test]
fn missing_file_of_an_unknown_dialect_is_refused() {
    check(
        &["x.yaml"],
        &[
            (0, &[("x.yaml", "-")], "refused x.yaml, problem"),
            (1, &[("x.yaml", "hello: w")], "refused x.yaml, problem"),
        ],
    );
}

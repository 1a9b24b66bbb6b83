//! `watch`: events of saves, and the end by a signal.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};

use mcp_testkit::process::{children, is_alive, send_signal};
use mcp_testkit::wait::TIMEOUT;

use crate::support::{SHARED_DEMO, Workspace};

/// A running `watch`.
struct Watch {
    child: Child,
    lines: Receiver<String>,
}

impl Watch {
    fn start(workspace: &Workspace, arguments: &[&str]) -> Watch {
        let mut child = workspace.command(arguments).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        // Ends when the receiver is dropped.
        std::thread::spawn(move || out.lines().map_while(Result::ok).all(|it| tell.send(it).is_ok()));
        Watch { child, lines }
    }

    /// Reads lines until one begins with `start`, and returns it.
    #[track_caller]
    fn until(&mut self, start: &str) -> String {
        let mut before = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(TIMEOUT) {
            if line.starts_with(start) {
                return line;
            }
            before.push(line);
        }
        panic!("no `{start}` after {before:#?}");
    }

    /// Ends the program with SIGINT, checks that its servers have ended, and returns its exit code.
    #[track_caller]
    fn end(mut self) -> Option<i32> {
        let servers = children(self.child.id());
        send_signal("INT", self.child.id());
        let code = self.child.wait().unwrap().code();
        assert!(servers.iter().all(|it| !is_alive(*it)), "{servers:?}");
        code
    }
}

impl Drop for Watch {
    /// Kills the program, so that a failing test leaves no process.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const FILE: &str = ".minds/mcp.yaml";

#[test]
fn dm_091_every_save_is_reported() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let mut watch = Watch::start(&workspace, &["watch", "."]);
    assert_eq!(watch.until("reloaded"), "reloaded .minds/mcp.yaml: added demo");
    assert_eq!(watch.until("ready"), "ready demo (modern)");
    let first = children(watch.child.id());
    assert_eq!(first.len(), 1);
    assert!(watch.until("generation").contains(" +echo"));

    workspace.write(
        FILE,
        &format!(
            "{SHARED_DEMO}    transform: [{{prefix: my_}}]\n  broken:\n    transport: stdio\n    comand: x\n"
        ),
    );
    assert_eq!(watch.until("reloaded"), "reloaded .minds/mcp.yaml: renamed or filtered demo");
    assert!(watch.until("error").starts_with("error .minds/mcp.yaml:11:"));
    assert!(watch.until("failed").starts_with("failed broken: "));
    assert!(watch.until("generation").contains(" +my_echo"));
    assert_eq!(children(watch.child.id()), first);

    workspace.write(FILE, "version: 1\nservers: {a\n");
    let refused = watch.until("refused");
    assert!(
        refused.contains(".minds/mcp.yaml has 1 error")
            && refused.ends_with("its previous content remains in effect"),
        "{refused}"
    );
    assert!(watch.until("error mcp/").starts_with("error mcp/workspace_config_error: "));
    workspace.write(FILE, SHARED_DEMO);
    assert_eq!(watch.until("cleared"), "cleared mcp/workspace_config_error");
    assert_eq!(watch.until("cleared"), "cleared mcp/server/broken/server_error");
    assert_eq!(children(watch.child.id()), first);

    std::fs::remove_file(workspace.path().join(FILE)).unwrap();
    assert_eq!(watch.until("reloaded"), "reloaded .minds/mcp.yaml (missing): removed demo");
    assert_eq!(watch.until("removed"), "removed demo");
    assert_eq!(watch.end(), Some(130));
}

#[test]
fn json_events_are_one_per_line() {
    let workspace = Workspace::empty();
    let mut watch = Watch::start(&workspace, &["watch", FILE, "--format", "json"]);
    let first: serde_json::Value = serde_json::from_str(&watch.until("{")).unwrap();
    assert_eq!(first["event"], "watching");
    // This also creates the folder of the file.
    workspace.write(FILE, SHARED_DEMO);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|it: &serde_json::Value| it["event"] != "catalog") {
        seen.push(serde_json::from_str(&watch.until("{")).unwrap());
    }
    let reload = seen.iter().rfind(|it| it["event"] == "reloaded").unwrap();
    assert_eq!((&reload["added"], &reload["files"][0]["present"]), (&["demo"][..].into(), &true.into()));
    let ready = seen.iter().find(|it| it["event"] == "server" && it["state"] == "ready").unwrap();
    assert_eq!((&ready["name"], &ready["era"]), (&"demo".into(), &"modern".into()));
    assert_eq!(watch.end(), Some(130));
}

#[test]
fn watch_ends_when_its_reader_closes() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let mut child = workspace.command(&["watch", "."]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|it| it.unwrap().starts_with("ready")));
    let servers = children(child.id());
    drop(lines);
    // The program notices that its reader has ended when it prints the next event.
    workspace.write(FILE, "version: 1\nservers: {a\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(servers.iter().all(|it| !is_alive(*it)), "{servers:?}");
}

#[test]
fn watch_needs_a_configuration_path() {
    let run = Workspace::empty().run(&["watch", "."]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.contains("the folder . contains none of .minds/mcp.yaml, agent.yaml"), "{run:?}");
}

//! Signals: exit codes, and no remaining processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::thread;

use mcp_testkit::process::{catches_signal, children, is_alive, only_child, send_signal, wait_for_exit};
use mcp_testkit::wait::block_until;

use crate::support::{DEMO, Workspace};

/// Starts a call that takes a minute, and waits until its server works on it. Returns the program and its server.
fn long_call(workspace: &Workspace) -> (Child, u32) {
    let mut child =
        workspace.command(&["call", ".", "sleep", r#"{"ms":60000,"steps":1000}"#]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The first progress shows that the server has received the call.
    let begun = lines.any(|it| it.unwrap().starts_with("sleep: 0% step 1 of"));
    assert!(begun, "the call reports no progress");
    let server = only_child(child.id());
    // Drain standard error, so that the program does not block on a full pipe.
    thread::spawn(move || lines.for_each(drop));
    (child, server)
}

#[track_caller]
fn check(signal: &str, want: i32) {
    let workspace = Workspace::dominds(DEMO);
    let (mut child, server) = long_call(&workspace);
    assert!(is_alive(server));
    send_signal(signal, child.id());
    assert_eq!(wait_for_exit(&mut child), Some(want));
    assert!(!is_alive(server), "the server outlives the program");
    let receipts = std::fs::read_dir(workspace.path().join("state/mcp-host/receipts")).unwrap();
    assert_eq!(receipts.count(), 0);
}

#[test]
fn signals_end_the_servers() {
    check("INT", 130);
    check("TERM", 143);
    check("HUP", 129);
}

#[test]
fn second_signal_skips_the_shutdown_wait() {
    let workspace = Workspace::dominds(
        "version: 1\nservers:\n  stubborn:\n    transport: stdio\n    command: stubborn\n",
    );
    // It never responds and ignores all signals that can be ignored.
    workspace.script(
        "stubborn",
        "trap '' TERM INT HUP; echo ready >&2; echo > \"$HOME/ready\"; while :; do sleep 1; done",
    );
    let mut child = workspace.command(&["tools", "."]).spawn().unwrap();
    block_until(|| workspace.path().join("ready").exists());
    let servers = children(child.id());
    send_signal("INT", child.id());
    send_signal("INT", child.id());
    assert_eq!(wait_for_exit(&mut child), Some(130));
    assert!(servers.iter().all(|it| !is_alive(*it)), "{servers:?}");
}

#[test]
fn signal_ends_a_read_of_standard_input() {
    let workspace = Workspace::dominds(DEMO);
    let mut child = workspace.command(&["call", ".", "echo", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    // Nothing shows that the program reads its input, but it does so soon after it has installed its signal
    // handlers.
    block_until(|| catches_signal(child.id(), 2));
    send_signal("INT", child.id());
    assert_eq!(wait_for_exit(&mut child), Some(130));
    drop(child.stdin.take());
}

#[test]
fn demo_server_exits_on_request() {
    let workspace = Workspace::empty();
    for arguments in [&["demo-server"][..], &["demo-server", "--http", "127.0.0.1:0"]] {
        let mut child = workspace.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        block_until(|| catches_signal(child.id(), 15));
        send_signal("TERM", child.id());
        assert_eq!(wait_for_exit(&mut child), Some(143));
    }
    // The end of input is a normal end.
    let mut child = workspace.command(&["demo-server"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"").unwrap();
    assert_eq!(wait_for_exit(&mut child), Some(0));
}

/// A silent server beside the demo server.
const SILENT: &str = "  silent:\n    transport: stdio\n    command: sleep\n    args: ['600']\n";

#[test]
fn silent_server_does_not_hide_the_others() {
    for (command, shown, rest) in [
        ("tools", "echo ", "… silent  starting\n"),
        ("doctor", "✓ demo  stdio", "… silent  interrupted during the step `handshake`\n"),
    ] {
        let workspace = Workspace::dominds(&format!("{DEMO}{SILENT}"));
        let mut child = workspace.command(&[command, "."]).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        // The demo server is printed while the program waits for the other one.
        let mut line = String::new();
        while !line.starts_with(shown) {
            line.clear();
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "{command}");
        }
        send_signal("INT", child.id());
        assert_eq!(wait_for_exit(&mut child), Some(130), "{command}");
        let mut remaining = String::new();
        out.read_to_string(&mut remaining).unwrap();
        assert!(remaining.contains(rest), "{command}: {remaining}");
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert!(err.lines().last().unwrap().starts_with("note: interrupted while "), "{command}: {err}");
    }
}

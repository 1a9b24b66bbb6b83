//! Lock files that change while programs run; `explain` and `doctor` with a lock file.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mcp_testkit::wait::TIMEOUT;
use serde_json::{Value, json};

use super::{change_echo, check, read, replayed};
use crate::support::{DEMO, Workspace};

const LOCK: &str = ".minds/mcp.lock";

/// A workspace with the demo server and a lock file without its tool `echo`; also returns the complete lock file.
fn without_echo() -> (Workspace, String) {
    let workspace =
        Workspace::dominds(&DEMO.replace("    command", "    truely-stateless: true\n    command"));
    check(&workspace.run(&["lock", "."]), 0, &[]);
    let whole = read(&workspace, LOCK);
    let mut lock: Value = serde_json::from_str(&whole).unwrap();
    let tools = lock["servers"]["demo"]["tools"].as_object_mut().unwrap();
    assert!(tools.remove("echo").is_some());
    workspace.write(LOCK, &lock.to_string());
    (workspace, whole)
}

/// A running program whose lines are received as they are written.
pub(super) struct RunningCommand {
    child: Child,
    out: Receiver<String>,
    err: JoinHandle<String>,
}

impl RunningCommand {
    fn start(workspace: &Workspace, arguments: &[&str]) -> RunningCommand {
        RunningCommand::start_in(workspace, "", arguments)
    }

    /// Starts the program in a folder of the workspace.
    pub(super) fn start_in(workspace: &Workspace, folder: &str, arguments: &[&str]) -> RunningCommand {
        let mut command = workspace.command(arguments);
        let command = command.current_dir(workspace.path().join(folder)).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, out) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        std::thread::spawn(move || lines.map(|it| sender.send(it)).all(|it| it.is_ok()));
        let mut stderr = child.stderr.take().unwrap();
        let err = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).map(|_| text).unwrap()
        });
        RunningCommand { child, out, err }
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Reads lines until one contains `what`, and returns it.
    #[track_caller]
    pub(super) fn until(&self, what: &str) -> String {
        let mut told = Vec::new();
        loop {
            match self.out.recv_timeout(TIMEOUT) {
                Ok(line) if line.contains(what) => return line,
                Ok(line) => told.push(line),
                Err(error) => panic!("no {what} ({error}) in {told:#?}"),
            }
        }
    }

    /// Ends the program with SIGINT and returns its standard error.
    pub(super) fn end(mut self) -> String {
        let killed = std::process::Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        self.child.wait().unwrap();
        self.err.join().unwrap()
    }
}

#[test]
fn gateway_client_is_notified_of_an_approval() {
    let (workspace, whole) = without_echo();
    let mut serving = RunningCommand::start(&workspace, &["serve", ".", "--stdio"]);
    serving.type_line(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    );
    serving.type_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let call = |id| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hello"}}}}}}"#
        )
    };
    // The server starts in the background; the call waits for it.
    serving.type_line(&call(2));
    let refused = serving.until(r#""id":2"#);
    assert!(refused.contains("it was never approved"), "{refused}");

    workspace.write(LOCK, &whole);
    let begun = Instant::now();
    for id in 3.. {
        serving.until("notifications/tools/list_changed");
        serving.type_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#));
        let list = serving.until(&format!(r#""id":{id}"#));
        if list.contains(r#""name":"echo""#) {
            break;
        }
        assert!(begun.elapsed() < TIMEOUT, "{list}");
    }
    serving.type_line(&call(1000));
    assert!(serving.until(r#""id":1000"#).contains("hello"));

    // A missing or invalid lock file keeps the previous approval.
    workspace.write(LOCK, "{");
    serving.type_line(&call(1001));
    assert!(serving.until(r#""id":1001"#).contains("hello"));
    workspace.write(LOCK, &whole.replace("\"echo\"", "\"other\""));
    serving.until("notifications/tools/list_changed");
    serving.type_line(&call(1002));
    assert!(serving.until(r#""id":1002"#).contains("it was never approved"));
    let err = serving.end();
    assert!(err.contains("applied the lock file"), "{err}");
}

#[test]
fn watch_reports_lock_file_changes() {
    let (workspace, whole) = without_echo();
    let watching = RunningCommand::start(&workspace, &["watch", ".", "--plain"]);
    watching.until("tool_not_approved/echo");
    workspace.write(LOCK, &whole);
    watching.until("approved by .minds/mcp.lock");
    assert!(watching.until("generation").contains("+echo"));
    fs::remove_file(workspace.path().join(LOCK)).unwrap();
    let refused = watching.until("refused");
    assert!(
        refused.contains(".minds/mcp.lock was deleted; the previous approvals remain in effect"),
        "{refused}"
    );
    let problem = watching.until("workspace_config_error");
    assert!(problem.contains("mcp.lock was deleted"), "{problem}");
    drop(watching.end());
}

#[test]
fn shell_applies_a_new_approval() {
    let (workspace, whole) = without_echo();
    let mut shell = RunningCommand::start(&workspace, &["shell", "."]);
    shell.type_line("problems");
    shell.until("tool `echo` of server `demo` is withheld");
    workspace.write(LOCK, &whole);
    let begun = Instant::now();
    loop {
        shell.type_line("problems");
        let line = shell.out.recv_timeout(TIMEOUT).unwrap();
        if line == "there are no problems" {
            break;
        }
        assert!(begun.elapsed() < TIMEOUT, "{line}");
        std::thread::sleep(Duration::from_millis(50));
    }
    shell.type_line("echo text=hello");
    shell.until("hello");
    drop(shell.end());
}

#[test]
fn explain_shows_the_lock_status() {
    let workspace = replayed();
    check(&workspace.run(&["lock", "."]), 0, &[]);
    let asked = ["explain", ".", "--tool", "echo", "--tool", "nothing"];
    check(
        &workspace.run(&asked),
        0,
        &[
            "tool `echo` of server `demo` is shown as `echo`",
            "  lock       approved; `--start` compares it with the server → `echo`\n",
            "tool `nothing` of server `demo` is not shown: withheld",
            "  lock       never approved → withheld\n",
        ],
    );
    check(
        &workspace.run(&["explain", ".", "--tool", "echo", "--start"]),
        0,
        &["  lock       unchanged since approval → `echo`\n"],
    );
    change_echo(&workspace);
    let why = "its description is not what was approved";
    check(
        &workspace.run(&["explain", ".", "--tool", "echo", "--start"]),
        0,
        &["tool `echo` of server `demo` is not shown: withheld", &format!("  lock       {why} → withheld\n")],
    );
    check(
        &workspace.run(&["explain", ".", "--tool", "echo", "--start", "--lock-policy", "warn"]),
        0,
        &["is shown as `echo`", &format!("  lock       {why} → `echo`\n")],
    );
    // Without a name, everything that the server offers is explained.
    let document = workspace.run(&["explain", ".", "--start", "--format", "json"]).json();
    let decisions = document["decisions"].as_array().unwrap();
    let of = |list: &str, name: &str| {
        let found = decisions.iter().find(|it| it["list"] == list && it["original"] == name);
        found.unwrap_or_else(|| panic!("no {list} {name} in {document}"))["lock"].clone()
    };
    assert_eq!(of("tool", "echo"), json!({"state": "drifted", "withheld": true, "message": why}));
    assert_eq!(of("tool", "add")["state"], "approved");
    let resources = decisions.iter().filter(|it| it["list"] == "resource");
    assert!(
        resources.clone().count() > 0 && resources.clone().all(|it| it["lock"]["state"] == "approved"),
        "{document}"
    );
    let off = workspace.run(&["explain", ".", "--tool", "echo", "--lock-policy", "off", "--format", "json"]);
    assert_eq!(off.json()["decisions"][0]["lock"], Value::Null);
}

#[test]
fn doctor_compares_with_the_lock_file() {
    let workspace = replayed();
    let step = |arguments: &[&str]| {
        let run = workspace.run(&[&["doctor", ".", "--format", "json"], arguments].concat());
        let steps = run.json()["servers"][0]["steps"].as_array().unwrap().clone();
        (run.code, steps.iter().find(|it| it["step"] == "lock").cloned().unwrap_or_default())
    };
    assert_eq!(step(&[]), (Some(0), Value::Null));
    assert_eq!(step(&["--locked"]).1["outcome"], "failed");
    check(&workspace.run(&["lock", "."]), 0, &[]);
    let (code, sound) = step(&[]);
    assert_eq!((code, &sound["outcome"]), (Some(0), &json!("done")), "{sound}");
    assert!(sound["message"].as_str().unwrap().starts_with("unchanged since approval: "), "{sound}");
    change_echo(&workspace);
    let (code, drifted) = step(&[]);
    assert_eq!((code, &drifted["outcome"]), (Some(0), &json!("doubtful")), "{drifted}");
    assert_eq!(
        drifted["message"],
        "changed since approval: tool `echo` is withheld: its description is not what was approved"
    );
    check(
        &workspace.run(&["doctor", "."]),
        0,
        &["! demo  changed since approval: tool `echo`", "`mcp-host lock --update SERVER` approves them"],
    );
    assert_eq!(step(&["--lock-policy", "off"]).1, Value::Null);
    workspace.write(LOCK, "{}");
    let (code, wrong) = step(&[]);
    assert_eq!((code, &wrong["outcome"]), (Some(1), &json!("failed")), "{wrong}");
    assert!(wrong["message"].as_str().unwrap().contains("mcp.lock: line 1"), "{wrong}");
}

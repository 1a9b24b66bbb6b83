//! A lock while programs run, and what `explain` and `doctor` know of it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{check, pull_the_rug, read, replayed};
use crate::support::{DEMO, Place};

const LOCK: &str = ".minds/mcp.lock";

/// How long what comes by itself may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with the demo server and a lock in which its tool `echo` is missing; and the whole lock.
fn without_echo() -> (Place, String) {
    let place = Place::dominds(&DEMO.replace("    command", "    truely-stateless: true\n    command"));
    check(&place.run(&["lock", "."]), 0, &[]);
    let whole = read(&place, LOCK);
    let mut lock: Value = serde_json::from_str(&whole).unwrap();
    let tools = lock["servers"]["demo"]["tools"].as_object_mut().unwrap();
    assert!(tools.remove("echo").is_some());
    place.write(LOCK, &lock.to_string());
    (place, whole)
}

/// A program that runs, whose lines come as they are written.
struct Running {
    child: Child,
    out: Receiver<String>,
    err: JoinHandle<String>,
}

impl Running {
    fn start(place: &Place, arguments: &[&str]) -> Running {
        let mut child = place.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let (sender, out) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        std::thread::spawn(move || lines.map(|it| sender.send(it)).all(|it| it.is_ok()));
        let mut stderr = child.stderr.take().unwrap();
        let err = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).map(|_| text).unwrap()
        });
        Running { child, out, err }
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line in which this stands.
    #[track_caller]
    fn until(&self, what: &str) -> String {
        let mut told = Vec::new();
        loop {
            match self.out.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(what) => return line,
                Ok(line) => told.push(line),
                Err(error) => panic!("no {what} ({error}) in {told:#?}"),
            }
        }
    }

    /// Ends it, and gives its standard error.
    fn end(mut self) -> String {
        let killed = std::process::Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        self.child.wait().unwrap();
        self.err.join().unwrap()
    }
}

#[test]
fn a_client_of_the_gateway_is_told_when_something_is_approved() {
    let (place, whole) = without_echo();
    let mut serving = Running::start(&place, &["serve", ".", "--stdio"]);
    serving.type_line(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    );
    serving.type_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let call = |id| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hello"}}}}}}"#
        )
    };
    // Its server starts beside the first answer; the call waits for it.
    serving.type_line(&call(2));
    let refused = serving.until(r#""id":2"#);
    assert!(refused.contains("it was never approved"), "{refused}");

    place.write(LOCK, &whole);
    let begun = Instant::now();
    for id in 3.. {
        serving.until("notifications/tools/list_changed");
        serving.type_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#));
        let list = serving.until(&format!(r#""id":{id}"#));
        if list.contains(r#""name":"echo""#) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{list}");
    }
    serving.type_line(&call(1000));
    assert!(serving.until(r#""id":1000"#).contains("hello"));

    // What is gone or broken takes nothing back, and shows nothing new.
    place.write(LOCK, "{");
    serving.type_line(&call(1001));
    assert!(serving.until(r#""id":1001"#).contains("hello"));
    place.write(LOCK, &whole.replace("\"echo\"", "\"other\""));
    serving.until("notifications/tools/list_changed");
    serving.type_line(&call(1002));
    assert!(serving.until(r#""id":1002"#).contains("it was never approved"));
    let err = serving.end();
    assert!(err.contains("mcp.lock says what is approved"), "{err}");
}

#[test]
fn watch_tells_of_a_lock_and_of_what_it_does() {
    let (place, whole) = without_echo();
    let watching = Running::start(&place, &["watch", ".", "--plain"]);
    watching.until("tool_not_approved/echo");
    place.write(LOCK, &whole);
    watching.until("approved is what .minds/mcp.lock says");
    assert!(watching.until("generation").contains("+echo"));
    fs::remove_file(place.path().join(LOCK)).unwrap();
    let refused = watching.until("refused");
    assert!(refused.contains(".minds/mcp.lock is gone; what was approved before stays so"), "{refused}");
    let problem = watching.until("workspace_config_error");
    assert!(problem.contains("mcp.lock is gone"), "{problem}");
    drop(watching.end());
}

#[test]
fn a_shell_takes_up_what_is_approved() {
    let (place, whole) = without_echo();
    let mut shell = Running::start(&place, &["shell", "."]);
    shell.type_line("problems");
    shell.until("tool `echo` of server `demo` is withheld");
    place.write(LOCK, &whole);
    let begun = Instant::now();
    loop {
        shell.type_line("problems");
        let line = shell.out.recv_timeout(PATIENCE).unwrap();
        if line == "there are no problems" {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{line}");
        std::thread::sleep(Duration::from_millis(50));
    }
    shell.type_line("echo text=hello");
    shell.until("hello");
    drop(shell.end());
}

#[test]
fn explain_says_how_a_name_stands_to_the_lock() {
    let place = replayed();
    check(&place.run(&["lock", "."]), 0, &[]);
    let asked = ["explain", ".", "--tool", "echo", "--tool", "nothing"];
    check(
        &place.run(&asked),
        0,
        &[
            "tool `echo` of server `demo` is shown as `echo`",
            "  lock       it was approved; `--start` sees whether its server still says the same → `echo`\n",
            "tool `nothing` of server `demo` is not shown: withheld",
            "  lock       it was never approved → withheld\n",
        ],
    );
    check(
        &place.run(&["explain", ".", "--tool", "echo", "--start"]),
        0,
        &["  lock       it is as it was approved → `echo`\n"],
    );
    pull_the_rug(&place);
    let why = "its description is not what was approved";
    check(
        &place.run(&["explain", ".", "--tool", "echo", "--start"]),
        0,
        &["tool `echo` of server `demo` is not shown: withheld", &format!("  lock       {why} → withheld\n")],
    );
    check(
        &place.run(&["explain", ".", "--tool", "echo", "--start", "--lock-policy", "warn"]),
        0,
        &["is shown as `echo`", &format!("  lock       {why} → `echo`\n")],
    );
    // Without a name, all that it offers.
    let document = place.run(&["explain", ".", "--start", "--format", "json"]).json();
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
    let off = place.run(&["explain", ".", "--tool", "echo", "--lock-policy", "off", "--format", "json"]);
    assert_eq!(off.json()["decisions"][0]["lock"], Value::Null);
}

#[test]
fn doctor_says_what_would_be_withheld_and_what_to_do() {
    let place = replayed();
    let step = |arguments: &[&str]| {
        let run = place.run(&[&["doctor", ".", "--format", "json"], arguments].concat());
        let steps = run.json()["servers"][0]["steps"].as_array().unwrap().clone();
        (run.code, steps.iter().find(|it| it["step"] == "lock").cloned().unwrap_or_default())
    };
    assert_eq!(step(&[]), (Some(0), Value::Null));
    assert_eq!(step(&["--locked"]).1["outcome"], "failed");
    check(&place.run(&["lock", "."]), 0, &[]);
    let (code, sound) = step(&[]);
    assert_eq!((code, &sound["outcome"]), (Some(0), &json!("done")), "{sound}");
    assert!(sound["message"].as_str().unwrap().starts_with("it is as it was approved: "), "{sound}");
    pull_the_rug(&place);
    let (code, drifted) = step(&[]);
    assert_eq!((code, &drifted["outcome"]), (Some(0), &json!("doubtful")), "{drifted}");
    assert_eq!(
        drifted["message"],
        "it is not as it was approved: tool `echo` is withheld: its description is not what was approved"
    );
    check(
        &place.run(&["doctor", "."]),
        0,
        &[
            "! demo  it is not as it was approved: tool `echo`",
            "`mcp-host lock --update SERVER` approves of it",
        ],
    );
    assert_eq!(step(&["--lock-policy", "off"]).1, Value::Null);
    place.write(LOCK, "{}");
    let (code, wrong) = step(&[]);
    assert_eq!((code, &wrong["outcome"]), (Some(1), &json!("failed")), "{wrong}");
    assert!(wrong["message"].as_str().unwrap().contains("mcp.lock: line 1"), "{wrong}");
}

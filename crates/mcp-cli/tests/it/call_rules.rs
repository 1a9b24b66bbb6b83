//! Rules for calls in the program: `call`, `shell`, `serve`, `approvals` and `explain --call`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::{fs, io};

use mcp_testkit::process::send_signal;
use mcp_testkit::wait::block_until;
use serde_json::Value;

use crate::serve::{INITIALIZE, post, serve_and_log};
use crate::support::{DEMO, SHARED_DEMO, Workspace};
use crate::terminal::Terminal;

const REFUSED: &str =
    "MCPCallRefusedError: Tool 'echo' was not called: the rule `deny tools=echo` refuses it";

#[test]
fn cp_005_each_command_that_calls_refuses() {
    let workspace = Workspace::dominds(DEMO);
    let deny = ["--call-rule", "deny tools=echo"];
    let call = workspace.run(&[&["call", ".", "echo", "text=a"], &deny[..]].concat());
    assert_eq!((call.code, call.out.as_str()), (Some(1), ""), "{call:?}");
    assert!(call.err.contains(REFUSED), "{call:?}");
    let shell =
        workspace.run_with_input(&[&["shell", "."], &deny[..]].concat(), "echo text=a\nadd a=1 b=2\n");
    assert!(shell.err.contains(REFUSED) && shell.out.starts_with('3'), "{shell:?}");
    // The rules of the file count for every command.
    let own = format!("{DEMO}    calls: [deny tools=echo]\n");
    let workspace = Workspace::dominds(&own);
    let call = workspace.run(&["call", ".", "echo", "text=a"]);
    assert!(call.err.contains("the rule `deny tools=echo (entry 'demo')` refuses it"), "{call:?}");
    let record = workspace.run(&["record", ".", "-o", "r.jsonl", "--call", "echo", "text=a"]);
    assert!((record.out.clone() + &record.err).contains("MCPCallRefusedError"), "{record:?}");
    let lifted = workspace.run(&["call", ".", "echo", "text=a", "--call-rule", "allow tools=echo"]);
    assert_eq!((lifted.code, lifted.out.as_str()), (Some(0), "a\n"), "{lifted:?}");
    let wrong = workspace.run(&["call", ".", "echo", "text=a", "--call-rule", "alow"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn cp_008_call_without_a_terminal_names_the_rule_and_what_to_do() {
    let workspace = Workspace::dominds(DEMO);
    let call = workspace.run(&["call", ".", "echo", "text=a", "--call-default", "ask"]);
    assert_eq!(call.code, Some(1), "{call:?}");
    for text in [
        "the rule `ask by default` requires an approval",
        "there is no terminal to ask at",
        "add `--call-rule 'allow tools=echo'`",
    ] {
        assert!(call.err.contains(text), "{text}: {call:?}");
    }
}

#[test]
fn cp_015_rules_come_from_a_file_and_explain_names_the_one_that_decides() {
    let workspace = Workspace::dominds(&format!("{DEMO}    calls: [ask tools=add, deny]\n"));
    workspace.write("rules", "# mine\nallow tools=echo users=ci\n");
    let explain =
        |arguments: &[&str]| workspace.run(&[&["explain", ".", "--call-rules", "rules"], arguments].concat());
    let run = explain(&["--call", "echo", "--call", "add", "--user", "ci"]);
    let want = "a call of `echo` of server `demo` for ci is sent\n  rule   allow tools=echo users=ci\n  \
                hints  destructive, because no lock file approves the tool\n\
                a call of `add` of server `demo` for ci waits for your approval\n  \
                rule   ask tools=add (entry 'demo')\n  \
                hints  destructive, because no lock file approves the tool\n";
    assert_eq!((run.code, run.out.as_str()), (Some(0), want), "{run:?}");
    let run = explain(&["--call", "echo", "--format", "json"]);
    assert_eq!(run.json()["calls"][0]["effect"], "deny", "{run:?}");
    workspace.write("rules", "alow\n");
    let run = explain(&["--call", "echo"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("rules, line 1: a rule begins with"), "{run:?}");
}

/// Annotations count only with a lock file.
#[test]
fn cp_004_lock_file_makes_annotations_count() {
    let workspace = Workspace::dominds(DEMO);
    let rules = ["--call-rule", "allow hints=reads", "--call-default", "deny"];
    let arguments = [&["call", ".", "echo", "text=a"], &rules[..]].concat();
    let refused = workspace.run(&arguments);
    assert!(refused.err.contains("the rule `deny by default` refuses it"), "{refused:?}");
    assert_eq!(workspace.run(&["lock", ".", "--all"]).code, Some(0));
    let explained = workspace.run(&[&["explain", ".", "--start", "--call", "echo"], &rules[..]].concat());
    let sent = workspace.run(&arguments);
    let is_read_only = explained.out.contains("hints  reads, by its approved annotations");
    assert_eq!(sent.code == Some(0), is_read_only, "{explained:?} {sent:?}");
    assert!(is_read_only, "the demo's echo is read-only: {explained:?}");
}

#[test]
fn cp_016_terminal_asks_and_remembers() {
    let workspace = Workspace::dominds(DEMO);
    let ask = "--call-rule 'ask tools=echo'";
    let Some(terminal) = Terminal::start(&workspace, &format!("shell . {ask}"), (120, 40)) else { return };
    terminal.until("mcp>");
    terminal.types("echo text=one");
    terminal.press(&["Enter"]);
    let asked = terminal.until("Allow it? [y] once");
    assert!(asked.contains("The call of `echo` on server `demo` needs your approval."), "{asked}");
    assert!(asked.contains("arguments: {\"text\":\"one\"}"), "{asked}");
    terminal.types("n");
    terminal.press(&["Enter"]);
    terminal.until("the user declined it");
    // Ctrl-C withdraws the question, and its answer is no longer read.
    terminal.types("echo text=two");
    terminal.press(&["Enter"]);
    terminal.until_it("a second question", |shown| shown.matches("Allow it?").count() == 2);
    terminal.press(&["C-c"]);
    terminal.until("cancelled");
    terminal.types("echo text=three");
    terminal.press(&["Enter"]);
    terminal.until_it("a third question", |shown| shown.matches("Allow it?").count() == 3);
    terminal.types("a");
    terminal.press(&["Enter"]);
    terminal.until("\nthree");
    terminal.types("exit");
    terminal.press(&["Enter"]);
    terminal.until("ended 0, the terminal is as before");
    // The answer is known to other runs, which have no terminal.
    let call = workspace.run(&["call", ".", "echo", "text=b", "--call-rule", "ask tools=echo"]);
    assert_eq!((call.code, call.out.as_str()), (Some(0), "b\n"), "{call:?}");
    let file = workspace.path().join("state/mcp-host/call-answers.json");
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let remembered = workspace.run(&["approvals", "remembered"]);
    assert!(remembered.out.starts_with("allow demo/echo in "), "{remembered:?}");
    assert_eq!(workspace.run(&["approvals", "forget", "demo/echo"]).out, "1 answer forgotten\n");
    assert_eq!(workspace.run(&["approvals", "remembered"]).out, "no answer is remembered\n");
}

/// A call over HTTP, on a thread of its own.
fn post_call(address: &str, headers: &'static str, text: &str) -> std::thread::JoinHandle<String> {
    let address = address.to_owned();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"t","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}}}}}}}}}}}}"#
    );
    std::thread::spawn(move || post(&address, headers, &body))
}

const MODERN: &str = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n";

/// Waits until this many calls wait, and returns them.
fn waiting(workspace: &Workspace, count: usize) -> Vec<Value> {
    let mut res = Vec::new();
    block_until(|| {
        let listed = workspace.run(&["approvals", "--format", "json"]);
        res = listed.json()["waiting"].as_array().unwrap().clone();
        res.len() == count
    });
    res
}

fn stop(mut child: Child) {
    send_signal("TERM", child.id());
    child.wait().unwrap();
}

#[test]
fn cp_017_call_of_a_client_is_answered_through_the_socket_only() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let arguments =
        ["serve", ".", "--http", "127.0.0.1:0", "--call-rule", "ask tools=echo", "--audit", "audit"];
    let (child, address, log) = serve_and_log(&workspace, &arguments);
    let call = post_call(&address, MODERN, "one");
    let listed = waiting(&workspace, 1);
    log.until(&["a call of `echo` of server demo waits because of the rule `ask tools=echo`"]);
    assert_eq!((&listed[0]["tool"], &listed[0]["arguments"]), (&"echo".into(), &r#"{"text":"one"}"#.into()));
    let id = listed[0]["id"].as_str().unwrap();
    let denied = workspace.run(&["approvals", "deny", id]);
    assert_eq!(denied.out, "1 call refused\n", "{denied:?}");
    let reply = call.join().unwrap();
    // The client, which declares elicitation, was asked nothing: it gets one error.
    assert!(reply.contains("MCPCallRefusedError") && reply.contains("the user declined it"), "{reply}");
    assert!(!reply.contains("elicitation"), "{reply}");
    let again = workspace.run(&["approvals", "allow", id]);
    assert!(again.code == Some(1) && again.err.contains("no call with the id"), "{again:?}");

    let call = post_call(&address, MODERN, "two");
    let listed = waiting(&workspace, 1);
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(workspace.run(&["approvals", "allow", id, "--always"]).code, Some(0));
    assert!(call.join().unwrap().contains("two"));
    assert!(post_call(&address, MODERN, "three").join().unwrap().contains("three"));
    stop(child);
    let audit = fs::read_to_string(workspace.path().join("audit")).unwrap();
    let lines: Vec<Value> = audit.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let rulings: Vec<_> =
        lines.iter().map(|it| (&it["ruling"], &it["rule"])).map(|it| it.0.as_str().unwrap()).collect();
    assert_eq!(rulings, ["declined", "approved", "approved"], "{audit}");
    assert!(lines.iter().all(|it| it["rule"] == "ask tools=echo"), "{audit}");
    assert!(!audit.contains("two"), "{audit}");
    assert_eq!(workspace.run(&["approvals"]).out, "no call waits for an approval\n");
}

#[test]
fn cp_011_client_that_disconnects_withdraws_its_question() {
    let workspace = Workspace::dominds(DEMO);
    let mut child = workspace
        .command(&["serve", ".", "--stdio", "--call-default", "ask"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(input, "{INITIALIZE}").unwrap();
    lines.next().unwrap().unwrap();
    let call =
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}"#;
    writeln!(input, "{call}").unwrap();
    let listed = waiting(&workspace, 1);
    assert_eq!(listed[0]["rule"], "ask by default");
    writeln!(input, r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":3}}}}"#)
        .unwrap();
    waiting(&workspace, 0);
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn cp_018_socket_is_private_and_survives_hostile_peers() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let (child, address, _log) =
        serve_and_log(&workspace, &["serve", ".", "--http", "127.0.0.1:0", "--call-rule", "ask"]);
    let folder = workspace.path().join("runtime/mcp-host");
    let path = folder.join(format!("{}.sock", child.id()));
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
    for bytes in
        [&b"{\n"[..], b"\0\xff\n", b"{\"request\":\"answer\",\"id\":99999999999999999999,\"allow\":true}\n"]
    {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(bytes).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        assert!(line.starts_with("{\"reply\":\"error\""), "{line}");
    }
    // Connections that send nothing leave room for others, up to the limit.
    let idle: Vec<io::Result<UnixStream>> = (0..10).map(|_| UnixStream::connect(&path)).collect();
    let call = post_call(&address, MODERN, "x");
    let listed = waiting(&workspace, 1);
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(workspace.run(&["approvals", "allow", id]).code, Some(0));
    assert!(call.join().unwrap().contains("\"x\""));
    drop(idle);
    // A folder that others can open is not used.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let listed = workspace.run(&["approvals"]);
    assert!(listed.code == Some(1) && listed.err.contains("other users can open"), "{listed:?}");
    stop(child);
    assert!(!path.exists());
}

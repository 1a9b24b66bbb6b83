//! The log of `serve`: one line for each event that an operator must know.

use mcp_testkit::process::send_signal;
use mcp_testkit::wait::block_until;
use serde_json::Value;

use crate::serve::{INITIALIZE, ask, post, serve_and_log};
use crate::support::{SHARED_DEMO, Workspace};

/// A server that cannot start, beside the demo server.
const BROKEN: &str =
    "  broken:\n    truely-stateless: true\n    transport: stdio\n    command: no-such-program\n";

const TOKEN: &str = "ann-0123456789abcdef";
const WRONG: &str = "eve-0123456789abcdef";

#[test]
fn operator_events_are_one_line_each() {
    let workspace = Workspace::dominds(&format!("{SHARED_DEMO}{BROKEN}"));
    workspace.write("tokens", &format!("{TOKEN} name=ann\n"));
    let arguments = ["serve", ".", "--http", "127.0.0.1:0", "--token-file", "tokens", "--log-format", "json"];
    let (mut child, address, log) = serve_and_log(&workspace, &arguments);
    let event = |texts: &[&str]| {
        let line = log.until(texts);
        let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(event["timestamp"].is_string() && event["target"].is_string(), "{line}");
        assert!(!line.contains(TOKEN) && !line.contains(WRONG), "{line}");
        (event["level"].as_str().unwrap().to_owned(), event["message"].as_str().unwrap().to_owned())
    };
    let serving = format!("serving MCP at http://{address}/mcp");
    assert_eq!(event(&["serving MCP at"]), ("INFO".to_owned(), serving));

    // 20 requests with a wrong token are few lines.
    for _ in 0..20 {
        assert!(post(&address, &format!("authorization: Bearer {WRONG}\r\n"), INITIALIZE).contains(" 401 "));
    }
    let wrong =
        "refused a request from 127.0.0.1: the token is wrong: it is not one of those that are accepted now";
    for _ in 0..5 {
        assert_eq!(event(&["refused a request"]), ("WARN".to_owned(), wrong.to_owned()));
    }
    workspace.write(".minds/mcp.yaml", "version: [\n");
    let (level, text) = event(&["refused the configuration"]);
    assert!(level == "WARN" && text.contains(".minds/mcp.yaml"), "{level} {text}");
    workspace.write(".minds/mcp.yaml", SHARED_DEMO);
    assert_eq!(event(&["server broken was removed"]).0, "INFO");
    assert!(ask(&address, "GET /metrics", TOKEN).contains("mcp_gateway_sessions 0"));
    send_signal("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn states_of_servers_are_logged() {
    let workspace = Workspace::dominds(&format!("{SHARED_DEMO}{BROKEN}"));
    let (mut child, _, log) = serve_and_log(&workspace, &["serve", ".", "--http", "127.0.0.1:0"]);
    let first = log.until(&["server "]);
    let (up, down) = if first.contains("server demo is up") {
        (first, log.until(&["server broken"]))
    } else {
        let up = log.until(&["server demo is up"]);
        (up, first)
    };
    assert!(up.contains(" INFO ") && (down.contains(" WARN ") || down.contains("ERROR ")), "{up}, {down}");
    assert!(down.contains("server broken is down: ") || down.contains("server broken failed: "), "{down}");
    send_signal("TERM", child.id());
    child.wait().unwrap();
}

/// Runs `serve` over stdio to its end, and returns its log.
#[track_caller]
fn log_of(variable: Option<&str>, arguments: &[&str]) -> String {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let mut command = workspace.command(&[&["serve", ".", "--stdio"], arguments].concat());
    command.stdin(std::process::Stdio::null()).env_remove("RUST_LOG");
    if let Some(filter) = variable {
        command.env("RUST_LOG", filter);
    }
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 2)), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn level_is_that_of_the_option_then_of_the_variable() {
    let debug = "DEBUG";
    assert!(!log_of(None, &[]).contains(debug));
    assert!(log_of(None, &["-v"]).contains(debug));
    assert!(log_of(None, &["--log-level", "debug"]).contains(debug));
    assert!(log_of(Some("mcp_host_runtime=debug"), &[]).contains(debug));
    assert!(!log_of(Some("mcp_host_runtime=debug"), &["--log-level", "info"]).contains(debug));
    assert!(log_of(Some("=[="), &[]).contains("the variable RUST_LOG is not a filter"));
}

// RPT-201, RPT-202
#[test]
fn sighup_reads_the_configuration_and_a_stop_names_its_reason() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let (mut child, address, log) = serve_and_log(&workspace, &["serve", ".", "--http", "127.0.0.1:0"]);
    let warning = log.until(&["every user of this machine can call tools"]);
    assert!(warning.contains("WARN") && warning.contains("--token-file"), "{warning}");
    for _ in 0..2 {
        send_signal("HUP", child.id());
        log.until(&["reading the configuration again because of SIGHUP"]);
    }
    assert!(post(&address, "", INITIALIZE).contains(" 200 "));
    send_signal("TERM", child.id());
    log.until(&["stopping because of SIGTERM: running requests may finish"]);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let run = workspace.run_with_input(&["serve", ".", "--stdio"], "");
    assert!(run.err.contains("stopping because the client has closed standard input"), "{run:?}");
}

// RPT-261
#[test]
fn token_file_that_every_user_can_change_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = Workspace::dominds(SHARED_DEMO);
    workspace.write("tokens", &format!("{TOKEN} name=ann\n"));
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(workspace.path().join("tokens"), mode(0o666)).unwrap();
    let arguments = ["serve", ".", "--http", "127.0.0.1:0", "--token-file", "tokens"];
    let mut child = workspace.command(&arguments).spawn().unwrap();
    let log = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = std::io::BufRead::lines(log).map(Result::unwrap);
    let line = lines.find(|line| line.contains("token file") || line.contains("serving MCP")).unwrap();
    assert!(line.contains("every user can change the token file tokens: run chmod 600 tokens"), "{line}");
    send_signal("TERM", child.id());
    child.wait().unwrap();
}

#[test]
fn audit_log_is_opened_again_after_sighup() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let arguments = ["serve", ".", "--http", "127.0.0.1:0", "--audit", "audit"];
    let (mut child, address, log) = serve_and_log(&workspace, &arguments);
    let begun = post(&address, "", INITIALIZE);
    let session = begun.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hunter2"}}}"#;
    let call = || post(&address, &format!("mcp-session-id: {session}\r\n"), call);
    let lines = |name: &str| {
        let text = std::fs::read_to_string(workspace.path().join(name)).unwrap_or_default();
        assert!(!text.contains("hunter2"), "{text}");
        text.lines().filter(|line| line.contains(r#""tool":"echo""#) && line.contains("success")).count()
    };
    assert!(call().contains("hunter2"));
    block_until(|| lines("audit") == 1);
    std::fs::rename(workspace.path().join("audit"), workspace.path().join("audit.1")).unwrap();
    send_signal("HUP", child.id());
    log.until(&["opening the audit log again"]);
    call();
    block_until(|| lines("audit") == 1);
    assert_eq!(lines("audit.1"), 1);
    send_signal("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

// RPT-478
#[test]
fn list_of_a_server_beyond_the_limit_is_a_problem() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let arguments = ["serve", ".", "--http", "127.0.0.1:0", "--max-list-items", "3"];
    let (mut child, _, log) = serve_and_log(&workspace, &arguments);
    log.until(&["its list of tools is incomplete: tools/list has more than 3 items"]);
    send_signal("TERM", child.id());
    child.wait().unwrap();
}

#[test]
fn tools_beyond_the_limit_are_named_in_the_log_and_the_problems() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    workspace.write("tokens", &format!("{TOKEN} name=ann\n{WRONG} name=bob tools=echo\n"));
    let arguments =
        ["serve", ".", "--http", "127.0.0.1:0", "--token-file", "tokens", "--admin", "--max-tools", "4"];
    let (mut child, address, log) = serve_and_log(&workspace, &arguments);
    let line = log.until(&["tools are left out for "]);
    let want = "tools are left out for the token `ann`, because of the limit of 4 tools: ";
    assert!(line.contains(want) && line.contains("WARN") && line.contains(" more"), "{line}");

    let authorization = format!("authorization: Bearer {TOKEN}\r\n");
    let begun = post(&address, &authorization, INITIALIZE);
    let session = begun.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let headers = format!("{authorization}mcp-session-id: {session}\r\n");
    let read = r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"mcp-host://problems"}}"#;
    let problems = post(&address, &headers, read);
    assert!(problems.contains("mcp_tools_left_out") && !problems.contains("bob"), "{problems}");
    let list = post(&address, &headers, r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#);
    let list: Value = serde_json::from_str(list.split_once("\r\n\r\n").unwrap().1).unwrap();
    let names = list["result"]["tools"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    send_signal("TERM", child.id());
    child.wait().unwrap();
}

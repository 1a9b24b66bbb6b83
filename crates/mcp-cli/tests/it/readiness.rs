//! `/readyz` of `serve --http`: the readiness of some servers, and of one that stops.

use std::io::{BufRead, BufReader};
use std::process::Child;

use mcp_testkit::process::send_signal;
use mcp_testkit::wait::block_until;
use serde_json::Value;

use crate::serve::{INITIALIZE, ask, post, serve_and_log};
use crate::support::Workspace;

const TOKEN: &str = "ann-0123456789abcdef";

/// Starts the demo server at this address, and returns its address.
fn demo_at(workspace: &Workspace, address: &str) -> (Child, String) {
    let mut child = workspace.command(&["demo-server", "--http", address]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().rsplit_once("http://").unwrap().1;
    (child, url.split_once('/').unwrap().0.to_owned())
}

fn stop(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The status and the JSON body of a response.
#[track_caller]
fn status_and_json(reply: &str) -> (&str, Value) {
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let json = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {reply}"));
    (head.split(' ').nth(1).unwrap(), json)
}

/// A server over HTTP is not ready after the first call that did not reach it, and ready when it is back.
fn check_dead_server(era: &str) {
    let workspace = Workspace::empty();
    let (demo, address) = demo_at(&workspace, "127.0.0.1:0");
    let entry = format!(r#"{{"type":"http","url":"http://{address}/mcp"}}"#);
    workspace.write("mcp.json", &format!(r#"{{"mcpServers":{{"web":{entry}}}}}"#));
    let arguments = ["serve", "mcp.json", "--http", "127.0.0.1:0", "--era", era];
    let (mut child, gateway, log) = serve_and_log(&workspace, &arguments);
    let ready = || ask(&gateway, "GET /readyz?servers=web", "");
    block_until(|| ready().contains(" 200 "));
    assert_eq!(status_and_json(&ready()).1, serde_json::json!({"ready": true, "servers": {"web": "ready"}}));

    let begun = post(&gateway, "", INITIALIZE);
    let session = begun.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"web__echo","arguments":{"text":"a"}}}"#;
    let call = || post(&gateway, &format!("mcp-session-id: {session}\r\n"), call);
    assert!(call().contains(r#""text":"a""#));
    stop(demo);
    assert!(call().contains(r#""error""#));
    block_until(|| ready().contains(" 503 "));
    let (_, body) = status_and_json(&ready()).to_owned();
    assert!(body["ready"] == false && body["servers"]["web"] != "ready", "{body}");
    log.until(&["server web is down", "connection refused"]);
    // The server was ready once, so the program as a whole still is.
    assert!(ask(&gateway, "GET /readyz", "").contains(" 200 "));

    let (demo, _) = demo_at(&workspace, &address);
    block_until(|| ready().contains(" 200 "));
    assert!(call().contains(r#""text":"a""#));
    send_signal("TERM", child.id());
    child.wait().unwrap();
    stop(demo);
}

#[test]
fn dead_server_with_sessions_is_not_ready_until_it_is_back() {
    check_dead_server("legacy");
}

#[test]
fn dead_stateless_server_is_not_ready_until_it_is_back() {
    check_dead_server("modern");
}

#[test]
fn readiness_of_some_servers_needs_a_token_that_shows_them() {
    let demo = |name| {
        format!(
            "  {name}:\n    truely-stateless: true\n    transport: stdio\n    command: mcp-host\n    args: \
            [demo-server]\n    transform:\n      - prefix: {name}_\n"
        )
    };
    let broken =
        "  broken:\n    truely-stateless: true\n    transport: stdio\n    command: no-such-program\n";
    let text = format!("version: 1\nservers:\n{}{}{broken}", demo("docs"), demo("tickets"));
    let workspace = Workspace::dominds(&text);
    let bob = "bob-0123456789abcdef";
    workspace.write("tokens", &format!("{TOKEN} name=ann\n{bob} name=bob servers=docs\n"));
    let arguments = ["serve", ".", "--http", "127.0.0.1:0", "--token-file", "tokens"];
    let (mut child, gateway, _log) = serve_and_log(&workspace, &arguments);
    let get = |query: &str, token| ask(&gateway, &format!("GET /readyz{query}"), token);
    block_until(|| get("?servers=docs,tickets", TOKEN).contains(" 200 "));
    block_until(|| get("", "").contains(" 200 "));

    #[track_caller]
    fn check(reply: &str, status: &str, texts: &[&str]) {
        let (got, body) = status_and_json(reply);
        let body = body.to_string();
        assert!(got == status && texts.iter().all(|text| body.contains(text)), "{reply}");
    }
    check(&get("?servers=docs,broken", TOKEN), "503", &[r#""docs":"ready""#, r#""ready":false"#]);
    check(&get("?servers=d*", TOKEN), "200", &[r#""servers":{"docs":"ready"}"#]);
    check(&get("?servers=docs", bob), "200", &[r#""servers":{"docs":"ready"}"#]);
    check(&get("?servers=none", TOKEN), "404", &["`none`", "broken", "docs", "tickets"]);
    // A hidden server looks like one that does not exist.
    let hidden = get("?servers=tickets", bob);
    check(&hidden, "404", &["the servers are: docs\""]);
    check(&get("?servers=docs", "wrong"), "401", &["error"]);
    check(&get("?servers=", TOKEN), "400", &["error"]);
    check(&get("?tools=a", TOKEN), "400", &["error"]);
    check(&get("?server=docs", TOKEN), "400", &["error"]);
    check(&get(&format!("?servers={}", "a,".repeat(65)), TOKEN), "400", &["64 patterns"]);
    assert!(get("?servers=docs", "").contains(" 401 "));
    send_signal("TERM", child.id());
    child.wait().unwrap();
}

// RPT-478, RPT-479
#[test]
fn gateway_without_a_usable_configuration_is_not_ready() {
    let entries = |count: usize| {
        let entry = |number| format!(r#""s{number}":{{"command":"no-such-program"}}"#);
        let entries: Vec<_> = (0..count).map(entry).collect();
        format!(r#"{{"mcpServers":{{{}}}}}"#, entries.join(","))
    };
    let workspace = Workspace::empty();
    workspace.write("mcp.json", &entries(3));
    let refused = workspace.run(&["check", "mcp.json", "--max-servers", "2"]);
    assert!(refused.code == Some(1) && refused.out.contains("--max-servers"), "{refused:?}");
    assert_eq!(workspace.run(&["check", "mcp.json", "--max-servers", "3"]).code, Some(0));

    let arguments = ["serve", "mcp.json", "--http", "127.0.0.1:0", "--max-servers", "2"];
    let (mut child, gateway, log) = serve_and_log(&workspace, &arguments);
    let ready = || ask(&gateway, "GET /readyz", "");
    assert!(ready().contains(" 503 ") && ready().contains("the configuration is refused"), "{}", ready());
    log.until(&["refused the configuration", "more than 2 servers", "--max-servers"]);
    workspace.write("mcp.json", &entries(2));
    block_until(|| ready().contains(" 200 "));
    // What ran before a refused change is still served.
    workspace.write("mcp.json", &entries(3));
    log.until(&["refused the configuration"]);
    assert!(ready().contains(" 200 "));
    send_signal("TERM", child.id());
    child.wait().unwrap();
}

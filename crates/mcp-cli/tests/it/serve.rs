//! `serve`: stdio, HTTP, shutdown and errors.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mcp_testkit::process::{children, is_alive, send_signal};
use mcp_testkit::random::Random;
use mcp_testkit::wait::block_until;
use serde_json::Value;

use crate::support::{DEMO, SHARED_DEMO, Workspace};

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

#[test]
fn stdio_client_is_served_until_it_disconnects() {
    let workspace = Workspace::dominds(DEMO);
    let mut child = workspace.command(&["serve", ".", "--stdio"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |text: &str| {
        writeln!(input, "{text}").unwrap();
        serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()
    };
    assert_eq!(ask(INITIALIZE)["result"]["serverInfo"]["name"], "mcp-host");
    let list = ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    assert!(list["result"]["tools"].as_array().unwrap().iter().any(|it| it["name"] == "echo"), "{list}");
    let call = ask(
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}"#,
    );
    assert_eq!(call["result"]["content"][0]["text"], "a");
    let servers = children(child.id());
    assert!(!servers.is_empty());
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(servers.iter().all(|it| !is_alive(*it)), "{servers:?}");
}

/// Starts `serve --http` and returns its address.
fn serve_http(workspace: &Workspace, arguments: &[&str]) -> (Child, String) {
    let (child, address, _) = serve_and_log(workspace, arguments);
    (child, address)
}

/// The lines of a log.
pub(crate) struct Log(Receiver<String>);

impl Log {
    /// Waits for a line with all these texts, and returns it.
    #[track_caller]
    pub(crate) fn until(&self, texts: &[&str]) -> String {
        let mut seen = Vec::new();
        loop {
            let Ok(line) = self.0.recv_timeout(Duration::from_secs(60)) else {
                panic!("{texts:?} in {seen:?}")
            };
            if texts.iter().all(|text| line.contains(text)) {
                return line;
            }
            seen.push(line);
        }
    }
}

/// Starts `serve --http` and returns its address and its log.
pub(crate) fn serve_and_log(workspace: &Workspace, arguments: &[&str]) -> (Child, String, Log) {
    let mut child = workspace.command(arguments).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (sender, log) = channel();
    let is_address = |line: &String| {
        sender.send(line.clone()).unwrap();
        line.contains("serving MCP at ")
    };
    let line = lines.by_ref().map_while(Result::ok).find(is_address).unwrap();
    // Read to the end, so that the program does not block on a full pipe.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    let address = line.rsplit_once("http://").unwrap().1.split_once("/mcp").unwrap().0.to_owned();
    (child, address, Log(log))
}

/// Sends a request without a body on a connection of its own. Returns the response with its head.
pub(crate) fn ask(address: &str, request: &str, token: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// Sends a message on a connection of its own. Returns the response with its head.
pub(crate) fn post(address: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// 16 clients call while the file changes, and then the program is stopped. `MCP_TEST_RELOADS` sets a larger number of
/// reloads, `MCP_TEST_CALL_MS` longer calls.
#[test]
fn dm_104_no_call_ends_early_at_a_reload_or_shutdown() {
    let setting = |name, default| std::env::var(name).map_or(default, |it| it.parse::<u64>().unwrap());
    let (reloads, call_ms) = (setting("MCP_TEST_RELOADS", 3), setting("MCP_TEST_CALL_MS", 1_500));
    let file = |reload| format!("{SHARED_DEMO}    env: {{RELOAD: '{reload}'}}\n");
    let workspace = Workspace::dominds(&file(0));
    let (mut child, address) =
        serve_http(&workspace, &["serve", ".", "--http", "127.0.0.1:0", "--drain", "60"]);
    let (is_over, last_calls) = (AtomicBool::new(false), Barrier::new(17));
    std::thread::scope(|scope| {
        for client in 0..16 {
            let (address, is_over, last_calls) = (&address, &is_over, &last_calls);
            scope.spawn(move || {
                let begun = post(address, "", INITIALIZE);
                let session = begun.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
                let headers = format!("mcp-session-id: {session}\r\n");
                let call_for = |ms: u64| {
                    let call = format!(
                        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"sleep","arguments":{{"ms":{ms}}}}}}}"#
                    );
                    let reply = post(address, &headers, &call);
                    assert!(reply.contains(&format!("slept {ms} ms")), "{reply}");
                };
                let mut random = Random::new(client);
                while !is_over.load(Ordering::Relaxed) {
                    call_for(call_ms / 3 + random.below(call_ms as usize) as u64);
                }
                last_calls.wait();
                call_for(3_000);
            });
        }
        for reload in 1..=reloads {
            std::thread::sleep(Duration::from_millis(400));
            let before = children(child.id());
            workspace.write(".minds/mcp.yaml", &file(reload));
            block_until(|| children(child.id()).iter().any(|it| !before.contains(it)));
        }
        is_over.store(true, Ordering::Relaxed);
        last_calls.wait();
        block_until(|| ask(&address, "GET /metrics", "").contains("\nmcp_gateway_requests 16\n"));
        send_signal("TERM", child.id());
    });
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn http_is_served_until_a_signal() {
    let workspace = Workspace::dominds(DEMO);
    workspace.write("tokens", "ann-0123456789abcdef name=ann\n");
    let arguments = ["serve", ".", "--http", "127.0.0.1:0", "--token-file", "tokens"];
    let (mut child, address, log) = serve_and_log(&workspace, &arguments);
    let ask = |request: &str, token: &str| ask(&address, request, token);
    let post = |token: &str| post(&address, &format!("authorization: Bearer {token}\r\n"), INITIALIZE);
    assert!(post("ann-0123456789abcdef").starts_with("HTTP/1.1 200 "));
    assert!(post("bob-0123456789abcdef").starts_with("HTTP/1.1 401 "));
    // The metrics of the gateway and those of the host.
    let metrics = ask("GET /metrics", "ann-0123456789abcdef");
    for line in [
        "mcp_gateway_sessions 1",
        "mcp_gateway_responses_total{status=\"401\"} 1",
        "mcp_host_reloads_total{outcome=\"taken\"} 1",
        "# TYPE mcp_host_generation gauge",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line} in {metrics}");
    }
    assert!(ask("GET /metrics", "bob-0123456789abcdef").starts_with("HTTP/1.1 401 "));
    // The token file is followed; a file without a token changes nothing.
    let get = |token: &str| ask("GET /metrics", token)[..12].to_owned();
    workspace.write("tokens", "# no token\n");
    log.until(&["the previous tokens remain"]);
    assert_eq!(get("ann-0123456789abcdef"), "HTTP/1.1 200");
    workspace.write("tokens", "bob-0123456789abcdef name=bob servers=nowhere\n");
    log.until(&["1 token; 1 session ended"]);
    log.until(&["`bob` names the server `nowhere`"]);
    assert_eq!([get("ann-0123456789abcdef"), get("bob-0123456789abcdef")], ["HTTP/1.1 401", "HTTP/1.1 200"]);
    let servers = children(child.id());
    send_signal("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(servers.iter().all(|it| !is_alive(*it)), "{servers:?}");
}

#[test]
fn serve_errors_have_help() {
    let workspace = Workspace::dominds(DEMO);
    let open = workspace.run(&["serve", ".", "--http", "0.0.0.0:0"]);
    assert_eq!((open.code, open.out.as_str()), (Some(2), ""));
    assert!(
        open.err.contains("0.0.0.0:0 is reachable from other machines, and no token is configured"),
        "{}",
        open.err
    );
    assert!(open.err.contains("configure tokens, or listen at 127.0.0.1 or [::1]"), "{}", open.err);
    let none = workspace.run(&["serve", ".", "--stdio", "--only", "nobody"]);
    assert_eq!(none.code, Some(1));
    assert!(none.err.contains("there is no server `nobody`; the servers are: demo"), "{}", none.err);
    workspace.write("tokens", "short\n");
    let short = workspace.run(&["serve", ".", "--http", "127.0.0.1:0", "--token-file", "tokens"]);
    assert!(short.err.contains("line 1 of the tokens: a token has 16 to 4096 bytes"), "{}", short.err);
    for wrong in [
        &["serve", "."][..],
        &["serve", ".", "--stdio", "--raw-names"],
        &["serve", ".", "--stdio", "--http", "127.0.0.1:0"],
    ] {
        assert_eq!(workspace.run(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn detached_call_needs_a_server_that_outlives_the_command() {
    let workspace = Workspace::dominds(SHARED_DEMO);
    let run = workspace.run(&["call", ".", "echo", "text=x", "--detach"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let want = "error: server 'demo' is a process of this command, so its tasks end with it\n  help: leave out \
        --detach";
    assert!(run.err.contains(want), "{run:?}");
    // A server with a URL that makes no task of the call returns the result.
    let (mut gateway, address) = serve_http(&workspace, &["serve", ".", "--http", "127.0.0.1:0"]);
    let file = format!(r#"{{"mcpServers":{{"a":{{"type":"http","url":"http://{address}/mcp"}}}}}}"#);
    workspace.write("gateway.json", &file);
    let run = workspace.run(&["call", "gateway.json", "echo", "text=hello", "--detach"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "hello\n"), "{run:?}");
    let run = workspace.run(&["tasks", "gateway.json", "1a2b"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("the server has no tasks"), "{run:?}");
    send_signal("INT", gateway.id());
    gateway.wait().unwrap();
}

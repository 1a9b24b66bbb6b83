//! The gateway: responses to known and unknown clients, and its diagnostics pages.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::fixture::LeakFixture;
use super::markers::SecretLocation;
use super::search::Search;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// Sends one request and returns the whole response.
fn exchange(address: &str, target: &str, (token, more): (&str, &str), body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "{target} HTTP/1.1\r\n{more}host: {address}\r\nconnection: close\r\ncontent-type: application/json\r\naccept: \
         application/json, text/event-stream\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

#[tokio::test(flavor = "multi_thread")]
async fn hd_sc5_the_gateway_returns_no_secret() {
    let world = LeakFixture::new().await;
    let arguments =
        ["serve", "agent.yaml", "--http", "127.0.0.1:0", "--token-file", "tokens", "--admin", "-v"];
    let mut child = world.command(&[&arguments[..], &["--env-file", "more.env"]].concat()).spawn().unwrap();
    let search = tokio::task::spawn_blocking(move || {
        let mut search = Search::default();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut told = String::new();
        let address = loop {
            let line = lines.next().expect("it serves");
            told += &format!("{line}\n");
            if let Some((_, url)) = line.split_once("serving MCP at http://") {
                break url.trim_end_matches("/mcp").to_owned();
            }
        };
        let rest = std::thread::spawn(move || lines.collect::<Vec<_>>().join("\n"));

        let good = SecretLocation::GatewayToken.mark();
        let opened = exchange(&address, "POST /mcp", (&good, ""), INITIALIZE);
        let session = opened
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "))
            .expect("a session")
            .to_owned();
        let session = format!("mcp-session-id: {session}\r\n");
        let ask = |method: &str, params: &str| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"{method}","params":{params}}}"#);
            exchange(&address, "POST /mcp", (&good, &session), &body)
        };
        ask("logging/setLevel", r#"{"level":"debug"}"#);
        let tools = ask("tools/list", "{}");
        assert!(tools.contains("pipe-ok__errs") && tools.contains("http-ok__errs"), "{tools}");
        search.look("tools/list", &tools);
        let mut beside = std::collections::BTreeSet::new();
        for tool in
            ["pipe-ok__fine", "pipe-ok__errs", "http-ok__fine", "http-ok__errs", "pipe-ok__dies", "no-such"]
        {
            let params = format!(r#"{{"name":"{tool}","arguments":{{}},"_meta":{{"progressToken":7}}}}"#);
            let reply = ask("tools/call", &params);
            // Other messages of a server go to the caller of the request.
            for method in ["notifications/message", "notifications/progress"] {
                let is_it = |line: &str| {
                    line.starts_with("data: ") && line.contains(&format!(r#""method":"{method}""#))
                };
                beside.extend(reply.lines().any(is_it).then_some(method));
            }
            search.look(&format!("tools/call {tool}"), &reply);
        }
        assert_eq!(beside.len(), 2, "{beside:?}");
        for method in ["prompts/list", "resources/list", "resources/templates/list"] {
            search.look(method, &ask(method, "{}"));
        }
        for uri in ["mcp-host://problems", "mcp-host://servers", "no://thing"] {
            let read = ask("resources/read", &format!(r#"{{"uri":"{uri}"}}"#));
            search.look(&format!("resources/read {uri}"), &read);
        }
        for path in ["/metrics", "/healthz", "/readyz", "/mcp/pipe-crash", "/nowhere"] {
            for token in [good.clone(), SecretLocation::WrongToken.mark()] {
                search.look(path, &exchange(&address, &format!("GET {path}"), (&token, ""), ""));
            }
        }
        search.look(
            "a wrong token",
            &exchange(&address, "POST /mcp", (&SecretLocation::WrongToken.mark(), ""), INITIALIZE),
        );
        let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        child.wait().unwrap();
        search.look("serve (standard error)", &(told + &rest.join().unwrap()));
        search
    });
    search.await.unwrap().end();

    // The error for an unreadable token file has its position but not its content.
    let mut search = Search::default();
    for text in [
        format!("{} nonsense", SecretLocation::GatewayToken.mark()),
        format!("{0}\n{0}\n", SecretLocation::GatewayToken.mark()),
    ] {
        world.write("tokens", &text);
        let row = ["serve", ".minds/mcp.yaml", "--http", "127.0.0.1:0", "--token-file", "tokens"];
        let ran = world.run(&row, "").await;
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        search.ran("serve", &ran);
        search.look("is looked for", "***");
    }
    search.end();
}

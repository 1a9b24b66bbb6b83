//! What an operator of `serve` gets of the calls of the official clients: the audit log and the log, both as JSON, and
//! the metrics. None has a token, an argument or a result.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use mcp_testkit::process::send_signal;
use mcp_testkit::program::binary;
use mcp_testkit::wait::block_for;
use serde_json::{Value, json};

use super::Installed;

const TOKEN: &str = "ann-0123456789abcdef";
/// It is in an argument and in a result of each call.
const CONTENT: &str = "hunter2";

/// The members of a line of the audit log, as docs/recipes/monitoring.md lists them. Some are absent in some lines.
const MEMBERS: [&str; 17] = [
    "time",
    "client",
    "address",
    "token",
    "token_line",
    "session",
    "method",
    "server",
    "tool",
    "prompt",
    "outcome",
    "ruling",
    "rule",
    "code",
    "duration_ms",
    "request_bytes",
    "result_bytes",
];

/// `serve` with its log in a file. It is killed on drop.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[track_caller]
fn json_lines(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(parse).collect()
}

fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("host: {address}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close");
    write!(stream, "GET /metrics HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn calls_of_official_clients_are_in_the_logs_without_their_content() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let servers = json!({"mcpServers": {"demo": {"command": "mcp-host", "args": ["demo-server"]}}});
    std::fs::write(path("mcp.json"), servers.to_string()).unwrap();
    std::fs::write(path("tokens"), format!("{TOKEN} name=ann\n")).unwrap();
    let mut command = Command::new(binary());
    command.args(["serve", "mcp.json", "--http", "127.0.0.1:0", "--token-file", "tokens"]);
    command.args(["--audit", "audit.jsonl", "--log-format", "json"]).current_dir(folder.path());
    command.env("XDG_STATE_HOME", folder.path()).env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(path("log.jsonl")).unwrap());
    let mut served = Served(command.spawn().unwrap());
    let address = block_for(|| {
        let log = text(&path("log.jsonl"));
        let address = log.split_once("serving MCP at http://")?.1.split_once("/mcp")?.0;
        Some(address.to_owned())
    });

    let calls = json!([
        ["demo__echo", {"text": CONTENT}],
        ["demo__fail", {"message": CONTENT}],
        ["demo__none", {"text": CONTENT}],
    ]);
    let url = format!("http://{address}/mcp");
    for (sdk, mode) in [(1, None), (2, Some("auto"))] {
        let scenario = json!({"sdk": sdk, "mode": mode, "url": url, "token": TOKEN, "calls": calls});
        let said = installed.typescript(&scenario).json();
        assert_eq!(said["answers"][0]["content"][0]["text"], CONTENT, "{said}");
    }
    let page = metrics(&address);
    for line in [
        r#"mcp_gateway_tool_calls_total{server="demo",tool="demo__echo",outcome="success"} 2"#,
        r#"mcp_gateway_tool_calls_total{server="demo",tool="demo__fail",outcome="tool_error"} 2"#,
        r#"mcp_gateway_token_calls_total{token="ann",outcome="error"} 2"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
    send_signal("TERM", served.0.id());
    assert_eq!(served.0.wait().unwrap().code(), Some(143));

    let audit = text(&path("audit.jsonl"));
    let mut calls: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in json_lines(&audit) {
        let unknown = line.as_object().unwrap().keys().find(|key| !MEMBERS.contains(&key.as_str()));
        assert_eq!(unknown, None, "{line}");
        assert_eq!((&line["token"], &line["method"]), (&json!("ann"), &json!("tools/call")), "{line}");
        assert!(line["time"].is_string() && line["duration_ms"].as_f64().unwrap() >= 0.0, "{line}");
        // The parameters have at least the name of the tool and the argument.
        assert!(line["request_bytes"].as_u64().unwrap() > "demo__echo".len() as u64 + 7, "{line}");
        let has_result = line["outcome"] != "error";
        assert_eq!(line["result_bytes"].as_u64().unwrap() > CONTENT.len() as u64, has_result, "{line}");
        let client = line["client"].as_str().unwrap().to_owned();
        let call = json!([line["server"], line["tool"], line["outcome"], line["code"]]);
        calls.entry(client).or_default().push(call);
    }
    let expected = [
        json!(["demo", "demo__echo", "success", null]),
        json!(["demo", "demo__fail", "tool_error", null]),
        json!([null, "demo__none", "error", -32602]),
    ];
    let clients: Vec<&str> = calls.keys().map(String::as_str).collect();
    assert_eq!(clients, ["typescript-1", "typescript-2"]);
    assert!(calls.values().all(|calls| *calls == expected), "{calls:?}");

    let log = text(&path("log.jsonl"));
    let messages: Vec<String> = json_lines(&log)
        .iter()
        .map(|line| {
            assert!(line["timestamp"].is_string() && line["target"].is_string(), "{line}");
            format!("{} {}", line["level"].as_str().unwrap(), line["message"].as_str().unwrap())
        })
        .collect();
    let serving = format!("INFO serving MCP at {url}");
    assert!(messages.contains(&serving) && messages.contains(&"INFO server demo is up".to_owned()), "{log}");
    for secret in [TOKEN, CONTENT] {
        assert!(![&audit, &log, &page].iter().any(|text| text.contains(secret)), "{secret}");
    }
}

//! Test servers, and comparison of a server over two transports: lists and results are equal.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use mcp_host_model::RawJson;
use mcp_host_runtime::{Host, ToolCall};
use mcp_testkit::program::Run;
use mcp_testkit::wait::block_until;
use serde_json::Value;

/// Calls of server-everything, one of them invalid.
pub(crate) const EVERYTHING: [(&str, &str); 5] = [
    ("it__echo", r#"{"message":"hello, \u4e16\u754c"}"#),
    ("it__get-sum", r#"{"a":2,"b":40}"#),
    ("it__get-tiny-image", "{}"),
    ("it__get-structured-content", r#"{"location":"Chicago"}"#),
    ("it__get-sum", r#"{"a":"no number","b":1}"#),
];

/// A server, killed on drop.
pub(crate) struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server on a free port and waits until it listens.
pub(crate) fn start(command: impl FnOnce(u16) -> Command) -> (Server, u16) {
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut command = command(port);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server(command.spawn().unwrap());
    block_until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    (server, port)
}

/// The bundled demo server over HTTP, and the first of its URLs that matches.
pub(crate) fn demo(folder: &Path, wanted: impl Fn(&str) -> bool) -> (Server, String) {
    let mut server = Server(Run::new(folder, folder, &["demo-server", "--http", "127.0.0.1:0"]).start());
    let query = BufReader::new(server.0.stderr.take().unwrap());
    let mut lines = query.lines().map(Result::unwrap);
    let url = lines.find_map(|it| it.split_whitespace().find(|it| wanted(it)).map(str::to_owned));
    (server, url.unwrap())
}

/// A HoloDeck agent with the item `it` of this transport and URL.
pub(crate) fn holodeck(folder: &Path, transport: &str, url: &str) -> PathBuf {
    let path = folder.join("agent.yaml");
    let text = format!(
        "name: t\nmodel: {{provider: openai, name: m}}\ninstructions: {{inline: i}}\ntools:\n  - name: it\n    \
         description: d\n    type: mcp\n    server: x\n    transport: {transport}\n    url: {url}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// A Dominds workspace with the server `it` and this command.
pub(crate) fn over_stdio(folder: &Path, command: &[&str]) -> PathBuf {
    let path = folder.join(".minds/mcp.yaml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let (program, arguments) = command.split_first().unwrap();
    let arguments = serde_json::to_string(arguments).unwrap();
    let text = format!(
        "version: 1\nservers:\n  it:\n    {{transport: stdio, command: '{program}', args: {arguments}, transform: \
         [{{prefix: it__}}]}}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// The output for one configuration: its tools and the results of these calls, without durations.
fn query(folder: &Path, file: &Path, calls: &[(&str, &str)]) -> (Value, Vec<Value>) {
    let file = file.display().to_string();
    let run = |arguments: &[&str]| {
        let ran = Run::new(folder, folder, arguments).finish();
        assert_ne!(ran.code, None, "{ran:#?}");
        ran.json()
    };
    let tools = run(&["tools", &file, "--format", "json"])["tools"].take();
    assert!(tools.as_array().is_some_and(|it| !it.is_empty()), "{tools:#}");
    let answers = calls.iter().map(|(tool, arguments)| {
        let mut answer = run(&["call", &file, tool, arguments, "--format", "json"]);
        for volatile in ["duration_ms", "request_id"] {
            answer["metadata"].as_object_mut().unwrap().remove(volatile);
        }
        answer
    });
    (tools, answers.collect())
}

/// The names and schemas of tools.
fn signatures(tools: &Value) -> Vec<(String, Value)> {
    let tools = tools.as_array().unwrap();
    let signature = |it: &Value| (it["name"].as_str().unwrap().to_owned(), it["input_schema"].clone());
    assert!(tools.iter().all(|it| it["input_schema"].is_object()), "{tools:#?}");
    tools.iter().map(signature).collect()
}

/// Lists and calls over both transports, and compares.
pub(crate) fn check_same(wire: &Path, stdio: &Path, calls: &[(&str, &str)]) {
    let (tools, answers) = query(wire.parent().unwrap(), wire, calls);
    let (same_tools, same_answers) = query(stdio.parent().unwrap(), stdio, calls);
    assert_eq!(signatures(&tools), signatures(&same_tools));
    for ((answer, same), call) in answers.iter().zip(&same_answers).zip(calls) {
        assert_eq!(answer, same, "{call:?}");
    }
}

/// Makes the demo server (item `it`) add a tool, waits for the generation with it, and calls it.
pub(crate) async fn check_change(host: Host) {
    host.wait_until_ready().await;
    let mut published = host.subscribe();
    let added = host.call(ToolCall::new("it__change_tools", json(r#"{"name":"fresh"}"#))).await;
    assert!(added.success, "{added:?}");
    let change = published.wait_for(|it| it.catalog.tool("it__fresh").is_some());
    let change = tokio::time::timeout(std::time::Duration::from_secs(20), change).await;
    change.expect("the change is heard").unwrap();
    let called = host.call(ToolCall::new("it__fresh", json("{}"))).await;
    assert!(called.success, "{called:?}");
    host.shutdown().await;
}

fn json(text: &'static str) -> RawJson {
    RawJson::parse(text.into()).unwrap()
}

//! HTTP with server-sent events, with servers that really speak it: what they list and answer is the same as over
//! standard input and output.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use mcp_host::{Host, HostOptions, LoadRequest, ToolCall, load};
use mcp_model::{Endpoint, RawJson, SseFallback};
use mcp_tests::{Run, eventually, installed, root};
use serde_json::Value;

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server that gets its port from `command`, and waits until it listens.
fn start(command: impl FnOnce(u16) -> Command) -> (Server, u16) {
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut command = command(port);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server(command.spawn().unwrap());
    eventually("the server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    (server, port)
}

/// A HoloDeck agent with one item, `it`, that is reached as these lines say.
fn holodeck(folder: &Path, lines: &str) -> PathBuf {
    let path = folder.join("agent.yaml");
    let text = format!(
        "name: t\nmodel: {{provider: openai, name: m}}\ninstructions: {{inline: i}}\ntools:\n  - name: it\n    \
         description: d\n    type: mcp\n{lines}"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn over_sse(folder: &Path, port: u16) -> PathBuf {
    let lines = format!("    server: x\n    transport: sse\n    url: http://127.0.0.1:{port}/sse\n");
    holodeck(folder, &lines)
}

/// A Dominds workspace with one server, `it`, and this command.
fn over_stdio(folder: &Path, command: &[&str]) -> PathBuf {
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

/// What the program says of one configuration: its tools, and the answers to these calls, without what takes time.
fn said(folder: &Path, file: &Path, calls: &[(&str, &str)]) -> (Value, Vec<Value>) {
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

/// The names of tools with what they take.
fn signatures(tools: &Value) -> Vec<(String, Value)> {
    let tools = tools.as_array().unwrap();
    let signature = |it: &Value| (it["name"].as_str().unwrap().to_owned(), it["input_schema"].clone());
    assert!(tools.iter().all(|it| it["input_schema"].is_object()), "{tools:#?}");
    tools.iter().map(signature).collect()
}

/// Lists and calls over both, and compares.
fn check_same(sse: &Path, stdio: &Path, calls: &[(&str, &str)]) {
    let (tools, answers) = said(sse.parent().unwrap(), sse, calls);
    let (same_tools, same_answers) = said(stdio.parent().unwrap(), stdio, calls);
    assert_eq!(signatures(&tools), signatures(&same_tools));
    for ((answer, same), call) in answers.iter().zip(&same_answers).zip(calls) {
        assert_eq!(answer, same, "{call:?}");
    }
}

#[test]
fn hd_120_hd_fr005_a_real_server_of_the_typescript_sdk() {
    let Some(modules) = installed("MCP_HOST_NODE_MODULES") else { return };
    let script = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    let (_server, port) = start(|port| {
        let mut command = Command::new("node");
        command.arg(&script).arg("sse").env("PORT", port.to_string());
        command
    });
    let folder = tempfile::tempdir().unwrap();
    let sse = over_sse(folder.path(), port);
    let stdio = over_stdio(folder.path(), &["node", &script.display().to_string(), "stdio"]);
    check_same(
        &sse,
        &stdio,
        &[
            ("it__echo", r#"{"message":"hello, \u4e16\u754c"}"#),
            ("it__get-sum", r#"{"a":2,"b":40}"#),
            ("it__get-tiny-image", "{}"),
            ("it__get-structured-content", r#"{"location":"Chicago"}"#),
            ("it__get-sum", r#"{"a":"no number","b":1}"#),
        ],
    );
}

#[test]
fn hd_120_a_real_server_of_the_python_sdk() {
    let Some(venv) = installed("MCP_HOST_VENV") else { return };
    let python = venv.join("bin/python").display().to_string();
    let script = root().join("tests/python/server.py").display().to_string();
    let (_server, port) = start(|port| {
        let mut command = Command::new(&python);
        command.args([&script, "sse", &port.to_string()]);
        command
    });
    let folder = tempfile::tempdir().unwrap();
    let sse = over_sse(folder.path(), port);
    let stdio = over_stdio(folder.path(), &[&python, &script, "stdio"]);
    check_same(
        &sse,
        &stdio,
        &[
            ("it__add", r#"{"a":2,"b":40}"#),
            ("it__greet", r#"{"name":"Ann","loud":true}"#),
            ("it__add", r#"{"a":"no number","b":1}"#),
        ],
    );
}

/// The bundled demo server over HTTP, and its URL for server-sent events.
fn demo(folder: &Path) -> (Server, String) {
    let mut server = Server(Run::new(folder, folder, &["demo-server", "--http", "127.0.0.1:0"]).start());
    let said = BufReader::new(server.0.stderr.take().unwrap());
    let urls = said.lines().map(Result::unwrap);
    let url =
        urls.filter_map(|it| it.split_whitespace().find(|it| it.ends_with("/sse")).map(str::to_owned)).next();
    (server, url.unwrap())
}

/// Lets the server add a tool, waits for the generation that has it, and calls it by its name.
async fn check_change(host: Host) {
    host.ready().await;
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

#[tokio::test]
async fn hd_115_a_changed_list_makes_a_generation_over_server_sent_events() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path());
    let file = holodeck(folder.path(), &format!("    server: x\n    transport: sse\n    url: {url}\n"));
    let host = Host::start(HostOptions::default());
    host.apply(load(&LoadRequest::new(file)).unwrap().wanted).await;
    check_change(host).await;
}

#[tokio::test]
async fn dia_08_a_url_that_may_be_either_is_found_to_be_the_older_one() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path());
    let file = holodeck(folder.path(), &format!("    server: x\n    transport: http\n    url: {url}\n"));
    let mut wanted = load(&LoadRequest::new(file)).unwrap().wanted;
    let host = Host::start(HostOptions::default());
    for server in &mut wanted.servers {
        let Endpoint::Http(endpoint) = &mut server.endpoint else { panic!("it is over HTTP") };
        endpoint.sse_fallback = SseFallback::Allowed;
    }
    host.apply(wanted).await;
    check_change(host).await;
}

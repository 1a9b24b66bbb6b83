//! The schemas in a real YAML language server.
//!
//! Each file begins with the schema line from the docs, so the file alone selects its schema.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mcp_testkit::program::{installed_folder, root};
use serde_json::{Value, json};

/// A language server with one open file.
struct Editor {
    server: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    next_id: u64,
}

const FILE: &str = "file:///workspace/open.yaml";

impl Editor {
    /// Opens `text` with the line for `schema`. `None` if no language server is installed.
    fn open(schema: &str, text: &str) -> Option<Editor> {
        let modules = installed_folder("MCP_HOST_NODE_MODULES")?;
        let mut server = Command::new("node")
            .arg(modules.join("yaml-language-server/bin/yaml-language-server"))
            .arg("--stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("node starts");
        let input = server.stdin.take().expect("it is piped");
        let mut output = BufReader::new(server.stdout.take().expect("it is piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut res = Editor { server, input, messages, next_id: 0 };
        let capabilities = json!({
            "workspace": { "configuration": true },
            "textDocument": { "publishDiagnostics": {}, "completion": {}, "hover": { "contentFormat": ["plaintext"] } },
        });
        res.ask("initialize", json!({ "processId": null, "rootUri": null, "capabilities": capabilities }));
        res.write(json!({ "method": "initialized", "params": {} }));
        let schema = root().join(format!("schemas/{schema}.schema.json"));
        let text = format!("# yaml-language-server: $schema={}\n{text}", schema.display());
        let document = json!({ "uri": FILE, "languageId": "yaml", "version": 1, "text": text });
        res.write(json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } }));
        Some(res)
    }

    /// The diagnostics as `line: message`, with lines of `text` from 1.
    fn diagnostics(&mut self) -> Vec<String> {
        let told = self.until(|it| it["method"] == "textDocument/publishDiagnostics");
        let lines = told["params"]["diagnostics"].as_array().expect("it is a list").iter().map(|it| {
            // The schema line is added and lines count from 0, so the two cancel out.
            format!("{}: {}", it["range"]["start"]["line"], it["message"].as_str().unwrap_or_default())
        });
        lines.collect()
    }

    /// The labels of the completions at a position of `text`, from 1.
    fn completions(&mut self, line: usize, column: usize) -> Vec<String> {
        let answer = self.ask("textDocument/completion", at(line, column));
        let items = answer["items"].as_array().expect("it is a list").iter();
        items.map(|it| it["label"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn hover(&mut self, line: usize, column: usize) -> String {
        self.ask("textDocument/hover", at(line, column))["contents"].to_string()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.write(json!({ "id": id, "method": method, "params": params }));
        self.until(|it| it["id"] == id && it["method"].is_null())["result"].clone()
    }

    /// The next matching message; requests of the server get an empty response.
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message =
                self.messages.recv_timeout(Duration::from_secs(60)).expect("the server says something");
            if wanted(&message) {
                return message;
            }
            if !message["method"].is_null() && !message["id"].is_null() {
                let items = message["params"]["items"].as_array().map_or(0, Vec::len);
                self.write(json!({ "id": message["id"], "result": vec![json!({}); items] }));
            }
        }
    }

    fn write(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        self.input.flush().expect("the server reads");
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn at(line: usize, column: usize) -> Value {
    json!({ "textDocument": { "uri": FILE }, "position": { "line": line, "character": column - 1 } })
}

fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", bytes)) => length = bytes.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

#[track_caller]
fn example(path: &str) -> String {
    std::fs::read_to_string(root().join("examples").join(path)).unwrap()
}

#[test]
fn examples_have_no_diagnostics() {
    for (schema, path) in [
        ("holodeck", "holodeck/agent.yaml"),
        ("dominds", "dominds/.minds/mcp.yaml"),
        ("dominds", "quickstart/.minds/mcp.yaml"),
    ] {
        let Some(mut editor) = Editor::open(schema, &example(path)) else { return };
        assert_eq!(editor.diagnostics(), [""; 0], "{path}");
    }
}

#[test]
fn an_invalid_agent_has_diagnostics_and_completions() {
    let text = "\
name: agent
tools:
  - name: files
    type: mcp
    description: Files.
    server: files
    command: npm
    request_timeout: soon
  - name: search
    type: vectorstore
    command: 7
  - name: time
    type: mcp
    server: time
    description: Time.
    command: uvx
    
";
    let Some(mut editor) = Editor::open("holodeck", text) else { return };
    let diagnostics = editor.diagnostics();
    let on = |position: &str, word: &str| {
        diagnostics.iter().any(|text| text.starts_with(position) && text.contains(word))
    };
    assert!(on("7: ", "npx"), "{diagnostics:?}");
    assert!(on("8: ", "integer"), "{diagnostics:?}");
    assert!(
        diagnostics.iter().all(|line| line.starts_with("7:") || line.starts_with("8:")),
        "{diagnostics:?}"
    );
    let offered = editor.completions(17, 5);
    for key in ["args", "env", "request_timeout", "load_tools"] {
        assert!(offered.iter().any(|it| it == key), "{key} is not in {offered:?}");
    }
    assert!(editor.hover(8, 6).contains("econds"), "{}", editor.hover(8, 6));
}

#[test]
fn an_invalid_workspace_has_diagnostics_and_completions() {
    let text = "\
version: 1
servers:
  files:
    transport: stdoi
    command: npx
  remote:
    transport: streamable_http
    
";
    let Some(mut editor) = Editor::open("dominds", text) else { return };
    let diagnostics = editor.diagnostics();
    assert!(
        diagnostics.iter().any(|line| line.starts_with("4: ") && line.contains("streamable_http")),
        "{diagnostics:?}"
    );
    assert!(
        diagnostics.iter().any(|line| line.starts_with("6: ") && line.contains("url")),
        "{diagnostics:?}"
    );
    let offered = editor.completions(8, 5);
    for key in ["url", "headers", "truely-stateless"] {
        assert!(offered.iter().any(|it| it == key), "{key} is not in {offered:?}");
    }
    assert!(editor.hover(4, 8).contains("The transport of the server"), "{}", editor.hover(4, 8));
}

//! Comparison field by field: what a client gets from a server directly, and through `serve`, in both eras.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use mcp_testkit::program::{Run, binary, installed_folder};
use serde_json::{Map, Value, json};

use crate::compare::over_stdio;

/// The members of results that differ by design.
const BY_DESIGN: [(&str, &str); 4] = [
    ("resultType", "it exists in the modern era only"),
    ("ttlMs", "it exists in the modern era only, and the gateway has its own for lists"),
    ("cacheScope", "it exists in the modern era only, and the gateway's lists are private"),
    ("nextCursor", "the gateway has pages of its own"),
];

/// Tools that are not compared, and why.
const NOT_COMPARED: [(&str, &str); 8] = [
    ("get-env", "its result is the environment of the server's process"),
    ("simulate-research-query", "it runs as a task"),
    ("toggle-simulated-logging", "it sends random messages"),
    ("toggle-subscriber-updates", "it sends messages by the clock"),
    ("trigger-long-running-operation", "it takes long, and sends progress only"),
    ("trigger-sampling-request-async", "it runs as a task"),
    ("trigger-elicitation-request-async", "it runs as a task"),
    ("sleep", "it takes long, and sends progress only"),
];

/// What the client of the comparison can do.
const CAPABILITIES: &str = r#"{"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}"#;

#[derive(Debug, Clone, Copy, PartialEq)]
enum ClientEra {
    Legacy,
    Modern,
}

/// A client that sends and compares plain JSON over stdio.
struct Client {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    era: ClientEra,
    last_id: u64,
    /// The server requests so far.
    server_requests: Vec<Value>,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    fn connect(mut child: Child, era: ClientEra) -> Client {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client = Client { child, lines, era, last_id: 0, server_requests: Vec::new() };
        if era == ClientEra::Legacy {
            let capabilities: Value = serde_json::from_str(CAPABILITIES).unwrap();
            let client_info = json!({"name": "t", "version": "1"});
            client.request(
                "initialize",
                json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client_info}),
            );
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    /// The result of a request, or its error's code and message.
    fn request(&mut self, method: &str, mut params: Value) -> Value {
        if self.era == ClientEra::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": serde_json::from_str::<Value>(CAPABILITIES).unwrap(),
            });
        }
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("{method}: the server has ended")).unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("method").is_some() {
                if message.get("id").is_some() {
                    let result = self.answer(&message);
                    self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
                }
                continue;
            }
            if message["id"] != id {
                continue;
            }
            let Some(result) = message.get("result") else { return message["error"].clone() };
            if result["resultType"] != "input_required" {
                return result.clone();
            }
            let requests = result["inputRequests"].as_object().unwrap();
            let responses: Map<String, Value> =
                requests.iter().map(|(key, request)| (key.clone(), self.answer(request))).collect();
            params["inputResponses"] = responses.into();
            params["requestState"] = result["requestState"].clone();
            if params["requestState"].is_null() {
                params.as_object_mut().unwrap().remove("requestState");
            }
            return self.request(method, params);
        }
    }

    /// Answers a server request.
    fn answer(&mut self, request: &Value) -> Value {
        // Parameters may be left out if there are none.
        let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
        self.server_requests.push(json!([request["method"], params]));
        match request["method"].as_str().unwrap() {
            "sampling/createMessage" => json!({
                "role": "assistant", "model": "m", "stopReason": "endTurn",
                "content": {"type": "text", "text": "sampled"}
            }),
            "elicitation/create" if request["params"]["mode"] == "url" => json!({"action": "accept"}),
            "elicitation/create" => json!({"action": "decline"}),
            "roots/list" => json!({"roots": [{"uri": "file:///work", "name": "work"}]}),
            _ => json!({}),
        }
    }

    /// All items of a list.
    fn list(&mut self, method: &str, member: &str) -> Vec<Value> {
        let (mut items, mut params) = (Vec::new(), json!({}));
        loop {
            let page = self.request(method, params);
            items.extend(page[member].as_array().cloned().unwrap_or_default());
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return items,
            }
        }
    }
}

/// A server and the requests that are compared.
struct Compared {
    command: Vec<String>,
    /// The eras in which the server is asked directly.
    direct: &'static [ClientEra],
    calls: Vec<(&'static str, Value)>,
    prompts: Vec<(&'static str, Value)>,
    reads: Vec<&'static str>,
    completions: Vec<Value>,
}

impl Compared {
    fn direct(&self) -> Child {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    fn through_gateway(&self, folder: &Path) -> Child {
        let command: Vec<&str> = self.command.iter().map(String::as_str).collect();
        let file = over_stdio(folder, &command).display().to_string();
        let arguments = ["serve", &file, "--stdio", "--only", "it", "--raw-names"];
        Run::new(folder, folder, &arguments).piped_input().start()
    }

    /// Everything that the server offers and returns, by request.
    fn observe(&self, mut client: Client, tools: usize) -> Vec<(String, Value)> {
        let mut observed = Vec::new();
        // server-everything has some of its tools only after it knows its client.
        mcp_testkit::wait::block_until(|| client.list("tools/list", "tools").len() >= tools);
        for (method, member) in [
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            let items = client.list(method, member);
            if member == "tools" {
                let names = items.iter().map(|item| item["name"].as_str().unwrap());
                let is_known = |name: &&str| {
                    self.calls.iter().any(|(tool, _)| tool == name)
                        || NOT_COMPARED.iter().any(|(tool, _)| tool == name)
                };
                let unknown: Vec<&str> = names.filter(|name| !is_known(name)).collect();
                assert!(unknown.is_empty() || self.calls.is_empty(), "not compared: {unknown:?}");
            }
            observed.push((method.to_owned(), items.into()));
        }
        let requests = self
            .calls
            .iter()
            .map(|(name, arguments)| ("tools/call", json!({"name": name, "arguments": arguments})));
        let requests = requests.chain(
            self.prompts
                .iter()
                .map(|(name, arguments)| ("prompts/get", json!({"name": name, "arguments": arguments}))),
        );
        let requests = requests.chain(self.reads.iter().map(|uri| ("resources/read", json!({"uri": uri}))));
        let requests =
            requests.chain(self.completions.iter().map(|params| ("completion/complete", params.clone())));
        for (method, params) in requests.collect::<Vec<_>>() {
            let label = format!("{method} {params}");
            let result = client.request(method, params);
            let mut requests = std::mem::take(&mut client.server_requests);
            // server-everything requests the roots at a time after its start, in any call. Its result of
            // `get-roots-list` contains them.
            requests.retain(|request| request[0] != "roots/list");
            observed.push((label, json!([result, requests])));
        }
        observed
    }
}

/// Removes what differs by design, by chance or by the clock.
fn normalise(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| BY_DESIGN.iter().all(|(other, _)| other != name));
            if members.get("code").is_some_and(|code| code == -32002 || code == -32602) {
                // Each era has its code for an unknown resource, and the gateway adds the URI.
                members.insert("code".to_owned(), "not found".into());
                members.remove("data");
            }
            members.values_mut().for_each(normalise);
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::String(text) => {
            let is_uuid = text.len() == 36 && text.match_indices('-').map(|(at, _)| at).eq([8, 13, 18, 23]);
            if is_uuid {
                text.clear();
            }
            if let Some(at) = text.find(" created at ") {
                text.truncate(at);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn npm(modules: &Path, script: &str, more: &[&str]) -> Vec<String> {
    let script = modules.join("@modelcontextprotocol").join(script).display().to_string();
    let more = more.iter().map(|it| (*it).to_owned());
    ["node".to_owned(), script].into_iter().chain(more).collect()
}

#[test]
fn every_field_is_the_same_directly_and_through_the_gateway() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt").display().to_string();
    std::fs::write(&file, "hello\n").unwrap();
    let allowed = folder.path().display().to_string();
    use ClientEra::{Legacy, Modern};
    let everything = Compared {
        command: npm(&modules, "server-everything/dist/index.js", &["stdio"]),
        direct: &[Legacy],
        calls: vec![
            ("echo", json!({"message": "hello, \u{4e16}"})),
            ("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
            ("get-resource-links", json!({"count": 3})),
            ("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})),
            ("get-structured-content", json!({"location": "Chicago"})),
            ("get-sum", json!({"a": 2, "b": 40})),
            ("get-tiny-image", json!({})),
            ("get-roots-list", json!({})),
            ("trigger-sampling-request", json!({"prompt": "p", "maxTokens": 5})),
            ("trigger-elicitation-request", json!({})),
            (
                "trigger-url-elicitation",
                json!({"url": "https://example.com/", "message": "m", "elicitationId": "1"}),
            ),
            (
                "trigger-url-elicitation",
                json!({"url": "https://example.com/", "elicitationId": "2", "errorPath": true}),
            ),
            // Its link is read below, at once and before any list shows the resource.
            (
                "gzip-file-as-resource",
                json!({"name": "a.gz", "data": "data:text/plain,x", "outputType": "resourceLink"}),
            ),
        ],
        prompts: vec![
            ("simple-prompt", json!({})),
            ("args-prompt", json!({"city": "Paris"})),
            ("completable-prompt", json!({"department": "Sales", "name": "Eve"})),
            ("resource-prompt", json!({"resourceType": "Text", "resourceId": "1"})),
        ],
        reads: vec![
            "demo://resource/session/a.gz",
            "demo://resource/static/document/architecture.md",
            "demo://resource/dynamic/text/1",
        ],
        completions: vec![
            json!({"ref": {"type": "ref/prompt", "name": "completable-prompt"}, "argument": {"name": "department", "value": "S"}}),
            json!({"ref": {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"}, "argument": {"name": "resourceId", "value": "1"}}),
        ],
    };
    let lists = |command: Vec<String>| Compared {
        command,
        direct: &[Legacy],
        calls: Vec::new(),
        prompts: Vec::new(),
        reads: Vec::new(),
        completions: Vec::new(),
    };
    let demo = Compared {
        direct: &[Legacy, Modern],
        prompts: vec![("summarise", json!({"text": "x"}))],
        reads: vec!["demo://greeting", "demo://picture", "demo://numbers/3", "demo://nowhere"],
        ..lists(vec![binary().display().to_string(), "demo-server".to_owned()])
    };
    let servers = [everything, demo, lists(npm(&modules, "server-filesystem/dist/index.js", &[&allowed]))];
    for server in &servers {
        let observe = |child: Child, era: ClientEra, tools: usize| {
            let mut observed = server.observe(Client::connect(child, era), tools);
            observed.iter_mut().for_each(|(_, value)| normalise(value));
            observed
        };
        for direct in server.direct {
            let expected = observe(server.direct(), *direct, 1);
            let tools = expected[0].1.as_array().unwrap().len();
            for era in [Legacy, Modern] {
                let got = observe(server.through_gateway(folder.path()), era, tools);
                for ((label, expected), (_, got)) in expected.iter().zip(&got) {
                    assert_eq!(got, expected, "{:?} {era:?} {label}", server.command);
                }
            }
        }
    }
}

//! Comparison field by field: what a client gets from a server directly, and through `serve`, in both eras.

mod client;
mod servers;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use client::{Client, ClientEra};
use mcp_testkit::program::Run;
use serde_json::{Value, json};

/// The members that differ by design, and why. Of lists, the items are compared.
const BY_DESIGN: [(&str, &str); 10] = [
    ("resultType", "it exists in the modern era only"),
    ("ttlMs", "it exists in the modern era only, and the gateway has its own for lists"),
    ("cacheScope", "it exists in the modern era only, and the gateway's lists are private"),
    ("nextCursor", "the gateway has pages of its own"),
    ("io.modelcontextprotocol/serverInfo", "servers of the modern era add it to every result"),
    ("elicitationId", "it exists in the legacy era only"),
    ("experimental", "the gateway forwards no requests that it does not know"),
    ("execution", "it exists in the legacy era only"),
    ("listChanged", "the gateway announces the changes of its own lists"),
    ("tasks", "each era has its own form, and the gateway lists no tasks"),
];

/// The members of a server's description that are those of the gateway. A model may see a description, which
/// a lock file does not cover.
const OF_THE_GATEWAY: [&str; 3] = ["name", "version", "description"];

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

/// A server and the requests that are compared.
struct Compared {
    command: Vec<String>,
    environment: Vec<(&'static str, String)>,
    /// The eras in which the server is asked directly.
    direct: &'static [ClientEra],
    calls: Vec<(&'static str, Value)>,
    prompts: Vec<(&'static str, Value)>,
    reads: Vec<&'static str>,
    completions: Vec<Value>,
    /// Options of `serve`.
    options: &'static [&'static str],
    /// Methods of server requests that arrive by chance.
    by_chance: &'static [&'static str],
    /// A tool, and the text of its result once the server knows its client.
    ready: Option<(&'static str, &'static str)>,
}

impl Compared {
    fn direct(&self) -> Child {
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }

    fn through_gateway(&self, folder: &Path) -> Child {
        let (program, arguments) = self.command.split_first().unwrap();
        let mut server = json!({"command": program, "args": arguments, "env": {}});
        for (name, value) in &self.environment {
            server["env"][name] = value.as_str().into();
        }
        let path = folder.join("mcp.json");
        std::fs::write(&path, json!({"mcpServers": {"it": server}}).to_string()).unwrap();
        let file = path.display().to_string();
        let arguments = ["serve", &file, "--stdio", "--only", "it", "--raw-names"];
        Run::new(folder, folder, &[&arguments[..], self.options].concat()).piped_input().start()
    }

    /// Everything that the server offers and returns, by request.
    fn observe(&self, mut client: Client, tools: usize) -> Vec<(String, Value)> {
        let mut observed = vec![("handshake".to_owned(), handshake(&client.handshake))];
        // server-everything has some of its tools only after it knows its client.
        mcp_testkit::wait::block_until(|| client.list("tools/list", "tools").len() >= tools);
        if let Some((name, text)) = self.ready {
            let params = json!({"name": name, "arguments": {}});
            let mut call = || client.request("tools/call", params.clone()).to_string();
            mcp_testkit::wait::block_until(|| call().contains(text));
            client.received.clear();
        }
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
            let mut received = std::mem::take(&mut client.received);
            received.retain(|message| self.by_chance.iter().all(|method| message[0] != *method));
            observed.push((label, json!([result, received])));
        }
        observed
    }
}

/// What a server says about itself, without its protocol versions.
fn handshake(result: &Value) -> Value {
    let mut info = match result.get("serverInfo") {
        Some(info) => info.clone(),
        None => result["_meta"]["io.modelcontextprotocol/serverInfo"].clone(),
    };
    info.as_object_mut().unwrap().retain(|member, _| !OF_THE_GATEWAY.contains(&member.as_str()));
    let mut capabilities = result["capabilities"].clone();
    for members in capabilities.as_object_mut().unwrap().values_mut().filter_map(Value::as_object_mut) {
        // That means the same as an absent member.
        members.retain(|_, value| *value != false);
    }
    json!([info, capabilities, result["instructions"]])
}

/// Removes what differs by design, by chance or by the clock.
fn normalise(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| BY_DESIGN.iter().all(|(other, _)| other != name));
            if members.get("code").is_some_and(|code| code == -32002 || code == -32602) {
                // Each era has its code for an unknown resource, and the gateway adds the URI.
                members.insert("code".to_owned(), "not found".into());
                members.retain(|name, value| name != "data" || value.get("uri").is_none());
            }
            members.values_mut().for_each(normalise);
            // An SDK numbers the progress of its own requests in the legacy era.
            members.retain(|name, value| name != "progressToken" || !value.is_number());
            members
                .retain(|name, value| name != "_meta" || value.as_object().is_none_or(|it| !it.is_empty()));
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

#[track_caller]
fn check(server: &Compared, folder: &Path) {
    use ClientEra::{Legacy, Modern};
    let observe = |child: Child, era: ClientEra, tools: usize| {
        let mut observed = server.observe(Client::connect(child, era), tools);
        observed.iter_mut().for_each(|(_, value)| normalise(value));
        observed
    };
    let mut different = Vec::new();
    for direct in server.direct {
        let expected = observe(server.direct(), *direct, 1);
        let tools = expected[1].1.as_array().unwrap().len();
        for era in [Legacy, Modern] {
            let got = observe(server.through_gateway(folder), era, tools);
            assert_eq!(got.len(), expected.len());
            let pairs = expected.iter().zip(&got).filter(|(expected, got)| expected != got);
            different.extend(pairs.map(|((label, expected), (_, got))| {
                format!("{direct:?} {era:?} {label}\nexpected {expected}\ngot      {got}\n")
            }));
        }
    }
    assert!(different.is_empty(), "{:?}\n{}", server.command, different.join("\n"));
}

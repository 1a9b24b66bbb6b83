//! Every client lists and calls over all transports; behind `serve` runs the demo server over each transport.

use std::path::Path;

use mcp_testkit::program::{Run, binary, root};
use serde_json::{Value, json};

use super::{Gateway, Installed};
use crate::compare::demo;

/// The name of each transport's server.
const WIRES: [&str; 4] = ["pipe", "http", "sse", "socket"];

/// The protocol versions of the eras.
const BEFORE: &str = "2025-11-25";
const NOW: &str = "2026-07-28";

/// The exit code of the Inspector for a tool result with an error.
const IS_ERROR: i32 = 5;

/// A client and its mode.
#[derive(Debug, Clone, Copy)]
pub(super) enum ClientKind {
    /// The Inspector's command line in this era. It makes one call per process and does not print the version.
    Inspector(&'static str),
    /// This major version of the official TypeScript SDK, over HTTP.
    TypeScript(u8),
    /// The newer version, with automatic selection.
    TypeScriptNewest,
    /// The older version, as a client that starts `serve` over stdio.
    Editor,
    /// The newer version over stdio.
    EditorNewest,
    /// The older version through mcp-remote.
    Remote,
    /// The previous major version of the official Python SDK.
    Python1,
    /// The official Python SDK, in this mode.
    Python(&'static str),
    /// FastMCP, in this mode.
    FastMcp(&'static str),
}

/// The clients, each with the version that it negotiates.
const TABLE: [(ClientKind, &str); 14] = [
    (ClientKind::Inspector("legacy"), BEFORE),
    (ClientKind::Inspector("modern"), NOW),
    (ClientKind::TypeScript(1), BEFORE),
    (ClientKind::TypeScript(2), BEFORE),
    (ClientKind::TypeScriptNewest, NOW),
    (ClientKind::Editor, BEFORE),
    (ClientKind::EditorNewest, NOW),
    (ClientKind::Remote, BEFORE),
    (ClientKind::Python1, BEFORE),
    (ClientKind::Python("legacy"), BEFORE),
    (ClientKind::Python("auto"), NOW),
    (ClientKind::FastMcp("legacy"), BEFORE),
    (ClientKind::FastMcp("auto"), NOW),
    // Once more, after many other clients.
    (ClientKind::TypeScript(1), BEFORE),
];

/// The calls of one transport with the known results; `image` and `audio` are the data of the media.
fn calls(wire: &str, [image, audio]: [&Value; 2]) -> Vec<(Value, Value)> {
    let hello = "hello, \u{4e16}\u{754c}";
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let greeting =
        json!({"uri": "demo://greeting", "mimeType": "text/plain", "text": "Hello from the demo server.\n"});
    let mixed = json!([
        {"type": "text", "text": "One block of each kind:"},
        {"type": "image", "data": image, "mimeType": "image/png"},
        {"type": "audio", "data": audio, "mimeType": "audio/wav"},
        {"type": "resource", "resource": greeting},
        {"type": "resource_link", "uri": "demo://greeting", "name": "greeting", "description": "A line of text",
            "mimeType": "text/plain"},
    ]);
    let call = |tool: &str, arguments: Value| json!([format!("{wire}__{tool}"), arguments]);
    vec![
        (call("echo", json!({"text": hello})), json!([text(hello), null, false])),
        (call("add", json!({"a": 2, "b": 40})), json!([text("42"), {"sum": 42}, false])),
        (
            call("fail", json!({"message": "as it was asked to"})),
            json!([text("as it was asked to"), null, true]),
        ),
        (call("mixed", json!({})), json!([mixed, null, false])),
    ]
}

/// Content, structured content, and whether it is an error.
fn answer(result: &Value) -> Value {
    let is_error = result["isError"].as_bool().unwrap_or_default();
    json!([own_uris(&result["content"]), result["structuredContent"], is_error])
}

/// The content with the servers' own URIs: the gateway adds the server to a URI that several servers have.
fn own_uris(content: &Value) -> Value {
    let text = content.to_string();
    let mut parts = text.split("#mcp-host-server=");
    let mut res = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        res.push_str(&part[part.find('"').unwrap()..]);
    }
    serde_json::from_str(&res).unwrap()
}

/// The signature of a tool.
fn signature(name: &str, description: &Value, schema: &Value) -> (String, Value) {
    (name.to_owned(), json!([description, schema]))
}

/// The results of a client: the version if it prints it, the tools, the results of calls.
pub(super) fn run_client(
    installed: &Installed,
    who: ClientKind,
    gateway: &Gateway,
    file: &Path,
    calls: &[&Value],
) -> Value {
    let url = gateway.url();
    let file = file.display().to_string();
    let serve = [&binary().display().to_string(), "serve", &file, "--stdio"].map(str::to_owned);
    let node = installed.modules.join(".bin/node").display().to_string();
    let python = |venv: &Path, script: &str, scenario: Value| {
        let script = root().join("tests/python").join(script).display().to_string();
        installed.program(venv.join("bin/python"), &[&script, &scenario.to_string()]).json()
    };
    match who {
        ClientKind::Inspector(era) => run_inspector(installed, era, &url, calls),
        ClientKind::TypeScript(sdk) => {
            installed.typescript(&json!({"sdk": sdk, "url": url, "calls": calls})).json()
        }
        ClientKind::TypeScriptNewest => {
            installed.typescript(&json!({"sdk": 2, "mode": "auto", "url": url, "calls": calls})).json()
        }
        ClientKind::Editor => {
            installed.typescript(&json!({"sdk": 1, "command": serve, "calls": calls})).json()
        }
        ClientKind::EditorNewest => {
            let scenario = json!({"sdk": 2, "mode": "auto", "command": serve, "calls": calls});
            installed.typescript(&scenario).json()
        }
        ClientKind::Remote => {
            let remote = installed.modules.join("mcp-remote/dist/proxy.js").display().to_string();
            let scenario = json!({"sdk": 1, "command": [node, remote, url], "calls": calls});
            installed.typescript(&scenario).json()
        }
        ClientKind::Python1 => {
            python(&installed.venv_before, "mcp1_client.py", json!({"url": url, "calls": calls}))
        }
        ClientKind::Python(mode) => {
            let scenario = json!({"client": "sdk", "mode": mode, "url": url, "calls": calls});
            python(&installed.venv, "mcp_client.py", scenario)
        }
        ClientKind::FastMcp(mode) => {
            let scenario = json!({"client": "fastmcp", "mode": mode, "url": url, "calls": calls});
            python(&installed.venv, "mcp_client.py", scenario)
        }
    }
}

/// The results of the Inspector, which is started for each request.
fn run_inspector(installed: &Installed, era: &str, url: &str, calls: &[&Value]) -> Value {
    let launcher = installed.modules.join("@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    let launcher = launcher.display().to_string();
    let ask = |more: &[&str]| {
        let arguments =
            [&[&launcher, "--cli", url, "--transport", "http", "--protocol-era", era], more].concat();
        installed.program(installed.node(), &arguments)
    };
    let list = ask(&["--method", "tools/list"]);
    let answers: Vec<Value> = calls
        .iter()
        .map(|it| {
            let (name, arguments) = (it[0].as_str().unwrap(), it[1].to_string());
            let call = ["--method", "tools/call", "--tool-name", name, "--tool-args-json", &arguments];
            ask(&call).ended(&[0, IS_ERROR])
        })
        .collect();
    json!({"tools": list.json()["tools"], "answers": answers})
}

#[test]
fn every_client_lists_and_calls_over_every_transport() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_server, http) = demo(folder.path(), |url| url.starts_with("http://") && url.ends_with("/mcp"));
    let address = http.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let pipe = json!({"command": binary(), "args": ["demo-server"]});
    let write = |name: &str, servers: Value| {
        let path = folder.path().join(name);
        std::fs::write(&path, json!({"mcpServers": servers}).to_string()).unwrap();
        path
    };
    let run = |arguments: &[&str]| Run::new(folder.path(), folder.path(), arguments).finish().json();

    let one = write("one.json", json!({"one": pipe})).display().to_string();
    let known = run(&["tools", &one, "--format", "json"])["tools"].take();
    let mixed = run(&["call", &one, "one__mixed", "{}", "--format", "json"])["content"].take();
    let media = [&mixed[1]["data"], &mixed[2]["data"]];
    assert!(media.iter().all(|it| it.is_string()), "{mixed:#}");

    let file = write(
        "mcp.json",
        json!({
            "pipe": pipe,
            "http": {"type": "http", "url": http},
            "sse": {"type": "sse", "url": format!("http://{address}/sse")},
            "socket": {"type": "websocket", "url": format!("ws://{address}/ws")},
        }),
    );
    let mut tools = Vec::new();
    let mut all = Vec::new();
    for wire in WIRES {
        all.extend(calls(wire, media));
        for tool in known.as_array().unwrap() {
            let name = format!("{wire}__{}", tool["original_name"].as_str().unwrap());
            tools.push(signature(&name, &tool["description"], &tool["input_schema"]));
        }
    }
    tools.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(tools.len() >= 40, "{tools:#?}");

    let gateway = Gateway::start(folder.path(), &file.display().to_string(), &[]);
    let check = |(who, version): (ClientKind, &str)| {
        // Each call is a process: one for each transport, each with another call, is enough.
        let few = |(number, it)| (number % 5 == 0).then_some(it);
        let some: Vec<&(Value, Value)> = match who {
            ClientKind::Inspector(_) => all.iter().enumerate().filter_map(few).collect(),
            _ => all.iter().collect(),
        };
        let asked: Vec<&Value> = some.iter().map(|it| &it.0).collect();
        let run_client = run_client(&installed, who, &gateway, &file, &asked);
        if !matches!(who, ClientKind::Inspector(_)) {
            assert_eq!(run_client["protocol"], version, "{who:?}");
        }
        let mut listed: Vec<(String, Value)> = run_client["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| signature(it["name"].as_str().unwrap(), &it["description"], &it["inputSchema"]))
            .collect();
        listed.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(listed, tools, "{who:?}");
        let answers = run_client["answers"].as_array().unwrap();
        assert_eq!(answers.len(), some.len(), "{who:?}");
        for (got, (call, want)) in answers.iter().zip(some) {
            assert_eq!(answer(got), *want, "{who:?}: {call}");
        }
    };
    // A few clients in parallel.
    for rows in TABLE.chunks(4) {
        std::thread::scope(|scope| {
            for row in rows {
                scope.spawn(|| check(*row));
            }
        });
    }
}

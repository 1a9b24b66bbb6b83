//! Declared capabilities: each transport and method, enabled and disabled.

use std::path::Path;

use mcp_host_acp::AcpVersion;
use serde_json::{Value, json};

use super::conversation::{PAIRS, Scenario};
use super::servers::DemoHttpServer;
use super::{agent, servers};

/// An entry with this transport.
fn entry(version: AcpVersion, transport: &str, web: &DemoHttpServer) -> Value {
    match transport {
        "stdio" => servers::stdio(version, "it", "green"),
        "http" => web.http("it", "blue"),
        "sse" => web.sse("it", "red"),
        other => panic!("{other}"),
    }
}

/// The transports that the `initialize` response declares.
fn declared(version: AcpVersion, initialized: &Value) -> String {
    let has = |it: &&str| match version {
        AcpVersion::V1 => initialized["agentCapabilities"]["mcpCapabilities"][*it] == true,
        AcpVersion::V2 => initialized["capabilities"]["session"]["mcp"][*it].is_object(),
    };
    let all = ["stdio", "http", "sse", "acp"];
    all.into_iter().filter(has).collect::<Vec<_>>().join(",")
}

/// The error for an undeclared transport, with its position in the list.
fn refusal(version: AcpVersion, transport: &str, supported: &[&str]) -> Value {
    let place = if version == AcpVersion::V1 { "mcpCapabilities" } else { "session.mcp" };
    let name = transport.to_uppercase();
    let message = match (version, transport) {
        (AcpVersion::V2, "sse") => {
            "SSE transport not supported: protocol version 2 has no such transport".to_owned()
        }
        _ => format!("{name} transport not supported: agent did not declare {place}.{transport}"),
    };
    let suggestion = match supported {
        [] => "this agent supports no MCP servers".to_owned(),
        words => {
            let words: Vec<_> = words.iter().map(|it| format!("`{it}`")).collect();
            let supported = words.join(", ");
            match (version, transport) {
                (AcpVersion::V2, "sse") => format!(
                    "version 2 has no sse; the server needs Streamable HTTP, `http`; this agent supports {supported}"
                ),
                _ => format!("use a server with one of these transports: {supported}"),
            }
        }
    };
    json!({ "code": -32602, "message": message, "data": {
        "requestedTransport": transport,
        "declaredCapability": false,
        "supportedTransports": supported,
        "serverName": "it",
        "errors": [{
            "index": 0, "serverName": "it", "field": "type", "pointer": "/params/mcpServers/0/type",
            "message": message, "requestedTransport": transport, "suggestion": suggestion,
        }],
    } })
}

/// An agent with `--transports switches` declares `advertised` and accepts only servers of `taken`.
#[track_caller]
fn check(version: AcpVersion, switches: &str, advertised: &str, taken: &[&str], folder: &Path) {
    let web = DemoHttpServer::start(folder);
    let methods: &[&str] = match version {
        AcpVersion::V1 => &["session/new", "session/load", "session/resume"],
        AcpVersion::V2 => &["session/new", "session/resume"],
    };
    for client in PAIRS.into_iter().filter(|it| it.1 == version).map(|it| it.0) {
        let mut scenario = Scenario::new(version);
        scenario.new_session(json!([]));
        let mut want = Vec::new();
        for transport in ["stdio", "http", "sse"] {
            for method in methods {
                let servers = [entry(version, transport, &web)];
                scenario.step(method, json!({ "cwd": "/", "mcpServers": servers }));
                want.push((transport, *method));
            }
        }
        let Some(conversation) = scenario.run(client, &agent(&["--transports", switches])) else { return };
        assert_eq!(declared(version, &conversation.steps[0]["result"]), advertised, "{conversation:#?}");
        for (step, (transport, method)) in conversation.steps[2..].iter().zip(want) {
            let what = format!("{client:?} {version:?} {switches}: {method} {transport}: {step:#}");
            if taken.contains(&transport) {
                assert_eq!(step["result"]["_meta"]["mcpServers"][0]["status"], "connected", "{what}");
            } else {
                assert_eq!(step["error"], refusal(version, transport, taken), "{what}");
            }
        }
    }
}

#[test]
fn acp_001_acp_002_acp_003_acp_016_acp_027_acp_029_version_1_accepts_declared_transports() {
    let folder = tempfile::tempdir().unwrap();
    check(AcpVersion::V1, "stdio", "", &["stdio"], folder.path());
    check(AcpVersion::V1, "http", "http", &["stdio", "http"], folder.path());
    check(AcpVersion::V1, "stdio,sse", "sse", &["stdio", "sse"], folder.path());
    check(AcpVersion::V1, "stdio,http,sse", "http,sse", &["stdio", "http", "sse"], folder.path());
}

#[test]
fn acp_001_acp_027_acpx_11_version_2_accepts_declared_transports() {
    let folder = tempfile::tempdir().unwrap();
    check(AcpVersion::V2, "stdio", "stdio", &["stdio"], folder.path());
    check(AcpVersion::V2, "http", "http", &["http"], folder.path());
    check(AcpVersion::V2, "stdio,http,sse", "stdio,http", &["stdio", "http"], folder.path());
    check(AcpVersion::V2, "sse", "", &[], folder.path());
}

#[test]
fn acpx_16_acpx_11_version_2_has_no_load() {
    for (client, version) in PAIRS.into_iter().filter(|it| it.1 == AcpVersion::V2) {
        let mut scenario = Scenario::new(version);
        scenario.new_session(json!([]));
        scenario.step("session/load", json!({ "cwd": "/", "mcpServers": [] }));
        let Some(conversation) = scenario.run(client, &agent(&[])) else { return };
        assert_eq!(conversation.steps[2]["error"]["code"], -32601, "{conversation:#?}");
    }
}

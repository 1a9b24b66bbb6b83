//! Clients log in at an authorization server that others wrote, and call through `serve --auth`.

use std::path::Path;

use mcp_testkit::program::binary;
use serde_json::{Value, json};

use super::{Gateway, Installed, NodeServer};

/// The scopes of the gateway: a step up is needed for `add`.
const SCOPES: &str = "read tools=demo__echo\nwrite tools=demo__add\n";

/// The authorization server of oidc.mjs, whose access tokens are valid for this time.
pub(super) fn authorization_server(installed: &Installed, token_seconds: u32) -> NodeServer {
    NodeServer::start(installed, "oidc.mjs", &[&token_seconds.to_string()])
}

fn gateway(folder: &Path, issuer: &str) -> Gateway {
    let servers = json!({"demo": {"command": binary(), "args": ["demo-server"]}});
    std::fs::write(folder.join("mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
    std::fs::write(folder.join("scopes"), SCOPES).unwrap();
    Gateway::start(folder, "mcp.json", &["--auth", issuer, "--scope-map", "scopes"])
}

#[test]
fn clients_log_in_and_step_up_through_an_authorization_server() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = authorization_server(&installed, 60);
    let gateway = gateway(folder.path(), &server.url);
    let remote = installed.modules.join("mcp-remote/dist/proxy.js");
    let calls = json!([["demo__echo", {"text": "a"}], ["demo__add", {"a": 2, "b": 40}]]);
    let over_http = |sdk: u8, mode: Option<&str>| {
        json!({"sdk": sdk, "mode": mode, "url": gateway.url(),
        "calls": calls, "user": "ann"})
    };
    let with_remote = json!({"sdk": 1, "command": [installed.node().to_str(), remote, gateway.url()],
        "calls": calls, "user": "bob"});
    for (row, scenario, can_step_up) in [
        ("SDK 1", over_http(1, None), true),
        ("SDK 2", over_http(2, None), true),
        ("SDK 2, modern", over_http(2, Some("auto")), true),
        ("mcp-remote", with_remote, false),
    ] {
        let result = installed.typescript(&scenario).json();
        let names: Vec<&str> =
            result["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["demo__echo"], "{row}");
        let text = |at: usize| &result["answers"][at]["content"][0]["text"];
        assert_eq!(text(0), "a", "{row}: {result}");
        if can_step_up {
            assert_eq!(text(1), "42", "{row}: {result}");
        } else {
            assert_ne!(result["answers"][1]["error"], Value::Null, "{row}: {result}");
        }
    }
}

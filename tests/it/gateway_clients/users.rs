//! Isolation of users: clients of the official SDKs, logged in as two users, send interleaved requests of all methods.
//!
//! `cargo xtask users` runs it in full size.

use mcp_testkit::program::{binary, installed_folder};
use serde_json::{Value, json};

use super::logins::authorization_server;
use super::{Gateway, Installed};

/// The number of requests; `MCP_TEST_USERS_REQUESTS` sets a larger one.
const REQUESTS: u64 = 400;

/// The validity of the access tokens in seconds, longer than a run.
const TOKEN_SECONDS: u32 = 3600;

/// What each run must contain: methods of clients, then of servers.
const METHODS: [&str; 15] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];
const CAUSED: [&str; 7] = [
    "404 for the session of another user",
    "elicitation/create",
    "notifications/message",
    "notifications/progress",
    "notifications/resources/updated",
    "roots/list",
    "sampling/createMessage",
];

#[test]
fn nothing_of_a_user_reaches_another() {
    let Some(installed) = Installed::ready() else { return };
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let requests = std::env::var("MCP_TEST_USERS_REQUESTS").ok().and_then(|it| it.parse().ok());
    let folder = tempfile::tempdir().unwrap();
    let everything = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    // With `auto`, requests of the shared instance can be refused until each client has its own.
    let servers = json!({
        "demo": {"command": binary(), "args": ["demo-server"]},
        "everything": {"command": installed.node().to_str(), "args": [everything, "stdio"], "sharing": "per-client"},
    });
    std::fs::write(folder.path().join("mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
    std::fs::write(folder.path().join("scopes"), "read\n").unwrap();
    let server = authorization_server(&installed, TOKEN_SECONDS);
    let arguments = ["--auth", &server.url, "--scope-map", "scopes"];
    let gateway = Gateway::start(folder.path(), "mcp.json", &arguments);

    let scenario =
        json!({"url": gateway.url(), "users": ["ann", "bob"], "requests": requests.unwrap_or(REQUESTS)});
    let result = installed.script("users.mjs", &[&scenario.to_string()]).json();
    eprintln!("{result:#}");
    assert_eq!((&result["leaks"], &result["failures"]), (&json!([]), &json!([])));
    let missing = |names: &[&str], counts: &Value| -> Vec<String> {
        names.iter().filter(|it| counts[**it].is_null()).map(|it| (*it).to_owned()).collect()
    };
    assert_eq!(missing(&METHODS, &result["sent"]), [""; 0]);
    assert_eq!(missing(&CAUSED, &result["received"]), [""; 0]);
}

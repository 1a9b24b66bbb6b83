//! Capabilities through `serve`: a client and a server of either era see what both ends, and the gateway
//! between them, can do.

use mcp_testkit::program::root;
use serde_json::{Value, json};

use super::{Gateway, Installed};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// The extension for tasks, of 2026-07-28.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// What each era has for tools that run as tasks.
fn legacy_tasks() -> Value {
    json!({"cancel": {}, "requests": {"tools": {"call": {}}}})
}

/// A client's capabilities, without those for tasks.
fn full() -> Value {
    json!({
        "sampling": {"tools": {}},
        "elicitation": {"form": {}, "url": {}},
        "roots": {},
        "extensions": {"example.org/client": {"b": 2}},
    })
}

/// The capabilities with the extension for tasks.
fn with_tasks(mut capabilities: Value) -> Value {
    capabilities["extensions"][TASKS] = json!({});
    capabilities
}

/// The result of a client with these capabilities.
fn run(installed: &Installed, gateway: &Gateway, version: &str, capabilities: &Value) -> Value {
    let mut scenario = json!({
        "sdk": if version == LEGACY { 1 } else { 2 },
        "url": gateway.url(),
        "capabilities": capabilities,
        "tools": ["legacy__state", "shared__state", "modern__state"],
    });
    if version == MODERN {
        scenario["mode"] = json!("auto");
    }
    installed.script("capability_client.mjs", &[&scenario.to_string()]).json()
}

#[test]
fn each_end_is_offered_what_both_ends_can_do() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = root().join("tests/conformance/capability_server.mjs");
    let server = |version: &str, sharing: &str| {
        json!({"command": installed.node().to_str(),
        "args": [script, version], "sharing": sharing})
    };
    let servers = json!({
        "legacy": server(LEGACY, "per-client"),
        "shared": server(LEGACY, "auto"),
        "modern": server(MODERN, "auto"),
    });
    let path = folder.path().join("mcp.json");
    std::fs::write(&path, json!({"mcpServers": servers}).to_string()).unwrap();
    let gateway = Gateway::start(folder.path(), &path.display().to_string(), &[]);

    // What the servers see: one of 2025-11-25 for this client alone, and one of 2026-07-28. To the latter,
    // the host declares tasks for each client, because it waits for their results.
    let url_only = json!({"elicitation": {"url": {}}});
    // Changes of roots are announced in 2025-11-25 only.
    let mut with_root_changes = full();
    with_root_changes["roots"] = json!({"listChanged": true});
    let mut legacy_only = with_root_changes.clone();
    legacy_only["tasks"] = json!({"requests": {"elicitation": {"create": {}}}});
    for (version, declared, to_legacy, to_modern) in [
        (LEGACY, legacy_only, with_root_changes, with_tasks(full())),
        (LEGACY, json!({}), json!({}), with_tasks(json!({}))),
        (MODERN, full(), full(), with_tasks(full())),
        (MODERN, with_tasks(full()), full(), with_tasks(full())),
        (MODERN, url_only.clone(), url_only.clone(), with_tasks(url_only)),
    ] {
        let seen = run(&installed, &gateway, version, &declared);
        assert_eq!(seen["protocol"], version, "{declared}");
        let states = &seen["states"];
        assert_eq!(
            (&states["legacy__state"], &states["modern__state"]),
            (&to_legacy, &to_modern),
            "{declared}"
        );
        // A shared instance of 2025-11-25 serves any client.
        let any = json!({
            "sampling": {},
            "elicitation": {"form": {}, "url": {}},
            "roots": {"listChanged": true},
            "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}},
        });
        assert_eq!(states["shared__state"], any, "{declared}");

        // What the client sees: each era has its own form of tasks.
        let mut offered = json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "completions": {},
            "logging": {},
            "extensions": {"example.org/server": {"a": 1}},
        });
        if version == LEGACY {
            offered["tasks"] = legacy_tasks();
        } else {
            offered["extensions"][TASKS] = json!({});
        }
        assert_eq!(seen["offered"], offered, "{declared}");
    }
}

//! Strict clients list and call all good tools beside a server whose definitions are invalid (RPT-010, RPT-011).

use mcp_testkit::program::{binary, root};
use serde_json::{Value, json};

use super::all_transports::{ClientKind, run_client};
use super::{Gateway, Installed};

/// The definitions of tools that clients have refused.
fn odd_tools() -> Vec<(&'static str, Value)> {
    let text = json!({ "type": "string" });
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    vec![
        ("no_schema", json!({})),
        ("empty_schema", json!({ "inputSchema": {} })),
        ("null_schema", json!({ "inputSchema": null })),
        ("null_type", json!({ "inputSchema": { "type": null } })),
        ("list_of_types", json!({ "inputSchema": { "type": ["object", "null"] } })),
        (
            "null_properties",
            json!({ "inputSchema": { "type": "object", "properties": null, "required": null } }),
        ),
        ("alternatives", json!({ "inputSchema": { "anyOf": [object(json!({ "a": text }))] } })),
        ("reference", json!({ "inputSchema": { "$ref": "#/$defs/A", "$defs": { "A": object(json!({})) } } })),
        (
            "null_members",
            json!({ "title": null, "description": null, "annotations": null, "icons": null, "execution": null,
                "outputSchema": null, "_meta": null, "inputSchema": { "type": "object" } }),
        ),
        (
            "wrong_members",
            json!({ "title": 7, "annotations": { "readOnlyHint": "yes", "title": null }, "icons": "x.png",
                "_meta": [], "inputSchema": { "type": "object" } }),
        ),
        (
            "dangling_output",
            json!({ "inputSchema": object(json!({})), "outputSchema": { "$ref": "#/$defs/No" } }),
        ),
        ("array_output", json!({ "inputSchema": object(json!({})), "outputSchema": { "type": "array" } })),
        (
            "broken_output",
            json!({ "inputSchema": object(json!({})),
                "outputSchema": object(json!({ "a": { "type": "strnig" } })) }),
        ),
        ("older_draft", json!({ "inputSchema": { "$schema": "http://json-schema.org/draft-04/schema#" } })),
    ]
}

/// The list of all odd tools, with one whose schema is nested too deeply for any reader.
fn list_text() -> String {
    let mut res: Vec<String> = Vec::new();
    for (name, mut tool) in odd_tools() {
        tool["name"] = name.into();
        res.push(tool.to_string());
    }
    let depth = 100_000;
    let schema = format!("{}{}{}", r#"{"not":"#.repeat(depth), "{}", "}".repeat(depth));
    res.push(format!(r#"{{"name":"too_deep","inputSchema":{schema}}}"#));
    format!("[{}]", res.join(","))
}

/// The clients: both generations of both official SDKs, in each era, and FastMCP.
const CLIENTS: [ClientKind; 7] = [
    ClientKind::TypeScript(1),
    ClientKind::TypeScript(2),
    ClientKind::TypeScriptNewest,
    ClientKind::Python1,
    ClientKind::Python("legacy"),
    ClientKind::Python("auto"),
    ClientKind::FastMcp("auto"),
];

#[test]
fn strict_clients_list_all_tools_beside_invalid_definitions() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("tools.json");
    std::fs::write(&list, list_text()).unwrap();
    let file = folder.path().join("mcp.json");
    let script = root().join("tests/python/raw_list_server.py");
    let servers = json!({
        "good": { "command": binary(), "args": ["demo-server"] },
        "odd": { "command": installed.venv.join("bin/python"), "args": [script, list] },
    });
    std::fs::write(&file, json!({ "mcpServers": servers }).to_string()).unwrap();
    let gateway = Gateway::start(folder.path(), &file.display().to_string(), &[]);

    let names: Vec<&str> = odd_tools().iter().map(|it| it.0).collect();
    let mut calls = vec![(json!(["good__echo", { "text": "hello" }]), "hello")];
    calls.extend(names.iter().map(|name| (json!([format!("odd__{name}"), {}]), *name)));
    let asked: Vec<&Value> = calls.iter().map(|it| &it.0).collect();
    for client in CLIENTS {
        let got = run_client(&installed, client, &gateway, &file, &asked);
        let listed: Vec<&str> =
            got["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        for name in ["good__echo", "good__add"] {
            assert!(listed.contains(&name), "{client:?}: {listed:?}");
        }
        let odd: Vec<&str> = listed.iter().filter_map(|it| it.strip_prefix("odd__")).collect();
        let missing: Vec<&&str> = names.iter().filter(|it| !odd.contains(it)).collect();
        assert!(missing.is_empty(), "{client:?}: {missing:?}");
        let answers = got["answers"].as_array().unwrap();
        for (got, (call, text)) in answers.iter().zip(&calls) {
            assert_eq!(got["content"][0]["text"], *text, "{client:?}: {call}");
        }
    }
}

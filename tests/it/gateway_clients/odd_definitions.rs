//! Strict clients list and call all good tools beside a server whose definitions are invalid (RPT-010, RPT-011), and
//! read its results, which are invalid too (RPT-034, RPT-037).

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

/// Results that clients have refused, each with the texts of the blocks that a client gets.
const ODD_RESULTS: &[(&str, &str, &[&str])] = &[
    ("surrogate", r#"{"content":[{"type":"text","text":"half \ud83d pair"}]}"#, &["half \u{fffd} pair"]),
    ("surrogate_key", r#"{"content":[{"type":"text","text":"a"}],"\udc00":{"\ud800":"\ud800"}}"#, &["a"]),
    (
        "null_members",
        r#"{"content":[{"type":"text","text":"a","annotations":null,"_meta":null}],"isError":null,"_meta":null,"structuredContent":null}"#,
        &["a"],
    ),
    ("missing_content", "{}", &[]),
    ("null_content", r#"{"content":null}"#, &[]),
    ("text_content", r#"{"content":"plain text"}"#, &["plain text"]),
    ("object_content", r#"{"content":{"type":"text","text":"one block"}}"#, &["one block"]),
    ("bare_blocks", r#"{"content":["bare",{"type":"text","text":5},null]}"#, &["bare", "5"]),
    (
        "unknown_block",
        r#"{"content":[{"type":"hologram","data":1},{"type":"text","text":"after"}]}"#,
        &[r#"{"type":"hologram","data":1}"#, "after"],
    ),
    (
        "no_data",
        r#"{"content":[{"type":"image","mimeType":"image/png"}]}"#,
        &[r#"{"type":"image","mimeType":"image/png"}"#],
    ),
    (
        "bad_base64",
        r#"{"content":[{"type":"image","mimeType":"image/png","data":"%%%"}]}"#,
        &[r#"{"type":"image","mimeType":"image/png","data":"%%%"}"#],
    ),
    (
        "no_media_type",
        r#"{"content":[{"type":"image","data":"aGk="},{"type":"text","text":"after"}]}"#,
        &["", "after"],
    ),
    (
        "link_without_name",
        r#"{"content":[{"type":"resource_link","uri":"x://y"},{"type":"text","text":"after"}]}"#,
        &["", "after"],
    ),
    ("text_flag", r#"{"content":[{"type":"text","text":"a"}],"isError":"yes"}"#, &["a"]),
];

#[test]
fn strict_clients_read_results_with_invalid_members() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [list, results] = ["tools.json", "results.json"].map(|name| folder.path().join(name));
    let tools: Vec<Value> = ODD_RESULTS
        .iter()
        .map(|(name, _, _)| json!({ "name": name, "inputSchema": { "type": "object" } }))
        .collect();
    std::fs::write(&list, json!(tools).to_string()).unwrap();
    let texts: serde_json::Map<String, Value> =
        ODD_RESULTS.iter().map(|(name, result, _)| ((*name).to_owned(), json!(result))).collect();
    std::fs::write(&results, Value::from(texts).to_string()).unwrap();
    let file = folder.path().join("mcp.json");
    let script = root().join("tests/python/raw_list_server.py");
    let odd = json!({ "command": installed.venv.join("bin/python"), "args": [script, list, results] });
    std::fs::write(&file, json!({ "mcpServers": { "odd": odd } }).to_string()).unwrap();
    let gateway = Gateway::start(folder.path(), &file.display().to_string(), &[]);

    let calls: Vec<Value> =
        ODD_RESULTS.iter().map(|(name, _, _)| json!([format!("odd__{name}"), {}])).collect();
    let asked: Vec<&Value> = calls.iter().collect();
    for client in CLIENTS {
        let got = run_client(&installed, client, &gateway, &file, &asked);
        let answers = got["answers"].as_array().unwrap();
        assert_eq!(answers.len(), calls.len(), "{client:?}");
        for (got, (name, _, want)) in answers.iter().zip(ODD_RESULTS) {
            let blocks = got["content"].as_array().unwrap_or_else(|| panic!("{client:?} {name}: {got}"));
            let texts: Vec<&str> = blocks.iter().map(|it| it["text"].as_str().unwrap_or_default()).collect();
            assert_eq!(texts, *want, "{client:?} {name}");
        }
    }
}

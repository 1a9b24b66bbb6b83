//! Malformed entries that SDKs accept, change or drop: the agent rejects each with its position and runs none.
//!
//! Each request has a valid server before the malformed one. It is not started, because the whole request is rejected.

use mcp_host_acp::AcpVersion;
use serde_json::{Value, json};

use super::conversation::{Client, Conversation, PAIRS, Scenario};
use super::{agent, servers};

/// An entry, and the names of its invalid fields in order; none if it is valid.
type Row = (&'static str, &'static str);

const V1: &[Row] = &[
    // Entries that the SDKs reject or drop.
    (r#"{"name":"b","command":"/b","args":[]}"#, "env"),
    (r#"{"name":"b","command":"/b","env":[]}"#, "args"),
    (r#"{"type":"http","name":"b","url":"https://b.example"}"#, "headers"),
    (r#"{"name":"b","args":[],"env":[]}"#, "command"),
    (r#"{"command":"/b","args":["SECRET"],"env":[]}"#, "name"),
    (r#"{"name":"b","command":"/b","args":[1],"env":[]}"#, "args[0]"),
    (r#"{"name":"b","command":"/b","args":[],"env":{"K":"SECRET"}}"#, "env"),
    (r#"{"name":"b","command":"/b","args":[],"env":[{"name":"K"}]}"#, "env[0].value"),
    ("7", "*"),
    (r#""SECRET""#, "*"),
    // Entries that the SDKs change.
    (r#"{"type":"websocket","name":"b","command":"/b","args":["SECRET"],"env":[]}"#, "type"),
    (r#"{"type":"websocket","name":"b","url":"wss://b.example"}"#, "type"),
    (r#"{"type":"streamable_http","name":"b","url":"https://b.example","headers":[]}"#, "type"),
    (r#"{"type":"HTTP","name":"b","url":"https://b.example","headers":[]}"#, "type"),
    (r#"{"type":"http","name":"b","command":"/b","args":[],"env":[]}"#, "headers, url"),
    (r#"{"type":null,"name":"b","command":"/b","args":[],"env":[]}"#, "type"),
    (r#"{"type":"acp","name":"b","command":"/b","args":[],"env":[]}"#, "type, serverId"),
    // Entries that the SDKs pass on.
    (r#"{"type":"acp","name":"b","serverId":"SECRET"}"#, "type"),
    (r#"{"name":"b","command":"npx","args":[],"env":[]}"#, "command"),
    (r#"{"name":"b","command":"","args":[],"env":[]}"#, "command"),
    (r#"{"name":"","command":"/b","args":[],"env":[]}"#, "name"),
    (r#"{"name":"a","command":"/b","args":[],"env":[]}"#, "name"),
    (r#"{"name":"b","command":"/b","args":["SECRET\u0000"],"env":[]}"#, "args[0]"),
    (r#"{"name":"b","command":"/b","args":[],"env":[{"name":"K","value":"SECRET\u0000"}]}"#, "env[0].value"),
    (r#"{"name":"b","command":"/b","args":[],"env":[{"name":"K=SECRET","value":"v"}]}"#, "env[0].name"),
    (r#"{"name":"b","command":"/b","args":[],"env":[{"name":"","value":"SECRET"}]}"#, "env[0].name"),
    (r#"{"type":"http","name":"b","url":"ftp://u:SECRET@b.example/?SECRET","headers":[]}"#, "url"),
    (r#"{"type":"http","name":"b","url":"https://","headers":[]}"#, "url"),
    (r#"{"type":"sse","name":"b","url":"SECRET","headers":[]}"#, "url"),
    (
        r#"{"type":"http","name":"b","url":"https://b.example","headers":[{"name":"K","value":"SECRET\r\nX: y"}]}"#,
        "headers[0].value",
    ),
    (
        r#"{"type":"sse","name":"b","url":"https://b.example","headers":[{"name":"K L","value":"SECRET"}]}"#,
        "headers[0].name",
    ),
    // All errors of one entry.
    (
        r#"{"name":"","command":"npx","args":["SECRET\u0000"],"env":[{"name":"","value":"SECRET"}]}"#,
        "name, command, args[0], env[0].name",
    ),
    // Valid entries: null is an empty list, and `_meta` and unknown keys are allowed.
    (r#"{"type":"stdio","name":"b","command":"/no/b","args":null,"env":null}"#, ""),
    (r#"{"name":"b","command":"/no/b","args":[],"env":[],"_meta":{"k":1},"_own":"SECRET"}"#, ""),
];

const V2: &[Row] = &[
    (r#"{"name":"b","command":"/b"}"#, "type"),
    (r#"{"type":"stdio","name":"b"}"#, "command"),
    (r#"{"type":"sse","name":"b","url":"https://b.example","headers":[]}"#, "type"),
    (r#"{"type":"websocket","name":"b","command":"/b"}"#, "type"),
    (r#"{"type":"_pigeon","name":"b","loft":"SECRET"}"#, "type"),
    (r#"{"type":"acp","name":"b","serverId":"SECRET"}"#, "type"),
    (r#"{"type":"stdio","name":"b","command":"npx","args":["SECRET"]}"#, "command"),
    (r#"{"type":"stdio","name":"a","command":"/b"}"#, "name"),
    (r#"{"type":"stdio","name":"b","command":"/b","env":[{"name":"K=","value":"SECRET"}]}"#, "env[0].name"),
    (r#"{"type":"http","name":"b","url":"file:///SECRET"}"#, "url"),
    (
        r#"{"type":"http","name":"b","url":"https://b.example","headers":[{"name":"K","value":"a\nSECRET"}]}"#,
        "headers[0].value",
    ),
    (r#"{"type":"stdio","name":"b","command":"/no/b"}"#, ""),
];

/// The fields that `data.errors` of an error names; all of them are in the second entry.
fn fields(error: &Value) -> String {
    let errors = error["data"]["errors"].as_array().unwrap_or_else(|| panic!("{error:#}"));
    let field = |it: &Value| {
        assert_eq!(it["index"], 1, "{error:#}");
        assert!(it["pointer"].as_str().unwrap().starts_with("/params/mcpServers/1"), "{error:#}");
        assert!(!it["message"].as_str().unwrap().is_empty(), "{error:#}");
        it["field"].as_str().unwrap_or("*").to_owned()
    };
    errors.iter().map(field).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn check(version: AcpVersion, rows: &[Row]) {
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().join("started");
    let good = servers::demo_in_shell(version, "a", &started);
    let (taken, refused): (Vec<_>, Vec<_>) = rows.iter().partition(|it| it.1.is_empty());
    for client in PAIRS.into_iter().filter(|it| it.1 == version).map(|it| it.0) {
        let asked = |rows: &[Row]| {
            let mut scenario = Scenario::new(version);
            for (entry, _) in rows {
                scenario.new_session(json!([good, serde_json::from_str::<Value>(entry).unwrap()]));
            }
            scenario.run(client, &agent(&[]))
        };
        let Some(conversation) = asked(&refused) else { return };
        assert!(!started.exists(), "{client:?}: a refused request has started a server");
        assert_silent(client, &conversation);
        let mut wrong = Vec::new();
        for ((entry, want), step) in refused.iter().zip(&conversation.steps[1..]) {
            let got = match step.get("error") {
                Some(error) if error["code"] == -32602 => fields(error),
                _ => "no -32602".to_owned(),
            };
            if got != *want {
                wrong.push(format!("{entry}: {got}, and not {want}\n{step:#}"));
            }
        }
        assert!(wrong.is_empty(), "{client:?} {version:?}\n{}", wrong.join("\n"));
        assert_eq!(conversation.steps.len(), refused.len() + 1);

        let Some(conversation) = asked(&taken) else { return };
        assert!(conversation.steps.iter().all(|it| it.get("result").is_some()), "{conversation:#?}");
        assert_silent(client, &conversation);
        std::fs::remove_file(&started).unwrap();
    }
}

/// Secrets of a request are in no response and in no standard error.
#[track_caller]
fn assert_silent(client: Client, conversation: &Conversation) {
    let told = conversation.of_agent();
    let at =
        told.find("SECRET").map(|at| told[at.saturating_sub(300)..].chars().take(400).collect::<String>());
    assert_eq!(at, None, "{client:?}");
}

#[test]
fn acp_006_acp_012_acp_013_acp_022_to_acp_025_acp_040_malformed_entries_are_rejected_with_their_position() {
    check(AcpVersion::V1, V1);
}

#[test]
fn acpx_11_malformed_entries_of_version_2_are_rejected_with_their_position() {
    check(AcpVersion::V2, V2);
}

/// A request that is invalid independent of its servers, with the invalid field.
#[test]
fn acpx_02_acpx_10_malformed_requests_are_rejected() {
    let rows = [
        (json!({ "cwd": "desk", "mcpServers": [] }), "cwd"),
        (json!({ "cwd": "/nowhere/at/all", "mcpServers": [] }), "cwd"),
        (json!({ "mcpServers": [] }), "cwd"),
        (json!({ "cwd": "/", "mcpServers": {} }), "mcpServers"),
        (
            json!({ "cwd": "/", "mcpServers": [], "additionalDirectories": ["SECRET"] }),
            "additionalDirectories[0]",
        ),
        (json!({ "cwd": "/" }), "mcpServers"),
        (json!({ "cwd": "/", "mcpServers": null }), ""),
    ];
    for client in [Client::Node, Client::Python] {
        let mut scenario = Scenario::new(AcpVersion::V1);
        for (params, _) in &rows {
            scenario.step("session/new", params.clone());
        }
        let Some(conversation) = scenario.run(client, &agent(&[])) else { return };
        assert_silent(client, &conversation);
        for ((params, want), step) in rows.iter().zip(&conversation.steps[1..]) {
            let errors = step["error"]["data"]["errors"].as_array();
            let fields: Vec<_> =
                errors.into_iter().flatten().map(|it| it["field"].as_str().unwrap()).collect();
            assert_eq!(fields.join(", "), *want, "{params}: {step:#}");
            assert_eq!(step.get("result").is_some(), want.is_empty(), "{params}: {step:#}");
        }
    }
}

//! The servers of the comparison.

use std::path::Path;

use mcp_testkit::program::{binary, installed_folder, root};
use serde_json::json;

use super::{ClientEra, Compared, check};
use crate::gateway_clients::Installed;

fn npm(modules: &Path, script: &str, more: &[&str]) -> Vec<String> {
    let script = modules.join("@modelcontextprotocol").join(script).display().to_string();
    let more = more.iter().map(|it| (*it).to_owned());
    ["node".to_owned(), script].into_iter().chain(more).collect()
}

/// A server of which the lists are compared only.
fn lists_of(command: Vec<String>) -> Compared {
    Compared {
        command,
        environment: Vec::new(),
        direct: &[ClientEra::Legacy],
        calls: Vec::new(),
        prompts: Vec::new(),
        reads: Vec::new(),
        completions: Vec::new(),
        options: &[],
        by_chance: &[],
        ready: None,
    }
}

#[test]
fn server_everything_is_the_same_through_the_gateway() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Compared {
        command: npm(&modules, "server-everything/dist/index.js", &["stdio"]),
        environment: Vec::new(),
        direct: &[ClientEra::Legacy],
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
            json!({"ref": {"type": "ref/prompt", "name": "completable-prompt"},
                "argument": {"name": "department", "value": "S"}}),
            json!({"ref": {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"},
                "argument": {"name": "resourceId", "value": "1"}}),
        ],
        // It requests the roots at a time after its start, in any call. Its result of `get-roots-list` contains them.
        options: &[],
        by_chance: &["roots/list"],
        ready: Some(("get-roots-list", "file:///work")),
    };
    check(&server, folder.path());
}

#[test]
fn demo_server_is_the_same_through_the_gateway() {
    let server = Compared {
        direct: &[ClientEra::Legacy, ClientEra::Modern],
        prompts: vec![("summarise", json!({"text": "x"}))],
        reads: vec!["demo://greeting", "demo://picture", "demo://numbers/3", "demo://nowhere"],
        ..lists_of(vec![binary().display().to_string(), "demo-server".to_owned()])
    };
    check(&server, tempfile::tempdir().unwrap().path());
}

#[test]
fn server_filesystem_is_the_same_through_the_gateway() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let folder = tempfile::tempdir().unwrap();
    let allowed = folder.path().display().to_string();
    check(&lists_of(npm(&modules, "server-filesystem/dist/index.js", &[&allowed])), folder.path());
}

/// Servers on the latest official SDKs that use all optional fields: icons, titles, annotations, `_meta`,
/// links, structured results, elicitation in both modes, sampling with tools.
fn fields_of(command: Vec<String>, environment: Vec<(&'static str, String)>) -> Compared {
    let topic = json!({"topic": "x", "count": 2});
    let tools = [
        "content",
        "structured",
        "wrong",
        "refused",
        "messages",
        "ask-form",
        "ask-url",
        "ask-model",
        "ask-roots",
    ];
    let argument = |name: &str, value: &str| json!({"name": name, "value": value});
    Compared {
        environment,
        calls: tools.into_iter().map(|name| (name, topic.clone())).collect(),
        prompts: vec![("letter", json!({"to": "Ann", "tone": "kind"})), ("letter", json!({"to": "Bob"}))],
        reads: vec!["fields://notes/a.txt", "fields://pages/7", "fields://nowhere"],
        completions: vec![
            json!({
                "ref": {"type": "ref/prompt", "name": "letter", "title": "Letter"},
                "argument": argument("tone", "k"), "context": {"arguments": {"to": "Ann"}},
            }),
            json!({
                "ref": {"type": "ref/resource", "uri": "fields://pages/{number}"},
                "argument": argument("number", "1"),
            }),
        ],
        ..lists_of(command)
    }
}

#[test]
fn every_field_of_the_typescript_sdk_is_the_same_through_the_gateway() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = root().join("tests/conformance/fields_server.mjs").display().to_string();
    let modules = installed.modules.display().to_string();
    let node = installed.modules.join(".bin/node").display().to_string();
    let server = |era: &str| {
        let command = vec![node.clone(), script.clone(), era.to_owned()];
        fields_of(command, vec![("MCP_HOST_CONFORMANCE", modules.clone())])
    };
    check(&server("legacy"), folder.path());
    let both = Compared { direct: &[ClientEra::Legacy, ClientEra::Modern], ..server("both") };
    check(&both, folder.path());
}

#[test]
fn every_field_of_the_python_sdk_is_the_same_through_the_gateway() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let definitions = folder.path().join("definitions.json");
    let printed = installed.script("fields_server.mjs", &["definitions"]).json();
    std::fs::write(&definitions, printed.to_string()).unwrap();
    let script = root().join("tests/python/fields_server.py");
    let command = [installed.venv.join("bin/python"), script, definitions];
    let command: Vec<String> = command.iter().map(|it| it.display().to_string()).collect();
    let server = || fields_of(command.clone(), vec![("PYTHONWARNINGS", "ignore".to_owned())]);
    check(&Compared { options: &["--era", "legacy"], ..server() }, folder.path());
    // In the modern era, this SDK leaves out the `_meta` of input requests.
    check(&Compared { direct: &[ClientEra::Modern], ..server() }, folder.path());
}

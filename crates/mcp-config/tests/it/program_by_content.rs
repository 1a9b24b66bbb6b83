//! Edits of files whose program only their content shows, and declarations that depend on the program.

use mcp_host_config::{
    FieldChange, Profile, add_server, detect, prompts_for_inputs, read, remove_server, set_fields,
};
use mcp_host_model::Dialect;

use crate::edits::{document, text_or_error};
use crate::other_programs::document_named;

/// The files of programs under names that do not show the program.
const UNNAMED_FILES: &[(&str, &str, &str)] = &[
    ("a.toml", ".codex/config.toml", "[mcp_servers.a]\ncommand = \"x\"\n"),
    ("a", ".codex/config.toml", "[mcp_servers.a]\ncommand = \"x\"\n"),
    (
        "a.yaml",
        ".config/goose/config.yaml",
        "extensions:\n  a: {enabled: true, type: stdio, name: a, cmd: x, args: []}\n",
    ),
    (
        "a.yaml",
        ".continue/config.yaml",
        "name: a\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: a\n    command: x\n",
    ),
    ("a.yaml", "librechat.yaml", "version: 1.2.1\nendpoints: {}\nmcpServers:\n  a:\n    command: x\n"),
    ("a.json", ".config/amp/settings.json", "{\"amp.mcpServers\": {\"a\": {\"command\": \"x\"}}}"),
    ("a.json", "opencode.json", "{\"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"x\"]}}}"),
    ("a.json", "crush.json", "{\"mcp\": {\"a\": {\"type\": \"stdio\", \"command\": \"x\"}}}"),
    (
        "a.json",
        "devcontainer.json",
        "{\"customizations\": {\"vscode\": {\"mcp\": {\"servers\": {\"a\": {\"command\": \"x\"}}}}}}",
    ),
];

#[test]
fn files_known_by_their_content_are_edited_in_the_form_of_their_program() {
    let servers = "{\"mcpServers\": {\"w\": {\"url\": \"https://a.example\", \"headers\": {\"A\": \"Bearer ${T}\"}}, \
                   \"h\": {\"type\": \"http\", \"url\": \"https://a.example\"}, \"e\": {\"command\": \"y\", \
                   \"env\": {\"T\": \"${T}\"}}}}";
    let servers = read(&document(Profile::McpJson, servers)).servers;
    let change = |it: &str| FieldChange::parse(it).unwrap();
    let changes = [change("command=y"), change("args+=-z"), change("env.K=${V}")];
    for (unnamed, own, text) in UNNAMED_FILES {
        assert_eq!(detect(unnamed, text), Some(Dialect::McpJson), "{own}");
        for server in &servers {
            let add =
                |name: &str| text_or_error(add_server(&document_named(name, text), server).map(|it| it.text));
            assert_eq!(add(unnamed), add(own));
        }
        let set = |name: &str| {
            text_or_error(set_fields(&document_named(name, text), "a", &changes).map(|it| it.text))
        };
        assert_eq!(set(unnamed), set(own));
        assert!(!set(own).starts_with("error"), "{own}: {}", set(own));
        // The last server of a file takes the last sign of TOML with it.
        let unnamed = if *unnamed == "a" { own } else { unnamed };
        let remove = |name: &str| text_or_error(remove_server(&document_named(name, text), "a"));
        assert_eq!(remove(unnamed), remove(own));
    }
    let set = |name: &str, text: &str| {
        set_fields(&document_named(name, text), "a", &[change("env.K=v")]).unwrap().text
    };
    assert_eq!(set("a.yaml", UNNAMED_FILES[2].2), UNNAMED_FILES[2].2.replace("[]}", "[], envs: {K: v}}"));
    let added = add_server(&document_named("a", UNNAMED_FILES[0].2), &servers[1]).unwrap().text;
    assert!(added.ends_with("[mcp_servers.h]\nurl = \"https://a.example\"\n"), "{added}");
}

#[test]
fn inputs_are_declared_next_to_the_servers() {
    let text = "{\"servers\": {\"i\": {\"command\": \"x\", \"args\": [\"${input:key}\"]}}}";
    let server = &read(&document_named(".vscode/mcp.json", text)).servers[0];
    let check = |name: &str, before: &str, at: &str| {
        let document = document_named(name, before);
        assert!(prompts_for_inputs(&document), "{name}");
        let added = add_server(&document, server).unwrap().text;
        let json: serde_json::Value = serde_json::from_str(&added).unwrap();
        assert_eq!(json.pointer(at).unwrap()[0]["id"], "key", "{added}");
        assert_eq!(read(&document_named(name, &added)).diagnostics, [], "{added}");
    };
    check("a.json", "{\"servers\": {\"a\": {\"type\": \"stdio\", \"command\": \"x\"}}}", "/inputs");
    let container = "{\"customizations\": {\"vscode\": {\"mcp\": {\"servers\": {}}}}}";
    check("a.json", container, "/customizations/vscode/mcp/inputs");
    check("devcontainer.json", "{}", "/customizations/vscode/mcp/inputs");
    assert!(!prompts_for_inputs(&document_named("a.json", text.replace("servers", "mcpServers").as_str())));
}

#[test]
fn streamable_http_is_declared_where_a_url_means_server_sent_events() {
    let text = "{\"mcpServers\": {\"w\": {\"url\": \"https://a.example\"}, \"h\": {\"type\": \"http\", \
                \"url\": \"https://a.example\"}, \"s\": {\"type\": \"sse\", \"url\": \"https://a.example\"}}}";
    for server in read(&document(Profile::McpJson, text)).servers {
        for name in ["librechat.yaml", ".qwen/settings.json", ".gemini/settings.json", "opencode.json"] {
            let added = add_server(&document_named(name, ""), &server).unwrap().text;
            let written = read(&document_named(name, &added)).servers.remove(0);
            let kinds = (written.transport.kind(), server.transport.kind());
            let is_remote = name == "opencode.json";
            assert!(kinds.0 == kinds.1 || is_remote, "{name}: {added}");
        }
    }
}

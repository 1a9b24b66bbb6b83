//! Rules for calls: the key `calls`, and the approval keys of other programs.

use mcp_host_config::{Document, Profile, Reading, read};

use crate::conversion::check_round_trip;
use crate::{diagnostic_lines, read_text};

/// Entries in every dialect, with `KEY` in place of the list of rules.
const FILES: [(Profile, &str); 4] = [
    (Profile::Dominds, "version: 1\nservers:\n  a:\n    transport: stdio\n    command: x\n    calls: KEY\n"),
    (Profile::McpJson, r#"{"mcpServers": {"a": {"command": "x", "calls": KEY}}}"#),
    (
        Profile::HoloDeck,
        "tools:\n  - {name: a, description: d, type: mcp, server: s, command: npx, calls: KEY}\n",
    ),
    (
        Profile::AcpV1,
        r#"[{"name": "a", "command": "/x", "args": [], "env": [], "_meta": {"mcp-host/calls": KEY}}]"#,
    ),
];

fn stated(reading: &Reading) -> Vec<String> {
    reading.servers[0].calls.stated.iter().map(ToString::to_string).collect()
}

#[test]
fn cp_001_rules_are_read_and_written_in_every_dialect() {
    for (profile, file) in FILES {
        let text = file.replace("KEY", r#"["deny tools=drop_*", "ask hints=destructive users=ci"]"#);
        let reading = read_text(profile, &text);
        assert_eq!(stated(&reading), ["deny tools=drop_*", "ask hints=destructive users=ci"], "{text}");
        check_round_trip(&text, profile, &text);
    }
}

#[test]
fn cp_001_invalid_rule_is_an_error() {
    for (profile, file) in FILES {
        for (rules, want) in [
            (r#"["alow"]"#, "a rule begins with `allow`, `ask` or `deny`"),
            (r#"["deny servers=b"]"#, "are for its own server"),
            (r#"["deny tool=x"]"#, "the keys of a rule are servers, tools, hints, users"),
            ("[1]", ""),
            (r#""deny""#, ""),
        ] {
            let text = file.replace("KEY", rules);
            let reading = read_text(profile, &text);
            let lines = diagnostic_lines(&reading);
            assert!(lines.contains("error ") && lines.contains(want), "{text}: {lines}");
        }
    }
}

/// Checks the rules that follow from the keys of an entry in the file of a program.
#[track_caller]
fn check(file: &str, entry: &str, want: &[&str]) {
    let text = if file.ends_with(".toml") {
        format!("[mcp_servers.a]\ncommand = \"x\"\n{entry}\n")
    } else {
        format!(r#"{{"mcpServers": {{"a": {{"command": "x", {entry}}}}}}}"#)
    };
    let reading = read(&Document::new(file, &text, Profile::McpJson));
    let rules: Vec<String> = reading.servers[0].calls.of_program.iter().map(ToString::to_string).collect();
    assert_eq!(rules, want, "{text}: {}", diagnostic_lines(&reading));
}

#[test]
fn cp_020_approval_keys_allow_no_more_than_their_program() {
    let list = r#""alwaysAllow": ["read", "list"], "autoApprove": ["x"], "trust": true"#;
    check(".roo/mcp.json", list, &["allow tools=read", "allow tools=list"]);
    check("cline_mcp_settings.json", list, &["allow tools=x"]);
    check(".gemini/settings.json", list, &["allow"]);
    // Claude Code has none of these keys, and no program has patterns.
    check(".mcp.json", list, &[]);
    check(".cursor/mcp.json", list, &[]);
    check(".roo/mcp.json", r#""alwaysAllow": ["*", "read_*"]"#, &[]);
    check(".roo/mcp.json", r#""alwaysAllow": "read""#, &[]);
    check(".gemini/settings.json", r#""trust": false"#, &[]);
    check(".gemini/settings.json", r#""trust": "true""#, &[]);
}

#[test]
fn cp_021_approval_modes_of_codex_are_rules() {
    let file = ".codex/config.toml";
    check(file, "default_tools_approval_mode = \"prompt\"", &["ask"]);
    check(file, "default_tools_approval_mode = \"auto\"", &["allow hints=reads", "ask"]);
    check(
        file,
        "default_tools_approval_mode = \"approve\"\n[mcp_servers.a.tools.drop]\napproval_mode = \"prompt\"",
        &["ask tools=drop", "allow"],
    );
    check(
        file,
        "[mcp_servers.a.tools.x]\napproval_mode = \"auto\"",
        &["allow tools=x hints=reads", "ask tools=x"],
    );
    check(file, "default_tools_approval_mode = \"unheard\"", &["ask"]);
    check(file, "enabled_tools = [\"x\"]", &[]);
}

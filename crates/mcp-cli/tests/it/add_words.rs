//! `add` in the words of other programs.

use std::fs;

use crate::support::Workspace;

/// Adds a server to a new folder; returns the file that was created or changed.
#[track_caller]
fn added(words: &[&str], file: &str) -> String {
    let workspace = Workspace::empty();
    let run = workspace.run(&[&["add"], words].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    let text = fs::read_to_string(workspace.path().join(file)).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// RPT-104
#[test]
fn server_is_added_in_the_words_of_other_programs() {
    assert_eq!(
        added(&["files", "-e", "KEY=x", "--", "npx", "-y", "pkg", "--port", "80"], ".mcp.json"),
        r#"{ "mcpServers": { "files": { "command": "npx", "args": ["-y", "pkg", "--port", "80"], "env": { "KEY": "x" } } } }"#
    );
    assert_eq!(
        added(
            &["-t", "http", "docs", "https://x.example/mcp", "--header", "Authorization: Bearer abc"],
            ".mcp.json"
        ),
        r#"{ "mcpServers": { "docs": { "type": "http", "url": "https://x.example/mcp", "headers": { "Authorization": "Bearer abc" } } } }"#
    );
    assert_eq!(
        added(
            &[".codex/config.toml", "docs", "https://x.example/mcp", "--bearer-token-env-var", "TOKEN"],
            ".codex/config.toml"
        ),
        r#"[mcp_servers.docs] url = "https://x.example/mcp" bearer_token_env_var = "TOKEN""#
    );
    assert_eq!(
        added(
            &[".vscode/mcp.json", r#"{"name": "a", "command": "x", "args": ["${input:k}"], "note": 1}"#],
            ".vscode/mcp.json"
        ),
        r#"{ "servers": { "a": { "command": "x", "args": ["${input:k}"], "note": 1 } }, "inputs": [ { "type": "promptString", "id": "k", "description": "k", "password": true } ] }"#
    );
    let workspace = Workspace::empty();
    workspace.write(".cursor/mcp.json", "{}");
    let run = workspace.run(&["add", "files", "--", "npx", "pkg"]);
    assert!(run.code == Some(0) && run.out.contains(".cursor/mcp.json"), "the nearest file: {run:?}");
    let run = workspace.run(&["add", ".", "b", "--", "npx", "pkg", "--dry-run"]);
    assert!(run.code == Some(0) && run.out.contains("--dry-run"), "an argument of the program: {run:?}");
}

/// RPT-316
#[test]
fn rpt_316_sandbox_is_proposed_by_the_kind_of_the_program() {
    let files = |sandbox: &str, command: &str| {
        added(&[".mcp.json", "files", sandbox, "--", command, "pkg"], ".mcp.json")
    };
    assert_eq!(
        files("--sandbox", "npx"),
        r#"{ "mcpServers": { "files": { "command": "npx", "args": ["pkg"], "sandbox": { "preset": "project", "write": ["~/.npm"], "ports": [53, 443] } } } }"#
    );
    assert_eq!(
        files("--sandbox", "docker"),
        r#"{ "mcpServers": { "files": { "command": "docker", "args": ["pkg"], "sandbox": "off" } } }"#
    );
    assert_eq!(
        files("--sandbox=network", "python3"),
        r#"{ "mcpServers": { "files": { "command": "python3", "args": ["pkg"], "sandbox": "network" } } }"#
    );
    let run = Workspace::empty().run(&["add", "a", "https://x.example/mcp", "--sandbox"]);
    assert!(run.code == Some(2) && run.err.contains("`--sandbox` is for a program"), "{run:?}");
}

//! Remedies in the words of the program to which a file belongs.

use mcp_host_config::{Document, detect, read_detecting};

/// The messages and helps of a file, one line each.
fn diagnostics(path: &str, text: &str) -> String {
    let dialect = detect(path, text).expect("the dialect is detected");
    let reading = read_detecting(dialect, path, text, Document::DEFAULT_MAX_SERVERS).reading;
    let lines = reading.diagnostics.iter().map(|it| {
        let fix = if it.fix.is_some() { " [fix]" } else { "" };
        format!("{}; help: {}{fix}", it.message, it.help.as_deref().unwrap_or_default())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(path: &str, text: &str, want: &str) {
    assert_eq!(diagnostics(path, text), want, "{text}");
}

const CODEX: &str = ".codex/config.toml";

#[test]
fn rpt_100_remedies_name_the_keys_of_codex() {
    check(
        CODEX,
        "[mcp-servers.w]\ncommand = 'x'\n",
        "these settings have no MCP servers; help: did you mean `mcp_servers` by 'mcp-servers'?",
    );
    check(
        CODEX,
        "model = 'x'\n",
        "these settings have no MCP servers; help: servers belong under `mcp_servers`",
    );
    check(
        CODEX,
        "[mcp_servers.w]\nurl = 'https://a.example'\nbearer_token = 'x'\nheaders = { A = 'b' }\ntimeout = 5\n",
        "Codex has no key 'bearer_token', and the token is not sent; help: write `bearer_token_env_var = \"NAME\"`, \
         with the name of a variable that has the token\n\
         Codex ignores 'headers'; only mcp-host reads it; help: write `http_headers`\n\
         Codex ignores 'timeout'; only mcp-host reads it; help: write `tool_timeout_sec`",
    );
    check(
        CODEX,
        "[mcp_servers.w]\nurl = 'https://a.example'\nbearer_token_env_var = 'X'\nhttp_headers = { A = 'b' }\n",
        "",
    );
    check(
        CODEX,
        "[mcp_servers.w]\ncommand = 'x'\n[mcp_servers.\"w.env\"]\nA = 'b'\n",
        "in quotes, 'w.env' is a server of its own, not the `env` of a server; help: write `[mcp_servers.w.env]`, \
         without quotes",
    );
    check(CODEX, "[mcp_servers.w]\ncommand = 'x'\n[mcp_servers.\"w.env\"]\ncommand = 'y'\n", "");
}

#[test]
fn rpt_107_key_of_a_server_among_its_variables_is_named() {
    check(
        CODEX,
        "[mcp_servers.w]\ncommand = 'x'\n[mcp_servers.w.env]\nenv_vars = ['T']\n",
        "'env_vars' is a key of the server, not one of its variables; help: move `env_vars` up, next to `env`",
    );
    check(
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "x", "env": {"args": ["y"]}}}}"#,
        "'args' is a key of the server, not one of its variables; help: move `args` up, next to `env`",
    );
    check(".mcp.json", r#"{"mcpServers": {"a": {"command": "x", "env": {"type": "y"}}}}"#, "");
}

#[test]
fn rpt_210_missing_key_that_was_misspelt_is_named() {
    check(
        "mcp.json",
        r#"{"mcpServers": {"a": {"comand": "x"}}}"#,
        "a server needs a 'command' to start, or a 'url' to connect to; help: write `command` instead of 'comand'\n\
         unknown key 'comand'; help: did you mean `command`? [fix]",
    );
    check(
        ".minds/mcp.yaml",
        "version: 1\nservers:\n  a:\n    transport: stdio\n    comand: x\n",
        "Invalid mcp.yaml: servers.a.command must be a non-empty string; help: write `command` instead of 'comand'\n\
         unknown key 'comand'; help: did you mean `command`? [fix]",
    );
    check(
        ".minds/mcp.yaml",
        "version: 1\nservers:\n  a:\n    transport: streamable_http\n    ulr: https://x.example\n",
        "Invalid mcp.yaml: servers.a.url must be a non-empty string; help: write `url` instead of 'ulr'\n\
         unknown key 'ulr'; help: did you mean `url`? [fix]",
    );
}

#[test]
fn rpt_211_transport_of_another_program_is_translated() {
    check(
        "agent.yaml",
        "tools:\n  - {name: a, description: d, type: mcp, server: s, transport: streamable_http, url: \
         'https://x.example'}\n",
        "'transport' must be one of `stdio`, `sse`, `websocket`, `http`; help: did you mean `http`? [fix]",
    );
}

#[test]
fn rpt_215_url_for_claude_desktop_gets_a_warning() {
    let text = r#"{"mcpServers": {"a": {"url": "https://x.example/mcp"}}}"#;
    check(
        "claude_desktop_config.json",
        text,
        "Claude Desktop only starts programs; only mcp-host connects to this URL; help: add the URL in its settings, \
         under Connectors; or start a bridge: `npx -y mcp-remote URL`",
    );
    check(".mcp.json", text, "");
}

#[test]
fn rpt_101_syntax_error_of_a_file_with_another_name_is_reported() {
    for (path, text) in [
        ("x.toml", "model = 'x'\r[mcp_servers.a]\ncommand = 'y'\n"),
        ("x.yaml", "mcpServers:\n  a:\n    command: \"C:\\Users\\x\"\n"),
        ("x.json", "{\u{201c}mcpServers\u{201d}: {}}"),
    ] {
        assert!(diagnostics(path, text).contains("invalid"), "{text}: {}", diagnostics(path, text));
    }
    let found = diagnostics(CODEX, "model = 'x'\r[mcp_servers.a]\n");
    let help = "end each line with a line feed: save the file with the line ends of Unix or Windows";
    assert!(found.ends_with(help), "{found}");
}

#[test]
fn rpt_102_backslashes_of_a_windows_path_are_explained() {
    let help = "a backslash begins an escape: write it twice, or put the text into single quotes";
    for path in ["F:\\Program", "C:\\Users\\x", "C:\\x1"] {
        let found = diagnostics(CODEX, &format!("[mcp_servers.w]\ncommand = \"{path}\"\n"));
        assert!(found.ends_with(help), "{path}: {found}");
    }
    let found = diagnostics(CODEX, "[mcp_servers.w]\ncommand = \"x\n");
    assert!(!found.contains("backslash"), "{found}");
    let escaped = "a backslash in the path was read as an escape, such as `\\t` for a tab; help: write each backslash \
                   twice, as in `C:\\\\tools`, or `/` instead";
    check(CODEX, "[mcp_servers.w]\ncommand = \"C:\\tools\\new.exe\"\n", escaped);
    check(".mcp.json", r#"{"mcpServers": {"s": {"command": "C:\tools\node.exe"}}}"#, escaped);
    check(".mcp.json", r#"{"mcpServers": {"s": {"command": "x", "args": ["C:\tools"]}}}"#, escaped);
}

#[test]
fn rpt_103_servers_are_not_wrapped_twice() {
    check(
        ".vscode/mcp.json",
        r#"{"mcp": {"servers": {"s": {"command": "x"}}}}"#,
        "VS Code reads servers under 'servers', and ignores 'mcp'; help: move the servers up: `{\"servers\": {…}}`",
    );
}

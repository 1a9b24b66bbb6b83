//! Enabling and disabling servers: by the key or list that the program obeys, or as a comment.

use mcp_host_config::{Document, Profile, Switch, remove_server, set_enabled};

use crate::edits::{document, text_or_error};

#[track_caller]
fn check_switch(before: &str, to: Switch, want: &str) {
    assert_eq!(text_or_error(set_enabled(&document(Profile::Dominds, before), "a", to)), want);
}

#[test]
fn dmx_02_server_is_disabled_by_its_first_key() {
    let on = "version: 1\nservers:\n  a: # c\n    # why\n    transport: stdio\n    command: x\n";
    let off = on.replace("    transport", "    enabled: false\n    transport");
    check_switch(on, Switch::Off, &off);
    check_switch(on, Switch::On, on);
    check_switch(&off, Switch::Off, &off);
    check_switch(&off, Switch::On, &off.replace("false", "true"));
    let late = format!("{on}    enabled: True # for now\n");
    check_switch(&late, Switch::Off, &late.replace("True", "false"));
    check_switch(
        "version: 1\nservers: {a: {transport: stdio, command: x}}\n",
        Switch::Off,
        "version: 1\nservers: {a: {enabled: false, transport: stdio, command: x}}\n",
    );
    // An invalid server can be disabled.
    let wrong = "version: 1\nservers:\n  a:\n    transport: sse\n";
    check_switch(wrong, Switch::Off, "version: 1\nservers:\n  a:\n    enabled: false\n    transport: sse\n");
}

#[test]
fn unsupported_switches_are_refused() {
    const UNSAFE: &str = "error: the file cannot be edited safely: ";
    let shared = "version: 1\nservers:\n  a: &x {transport: stdio, command: x}\n  b: *x\n";
    check_switch(shared, Switch::Off, &format!("{UNSAFE}the value at '/servers/b' would change too"));
    check_switch(
        "version: 1\nservers: {a: }\n",
        Switch::Off,
        &format!("{UNSAFE}the server's entry cannot take another key"),
    );
    let agent = document(Profile::HoloDeck, "tools: [{name: a, type: mcp}]");
    assert_eq!(
        text_or_error(set_enabled(&agent, "a", Switch::Off)),
        "error: a server of holodeck cannot be disabled, only removed"
    );
}

/// Switches the server `a` of an editor's file off, and on again.
#[track_caller]
fn check_switch_in(name: &str, on: &str, off: &str) {
    let switch =
        |text: &str, to| text_or_error(set_enabled(&Document::new(name, text, Profile::McpJson), "a", to));
    assert_eq!(switch(on, Switch::Off), off, "{name}");
    if !off.starts_with("error") {
        assert_eq!(switch(off, Switch::Off), off, "{name}: twice");
        assert_eq!(switch(off, Switch::On), on, "{name}: on again");
    }
}

#[test]
fn dia_07_server_is_disabled_by_the_key_that_its_program_obeys() {
    let on = "{\"mcpServers\": {\"a\": {\"disabled\": false, \"command\": \"x\"}}}";
    for name in [
        ".roo/mcp.json",
        "cline_mcp_settings.json",
        "windsurf/mcp_config.json",
        ".kiro/settings/mcp.json",
        "x.json",
    ] {
        check_switch_in(name, on, &on.replace("false", "true"));
    }
    // Zed and opencode ignore `disabled`.
    for (name, key) in [(".zed/settings.json", "context_servers"), ("opencode.json", "mcp")] {
        let on = format!(
            "{{\"{key}\": {{\"a\": {{\"enabled\": true, \"disabled\": false, \"command\": \"x\"}}}}}}"
        );
        check_switch_in(name, &on, &on.replace("\"enabled\": true", "\"enabled\": false"));
    }
    for (name, want) in [
        (
            ".mcp.json",
            "Claude Code obeys no key that disables a server; the list `disabledMcpjsonServers` of \
            .claude/settings.local.json, or `/mcp` in Claude Code, does",
        ),
        (
            "claude_desktop_config.json",
            "Claude Desktop obeys no key that disables a server; it starts every server of its file",
        ),
        (
            ".copilot/mcp-config.json",
            "Copilot CLI obeys no key that disables a server; `copilot --disable-mcp-server NAME`, or `/mcp disable \
            NAME`, does",
        ),
    ] {
        check_switch_in(name, on, &format!("error: {want}"));
    }
    // A key that disables the server for mcp-host is set back.
    let off = "{\"mcpServers\": {\"a\": {\"disabled\": true, \"command\": \"x\"}}}";
    let document = Document::new(".mcp.json", off, Profile::McpJson);
    assert_eq!(text_or_error(set_enabled(&document, "a", Switch::On)), on);
}

#[test]
fn dia_07_servers_of_gemini_and_qwen_are_switched_by_lists() {
    let file = |rest: &str| {
        format!("{{\n  // mine\n  \"mcpServers\": {{\n    \"a\": {{ \"command\": \"x\" }}\n  }}{rest}\n}}\n")
    };
    for name in [".gemini/settings.json", "/home/me/.qwen/settings.json"] {
        // Without lists, with an empty one that is not the last member, with others in it.
        check_switch_in(name, &file(""), &file(",\n  \"mcp\": {\n    \"excluded\": [\"a\"]\n  }"));
        let other = |list: &str| {
            file(&format!(",\n  \"mcp\": {{ \"serverCommand\": \"s\", \"excluded\": {list} }} // c"))
        };
        let first =
            |list: &str| file(&format!(",\n  \"mcp\": {{ \"excluded\": {list}, \"serverCommand\": \"s\" }}"));
        check_switch_in(name, &first("[]"), &first("[\"a\"]"));
        check_switch_in(name, &other("[\"b\"]"), &other("[\"b\", \"a\"]"));
        // A server that is not among the allowed ones is disabled.
        let allowed = |list: &str| file(&format!(",\n  \"mcp\": {{ \"allowed\": {list} }}"));
        let switch = |text: &str, to| {
            text_or_error(set_enabled(&Document::new(name, text, Profile::McpJson), "a", to))
        };
        assert_eq!(switch(&allowed("[\"b\"]"), Switch::Off), allowed("[\"b\"]"));
        assert_eq!(switch(&allowed("[\"b\"]"), Switch::On), allowed("[\"b\", \"a\"]"));
        assert_eq!(switch(&allowed("[]"), Switch::On), allowed("[]"));
        // Several ways at once.
        let all = |list: &str, disabled: &str| {
            let text = file(&format!(",\n  \"mcp\": {{ \"excluded\": {list} }}"));
            text.replace("{ \"command\"", &format!("{{ \"disabled\": {disabled}, \"command\""))
        };
        assert_eq!(switch(&all("[\"b\", \"a\"]", "true"), Switch::On), all("[\"b\"]", "false"));
        assert_eq!(
            switch(&file(",\n  \"mcp\": { \"excluded\": \"a\" }"), Switch::Off),
            "error: the file cannot be edited safely: 'excluded' is not a list there"
        );
    }
}

#[test]
fn dia_07_server_of_vs_code_becomes_a_comment() {
    let file = |a: &str, b: &str| format!("{{\n  \"servers\": {{\n{a}{b}  }}\n}}\n");
    let entry = "    // of a\n    \"a\": {\n      \"command\": \"x\", // why\n\n      \"args\": []\n    }";
    let comment = "    // of a\n    // \"a\": {\n    //   \"command\": \"x\", // why\n\
        //\n    //   \"args\": []\n    // }";
    let check = |on: &str, off: &str| {
        for end in ["\n", "\r\n"] {
            let [on, off] = [on, off].map(|it| it.replace('\n', end));
            for name in [".vscode/mcp.json", "Code/User/mcp.json"] {
                check_switch_in(name, &on, &off);
            }
        }
    };
    let other = "    \"b\": { \"command\": \"y\" }";
    // First, last, last with a trailing comma, and alone.
    check(
        &file(&format!("{entry},\n"), &format!("{other}\n")),
        &file(&format!("{comment},\n"), &format!("{other}\n")),
    );
    check(
        &file(&format!("{other},\n"), &format!("{entry}\n")),
        &file(&format!("{other}\n"), &format!("{comment}\n")),
    );
    check(
        &file(&format!("{other},\n"), &format!("{entry},\n")),
        &file(&format!("{other},\n"), &format!("{comment},\n")),
    );
    check(&file("", &format!("{entry} // last\n")), &file("", &format!("{comment} // last\n")));
    let line = "{\"servers\": {\"a\": {\"command\": \"x\"}}}";
    check_switch_in(
        ".vscode/mcp.json",
        line,
        "error: the file cannot be edited safely: the entry shares its lines with something else",
    );
    // Removing the next server does not remove the commented-out one.
    let text = file(&format!("{comment},\n"), &format!("{other},\n    \"c\": {{\"command\": \"z\"}}\n"));
    let document = Document::new(".vscode/mcp.json", &text, Profile::McpJson);
    let without = file(&format!("{comment},\n"), "    \"c\": {\"command\": \"z\"}\n");
    assert_eq!(text_or_error(remove_server(&document, "b")), without);
    assert_eq!(text_or_error(remove_server(&document, "a")), "error: the server 'a' is a comment");
}

//! Files of other programs: each is checked, its server runs, and it is converted and imported.

use serde_json::json;

use crate::support::{PROGRAM, Run, Workspace};

/// A file of a program, with the demo server under the name `demo`.
const FILES: &[(&str, &str)] = &[
    (
        ".codex/config.toml",
        "model = \"m\"\n\n[mcp_servers.demo]\ncommand = \"mcp-host\"\nargs = [\"demo-server\"]\n\
         env = { SEEN = \"yes\" }\nenabled_tools = [\"echo\"]\n",
    ),
    (
        ".config/goose/config.yaml",
        "GOOSE_MODEL: m\nextensions:\n  demo:\n    enabled: true\n    type: stdio\n    name: demo\n    \
         cmd: mcp-host\n    args: [demo-server]\n    envs: {SEEN: \"yes\"}\n    available_tools: [echo]\n",
    ),
    (
        ".continue/config.yaml",
        "name: mine\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: demo\n    command: mcp-host\n    \
         args: [demo-server]\n    env: {SEEN: \"yes\"}\n",
    ),
    (
        "librechat.yaml",
        "version: 1.2.1\nmcpServers:\n  demo:\n    command: mcp-host\n    args: [demo-server]\n    \
         env: {SEEN: \"yes\"}\n",
    ),
    (
        ".config/amp/settings.json",
        "{\n  // of mine\n  \"amp.mcpServers\": {\"demo\": {\"command\": \"mcp-host\", \"args\": [\"demo-server\"], \
         \"env\": {\"SEEN\": \"yes\"}, \"includeTools\": [\"echo\"]}},\n}\n",
    ),
    (
        ".devcontainer/devcontainer.json",
        "{\"image\": \"x\", \"customizations\": {\"vscode\": {\"mcp\": {\"servers\": {\"demo\": {\"command\": \
         \"mcp-host\", \"args\": [\"demo-server\"], \"env\": {\"SEEN\": \"yes\"}}}}}}}\n",
    ),
];

#[test]
fn files_of_other_programs_are_checked_run_converted_and_imported() {
    for (file, text) in FILES {
        let workspace = Workspace::empty();
        workspace.write(file, text);
        let checked = workspace.run(&["check", file]);
        assert_eq!(checked.out, format!("✓ {file}: mcp-json, 1 server\n"), "{checked:?}");
        let called = workspace.run(&["call", file, "demo__echo", r#"{"text": "hello"}"#]);
        assert_eq!((called.code, called.out.as_str()), (Some(0), "hello\n"), "{file}: {called:?}");

        let converted = workspace.run(&["convert", file, "--to", "mcp-json"]);
        assert_eq!(converted.code, Some(0), "{file}: {converted:?}");
        let server = &converted.json()["mcpServers"]["demo"];
        let want = json!({"command": "mcp-host", "args": ["demo-server"], "env": {"SEEN": "yes"}});
        for key in ["command", "args", "env"] {
            assert_eq!(server[key], want[key], "{file}: {converted:?}");
        }
        let filter = if text.contains("[echo]") || text.contains("[\"echo\"]") {
            json!(["echo"])
        } else {
            json!(null)
        };
        assert_eq!(server["includeTools"], filter, "{file}: {converted:?}");

        workspace.write(".minds/mcp.yaml", "version: 1\nservers: {}\n");
        let imported = workspace.run(&["import", "--from", file, "--into", ".minds/mcp.yaml"]);
        assert!(imported.out.ends_with("✓ 1 server added to .minds/mcp.yaml\n"), "{file}: {imported:?}");
        let called = workspace.run(&["call", ".minds/mcp.yaml", "echo", r#"{"text": "again"}"#]);
        assert_eq!((called.code, called.out.as_str()), (Some(0), "again\n"), "{file}: {called:?}");
    }
}

#[test]
fn files_of_other_programs_are_found_by_import() {
    let workspace = Workspace::empty();
    for (file, text) in FILES {
        workspace.write(file, text);
    }
    let found = workspace.run(&["import"]);
    for program in ["Codex", "Goose", "Continue", "Amp"] {
        let is_listed = found.out.lines().any(|it| it.contains(program) && it.trim_end().ends_with("demo"));
        assert!(is_listed, "{program}: {found:?}");
    }
}

/// The value of the variable `SEEN` that a server gets from this file, and the warnings about the file.
fn value_seen(file: &str, key: &str, value: &str) -> (String, String) {
    let workspace = Workspace::empty();
    workspace.script("peer", &format!("printf '%s' \"$SEEN\" > seen\nexec {PROGRAM} demo-server"));
    let server = json!({"command": "peer", "env": {"SEEN": value}});
    workspace.write(file, &json!({key: {"demo": server}}).to_string());
    let run = |arguments: &[&str]| {
        let mut command = workspace.command(arguments);
        Run::of(command.env("NAME_OF_OURS", "value").output().unwrap())
    };
    let called = run(&["call", file, "demo__echo", r#"{"text": "hello"}"#]);
    assert_eq!(called.code, Some(0), "{called:?}");
    let seen = std::fs::read_to_string(workspace.path().join("seen")).unwrap();
    (seen, run(&["check", file]).out)
}

#[test]
fn dia_06_variables_are_replaced_as_the_program_of_the_file_does() {
    let check = |file: &str, key: &str, value: &str, want: &str, warning: &str| {
        let (seen, checked) = value_seen(file, key, value);
        assert_eq!(seen, want, "{file}: {value}");
        assert!(checked.contains(warning), "{file}: {value}: {checked}");
    };
    const ZED: &str = ".config/zed/settings.json";
    const COPILOT: &str = ".copilot/mcp-config.json";
    // Zed gives the server this text. In other files a variable without a value is an error.
    check(ZED, "context_servers", "${NOT_SET_ANYWHERE}", "${NOT_SET_ANYWHERE}", "Zed replaces no variables");
    check(ZED, "context_servers", "$NAME_OF_OURS", "$NAME_OF_OURS", "");
    check(COPILOT, "mcpServers", "-$NAME_OF_OURS", "-value", "");
    check(COPILOT, "mcpServers", "${NAME_OF_OURS}", "value", "");
    check("mcp.json", "mcpServers", "$NAME_OF_OURS", "$NAME_OF_OURS", "`$NAME` is not replaced");
}

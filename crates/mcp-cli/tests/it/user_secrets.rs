//! `secret`, and secrets in configurations, in private files: the tests do not use the keyring of the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{PROGRAM, Run, Workspace};
use crate::terminal::Terminal;

const FILE: &str = "repo/.mcp.json";

/// A configuration that gives the demo server the secret `KEY`.
const ENTRY: &str = r#"{"mcpServers": {"demo":
    {"command": "mcp-host", "args": ["demo-server"], "env": {"DEMO_KEY": "a ${secret:KEY}"}}}}"#;

fn workspace() -> Workspace {
    let workspace = Workspace::empty();
    workspace.write(FILE, ENTRY);
    workspace.script("mcp-host", &format!("exec {PROGRAM} \"$@\""));
    workspace
}

/// Runs in the folder of the project, with a program that prints secrets and leaves a mark.
fn run_with_command(workspace: &Workspace, arguments: &[&str]) -> Run {
    workspace.script("print-secret", "echo $1 >> \"$HOME/asked\"; echo \"planted-$1\"");
    let mut command = workspace.command(arguments);
    command.env("MCP_HOST_SECRET_COMMAND", r#"["print-secret", "{name}"]"#);
    Run::of(command.current_dir(workspace.path().join("repo")).output().unwrap())
}

// RPT-302
#[test]
fn secrets_are_stored_listed_and_removed() {
    let workspace = workspace();
    let set = workspace.run_with_input(&["secret", "set", "KEY"], "planted-value\n");
    assert_eq!((set.code, set.err.as_str()), (Some(0), ""), "{set:?}");
    assert!(set.out.contains("in a private file in ") && set.out.contains("`${secret:KEY}`"), "{set:?}");
    let file = workspace.path().join("state/mcp-host/secrets/KEY.secret");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let list = workspace.run(&["secret", "list", "--format", "json"]);
    assert_eq!(list.json(), serde_json::json!({"stored_in": "files", "names": ["KEY"]}));
    let call = workspace.run(&["call", FILE, "env", "name=DEMO_KEY"]);
    assert_eq!((call.code, call.out.as_str()), (Some(0), "a planted-value\n"), "{call:?}");
    for arguments in [&["check", FILE][..], &["tools", FILE, "--verbose"], &["doctor", FILE]] {
        let run = workspace.run(arguments);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(!format!("{run:?}").contains("planted"), "{run:?}");
    }
    let removed = workspace.run(&["secret", "remove", "KEY"]);
    assert_eq!((removed.code, removed.out.as_str(), file.exists()), (Some(0), "`KEY` is removed\n", false));
    let again = workspace.run(&["secret", "remove", "KEY"]);
    assert_eq!((again.code, again.err.contains("there is no secret `KEY`")), (Some(1), true), "{again:?}");
    let missing = workspace.run(&["tools", FILE]);
    assert!(missing.err.contains("store it: `mcp-host secret set KEY`"), "{missing:?}");
}

#[test]
fn value_of_a_secret_is_no_argument_and_is_checked() {
    let workspace = workspace();
    let argument = workspace.run(&["secret", "set", "KEY", "planted"]);
    assert_eq!((argument.code, argument.out.as_str()), (Some(2), ""), "{argument:?}");
    for (name, input) in [("KEY", ""), ("KEY", "\n"), ("a b", "x"), ("KEY", &"planted".repeat(10_000)[..])] {
        let refused = workspace.run_with_input(&["secret", "set", name], input);
        assert_eq!((refused.code, refused.err.starts_with("error: ")), (Some(1), true), "{refused:?}");
        assert!(!refused.err.contains("planted"), "{refused:?}");
    }
    let command = workspace.run(&["tools", FILE, "--secret-command", "pass show {name}"]);
    assert_eq!((command.code, command.err.contains("JSON array")), (Some(2), true), "{command:?}");
}

/// RPT-304
#[test]
fn rpt_304_found_configuration_reads_no_secret_until_it_is_approved() {
    let workspace = workspace();
    let asked = || fs::read_to_string(workspace.path().join("asked")).unwrap_or_default();
    for arguments in [&["tools"][..], &["check"], &["doctor"], &["call", "env", "name=DEMO_KEY"]] {
        let run = run_with_command(&workspace, arguments);
        assert_eq!(asked(), "", "{arguments:?}: {run:?}");
    }
    let trusted = run_with_command(&workspace, &["trust"]);
    assert!(
        trusted.out.contains("    sets the variables: DEMO_KEY\n    reads your secrets: KEY\n"),
        "{trusted:?}"
    );
    assert_eq!(asked(), "");
    let call = run_with_command(&workspace, &["call", "env", "name=DEMO_KEY"]);
    assert_eq!((call.code, call.out.as_str()), (Some(0), "a planted-KEY\n"), "{call:?}");
    assert_eq!(asked(), "KEY\n");
    // Another secret is another server.
    workspace.write(FILE, &ENTRY.replace("secret:KEY", "secret:OTHER"));
    let changed = run_with_command(&workspace, &["call", "env", "name=DEMO_KEY"]);
    assert_ne!(changed.code, Some(0), "{changed:?}");
    assert_eq!(asked(), "KEY\n");
}

// RPT-303
#[test]
fn failed_secret_command_is_named_without_its_output() {
    let workspace = workspace();
    workspace.script("print-secret", "echo planted; echo planted >&2; exit 4");
    let command = r#"["print-secret", "{name}"]"#;
    let run = workspace.run(&["tools", FILE, "--verbose", "--secret-command", command]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("`print-secret` has failed for `KEY` (exit status: 4)"), "{run:?}");
    assert!(!format!("{run:?}").contains("planted"), "{run:?}");
}

/// RPT-305
#[test]
fn input_without_a_value_is_read_from_the_secrets() {
    let workspace = workspace();
    let entry = ENTRY.replace("${secret:KEY}", "${input:api-key}").replacen(
        '{',
        r#"{"inputs": [{"type": "promptString", "id": "api-key", "description": "d", "password": true}], "#,
        1,
    );
    workspace.write("vs/.vscode/mcp.json", &entry.replace("mcpServers", "servers"));
    let missing = workspace.run(&["tools", "vs"]);
    assert!(missing.err.contains("or keep it: `mcp-host secret set MCP_INPUT_API_KEY`"), "{missing:?}");
    workspace.run_with_input(&["secret", "set", "MCP_INPUT_API_KEY"], "stored");
    let call = workspace.run(&["call", "vs", "env", "name=DEMO_KEY"]);
    assert_eq!((call.code, call.out.as_str()), (Some(0), "a stored\n"), "{call:?}");
}

/// RPT-309
#[test]
fn rpt_309_terminal_asks_for_an_input_and_keeps_it_when_asked() {
    let workspace = workspace();
    let entry = ENTRY.replace("${secret:KEY}", "${input:api-key}").replace("mcpServers", "servers");
    let input =
        r#"{"inputs": [{"type": "promptString", "id": "api-key", "description": "d", "password": true}], "#;
    workspace.write("vs/.vscode/mcp.json", &entry.replacen('{', input, 1));
    let call = "call vs env name=DEMO_KEY";
    let answer = |keep: &str| {
        let terminal = Terminal::start(&workspace, call, (100, 30))?;
        terminal.until("A server needs the input `api_key` (not shown; Enter: none):");
        terminal.types("planted-answer");
        terminal.press(&["Enter"]);
        let asked = terminal.until("Keep it for later starts, as the secret MCP_INPUT_API_KEY? [y/N]");
        assert!(!asked.contains("planted"), "{asked}");
        terminal.types(keep);
        terminal.press(&["Enter"]);
        terminal.until("a planted-answer");
        Some(terminal.until("ended 0, the terminal is as before"))
    };
    if answer("n").is_none() {
        return;
    }
    assert!(workspace.run(&["secret", "list"]).out.is_empty());
    answer("y");
    assert_eq!(workspace.run(&["secret", "list"]).out, "MCP_INPUT_API_KEY\n");
    let stored = workspace.run(&["call", "vs", "env", "name=DEMO_KEY"]);
    assert_eq!((stored.code, stored.out.as_str()), (Some(0), "a planted-answer\n"), "{stored:?}");
    // A signal during the question leaves the terminal as it was, and `check` asks nothing.
    workspace.run(&["secret", "remove", "MCP_INPUT_API_KEY"]);
    let terminal = Terminal::start(&workspace, call, (100, 30)).unwrap();
    terminal.until("needs the input");
    terminal.press(&["C-c"]);
    terminal.until("ended 130, the terminal is as before");
    let terminal = Terminal::start(&workspace, "check vs", (100, 30)).unwrap();
    assert!(!terminal.until("ended 1, ").contains("needs the input"));
}

/// RPT-306
#[test]
fn rpt_306_check_moves_literal_secrets_when_asked() {
    let workspace = workspace();
    let text = r#"{
  // kept
  "mcpServers": {
    "demo": {"command": "mcp-host", "args": ["demo-server"], "env": {"DEMO_TOKEN": "planted-one", "LEVEL": "debug"}},
    "web": {"url": "https://a.example/mcp?key=planted-two", "headers": {"Authorization": "Bearer planted-three"}}
  }
}
"#;
    workspace.write(FILE, text);
    let read = || fs::read_to_string(workspace.path().join(FILE)).unwrap();
    let proposed = workspace.run(&["check", FILE]);
    assert_eq!((proposed.code, read().as_str()), (Some(0), text));
    assert!(proposed.err.contains("demo: env.DEMO_TOKEN and 2 more may be a secret"), "{proposed:?}");
    assert!(proposed.err.contains("check --fix=secrets repo/.mcp.json`"), "{proposed:?}");

    let moved = workspace.run(&["check", FILE, "--fix=secrets"]);
    assert_eq!(moved.code, Some(0), "{moved:?}");
    assert!(moved.out.contains("2 secrets moved; stored in a private file"), "{moved:?}");
    assert!(moved.out.contains("not moved: web: url"), "{moved:?}");
    let want = text
        .replace("planted-one", "${secret:demo_DEMO_TOKEN}")
        .replace("planted-three", "${secret:web_Authorization}");
    assert_eq!(read(), want);
    let call = workspace.run(&["call", FILE, "env", "name=DEMO_TOKEN", "--server", "demo"]);
    assert_eq!((call.code, call.out.as_str()), (Some(0), "planted-one\n"), "{call:?}");
    for run in [&proposed, &moved] {
        assert!(!format!("{run:?}").contains("planted"), "{run:?}");
    }
    // Another value of the same name gets another name; the same value has one secret.
    workspace.write("other/.mcp.json", &text.replace("planted-one", "planted-four"));
    let other = workspace.run(&["check", "other", "--fix=secrets", "--format", "json"]);
    let names: Vec<_> = other.json()["files"][0]["moved"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["secret"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["demo_DEMO_TOKEN_2", "web_Authorization"], "{other:?}");
}

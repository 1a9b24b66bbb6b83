//! `import`: lists and imports the servers of other programs.

use crate::support::Workspace;

const CURSOR: &str = r#"{"mcpServers": {
  "files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "sk-very-secret"}},
  "web": {"url": "https://example.com/mcp"}
}}"#;

fn workspace() -> Workspace {
    let workspace =
        Workspace::dominds("version: 1\nservers:\n  web:\n    transport: stdio\n    command: x\n");
    workspace.write(".cursor/mcp.json", CURSOR);
    workspace.write(
        ".gemini/settings.json",
        r#"{"mcpServers": {"files": {"command": "other"}, "own": {"command": "y"}}}"#,
    );
    workspace.write(".config/zed/settings.json", "{");
    workspace
}

#[test]
fn import_lists_without_writing() {
    let workspace = workspace();
    let run = workspace.run(&["import"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let line =
        |part: &str| run.out.lines().any(|it| it.split_whitespace().collect::<Vec<_>>().join(" ") == part);
    assert!(line(".minds/mcp.yaml this folder web"), "{run:?}");
    assert!(line(".cursor/mcp.json this folder files, web"), "once, though it is also Cursor's own: {run:?}");
    assert!(run.out.contains("Gemini CLI") && run.out.contains("Zed"), "{run:?}");
    assert!(!run.out.contains("very-secret"), "{run:?}");
    let document = workspace.run(&["import", "--format", "json"]).json();
    assert_eq!(document["into"], serde_json::Value::Null);
    assert_eq!(document["found"][1]["servers"], serde_json::json!(["files", "web"]));
    assert!(Workspace::empty().run(&["import"]).out.starts_with("no configuration of a known program"));
}

#[test]
fn import_copies_values_without_printing_them() {
    let workspace = workspace();
    let run = workspace.run(&["import", "--into", ".minds/mcp.yaml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let text = std::fs::read_to_string(workspace.path().join(".minds/mcp.yaml")).unwrap();
    for part in ["  files:\n", "sk-very-secret", "  own:\n", "    command: x\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("example.com") && !text.contains("other"), "{text}");
    assert!(!run.out.contains("very-secret") && !run.err.contains("very-secret"), "{run:?}");
    assert!(run.out.contains("warning: `web` is skipped: a server 'web' already exists"), "{run:?}");
    assert!(run.out.contains("warning: `files` is skipped"), "{run:?}");
    assert!(run.out.ends_with("✓ 2 servers added to .minds/mcp.yaml\n"), "{run:?}");
    assert_eq!(workspace.run(&["check", ".minds/mcp.yaml"]).code, Some(0));
}

#[test]
fn one_server_of_one_file_is_imported() {
    let workspace = workspace();
    let words = ["import", "--from", ".gemini/settings.json", "--into", ".minds/mcp.yaml", "--server", "own"];
    let dry = workspace.run(&[&words[..], &["--dry-run", "--format", "json"]].concat());
    assert_eq!(dry.json()["added"], serde_json::json!(["own"]));
    let before = std::fs::read_to_string(workspace.path().join(".minds/mcp.yaml")).unwrap();
    assert!(!before.contains("own"), "{before}");
    assert_eq!(workspace.run(&words).code, Some(0));
    assert!(std::fs::read_to_string(workspace.path().join(".minds/mcp.yaml")).unwrap().contains("own"));
    let run = workspace.run(&["import", "--into", ".minds/mcp.yaml", "--server", "nobody"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("`nobody` is skipped: none of the files contains"), "{run:?}");
    assert_eq!(workspace.run(&["import", "--from", "nowhere.json"]).code, Some(1));
    assert_eq!(workspace.run(&["import", "--into", "nowhere.json"]).code, Some(1));
}

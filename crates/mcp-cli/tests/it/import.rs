//! `import`: lists and imports the servers of other programs.

use std::os::unix::fs::PermissionsExt;

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

/// RPT-105, RPT-214
#[test]
fn import_creates_its_target_and_explains_what_it_skips() {
    let workspace = Workspace::empty();
    workspace.write(
        "from.json",
        r#"{"mcpServers": {
            "a": {"command": "x", "env": {"TOKEN": "sk-very-secret", "LOG_LEVEL": "debug"}, "note": "kept"},
            "off": {"command": "y", "disabled": true},
            "bad": {"comand": "z"},
            "nested": {"inner": {"command": "w"}}}}"#,
    );
    let run = workspace.run(&["import", "--from", "from.json", "--into", "new/mcp.json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for part in [
        "warning: `bad` is skipped: line 4: a server needs a 'command'",
        "warning: `nested` is skipped: line 5: ",
        "warning: copied values that may be secrets: a: env.TOKEN; the file is made readable by its owner only",
        "✓ 2 servers added to new/mcp.json",
    ] {
        assert!(run.out.contains(part), "{part}: {run:?}");
    }
    let path = workspace.path().join("new/mcp.json");
    let text: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(text["mcpServers"]["a"]["note"], "kept");
    assert_eq!(text["mcpServers"]["off"]["disabled"], true);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    // A file that exists becomes private with the first secret.
    workspace.write("old.json", r#"{"mcpServers": {}}"#);
    let old = workspace.path().join("old.json");
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o644)).unwrap();
    let words = ["import", "--from", "from.json", "--into", "old.json", "--server"];
    assert_eq!(workspace.run(&[&words[..], &["off"]].concat()).code, Some(0));
    assert_eq!(mode(&old), 0o644);
    let run = workspace.run(&[&words[..], &["a", "--format", "json"]].concat());
    assert_eq!((&run.json()["secrets"], mode(&old)), (&serde_json::json!(["a: env.TOKEN"]), 0o600));
    let run = workspace.run(&["import", "--from", "from.json", "--into", "new.yaml"]);
    assert!(run.code == Some(1) && run.err.contains("its name does not determine the dialect"), "{run:?}");
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
    assert_eq!(workspace.run(&["import", "--into", "nowhere.txt"]).code, Some(1));
}

//! `import`: what other programs are configured with, shown and taken over.

use crate::support::Place;

const CURSOR: &str = r#"{"mcpServers": {
  "files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "sk-very-secret"}},
  "web": {"url": "https://example.com/mcp"}
}}"#;

fn place() -> Place {
    let place = Place::dominds("version: 1\nservers:\n  web:\n    transport: stdio\n    command: x\n");
    place.write(".cursor/mcp.json", CURSOR);
    place.write(
        ".gemini/settings.json",
        r#"{"mcpServers": {"files": {"command": "other"}, "own": {"command": "y"}}}"#,
    );
    place.write(".config/zed/settings.json", "{");
    place
}

#[test]
fn what_there_is_is_shown_and_nothing_is_written() {
    let place = place();
    let run = place.run(&["import"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let line =
        |part: &str| run.out.lines().any(|it| it.split_whitespace().collect::<Vec<_>>().join(" ") == part);
    assert!(line(".minds/mcp.yaml this folder web"), "{run:?}");
    assert!(line(".cursor/mcp.json this folder files, web"), "once, though it is also Cursor's own: {run:?}");
    assert!(run.out.contains("Gemini CLI") && run.out.contains("Zed"), "{run:?}");
    assert!(!run.out.contains("very-secret"), "{run:?}");
    let document = place.run(&["import", "--format", "json"]).json();
    assert_eq!(document["into"], serde_json::Value::Null);
    assert_eq!(document["found"][1]["servers"], serde_json::json!(["files", "web"]));
    assert!(Place::empty().run(&["import"]).out.starts_with("no program known here"));
}

#[test]
fn what_is_taken_over_comes_with_its_values_and_is_told_without() {
    let place = place();
    let run = place.run(&["import", "--into", ".minds/mcp.yaml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let text = std::fs::read_to_string(place.path().join(".minds/mcp.yaml")).unwrap();
    for part in ["  files:\n", "sk-very-secret", "  own:\n", "    command: x\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("example.com") && !text.contains("other"), "{text}");
    assert!(!run.out.contains("very-secret") && !run.err.contains("very-secret"), "{run:?}");
    assert!(run.out.contains("warning: `web` is left out: there is a server 'web' already"), "{run:?}");
    assert!(run.out.contains("warning: `files` is left out"), "{run:?}");
    assert!(run.out.ends_with("✓ 2 servers added to .minds/mcp.yaml\n"), "{run:?}");
    assert_eq!(place.run(&["check", ".minds/mcp.yaml"]).code, Some(0));
}

#[test]
fn one_server_of_one_file_can_be_chosen() {
    let place = place();
    let words = ["import", "--from", ".gemini/settings.json", "--into", ".minds/mcp.yaml", "--server", "own"];
    let dry = place.run(&[&words[..], &["--dry-run", "--format", "json"]].concat());
    assert_eq!(dry.json()["added"], serde_json::json!(["own"]));
    let before = std::fs::read_to_string(place.path().join(".minds/mcp.yaml")).unwrap();
    assert!(!before.contains("own"), "{before}");
    assert_eq!(place.run(&words).code, Some(0));
    assert!(std::fs::read_to_string(place.path().join(".minds/mcp.yaml")).unwrap().contains("own"));
    let run = place.run(&["import", "--into", ".minds/mcp.yaml", "--server", "nobody"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("`nobody` is left out: no file that was looked at has it"), "{run:?}");
    assert_eq!(place.run(&["import", "--from", "nowhere.json"]).code, Some(1));
    assert_eq!(place.run(&["import", "--into", "nowhere.json"]).code, Some(1));
}

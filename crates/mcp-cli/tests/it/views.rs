//! Views: named selections for `serve`, tokens and `connect`.

use std::fs;

use serde_json::{Value, json};

use crate::serve::serve_and_log;
use crate::support::{SHARED_DEMO, Workspace};

fn workspace() -> Workspace {
    let workspace = Workspace::dominds(SHARED_DEMO);
    workspace.write(".minds/mcp.views", "# what a reader needs\nreading tools=echo,add\nall\n");
    workspace
}

/// The number of tools that a client with this entry sees.
#[track_caller]
fn shown(workspace: &Workspace, entry: &Value) -> usize {
    workspace.write("client/mcp.json", &json!({"mcpServers": {"gw": entry}}).to_string());
    let run = workspace.run(&["tools", "client/mcp.json", "--format", "json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    run.json()["tools"].as_array().unwrap().len()
}

/// RPT-380
#[test]
fn rpt_380_view_selects_what_serve_shows() {
    let workspace = workspace();
    let file = workspace.path().join(".minds/mcp.yaml");
    let with_view = |view: &str| {
        let entry = json!({"command": "mcp-host", "args": ["serve", file, "--stdio", "--view", view]});
        shown(&workspace, &entry)
    };
    assert_eq!(with_view("reading"), 2);
    assert!(with_view("all") > 2);
    let run = workspace.run(&["serve", ".", "--stdio", "--view", "writing"]);
    assert!(run.code == Some(1) && run.err.contains("the views are: reading, all"), "{run:?}");
}

/// RPT-380
#[test]
fn rpt_380_token_has_the_selection_of_a_view() {
    let workspace = workspace();
    workspace.write("tokens", "# view=none\ntoken-of-ann-58fd4ba97c name=ann view=reading\n");
    let serve = ["serve", ".", "--http", "127.0.0.1:0", "--token-file", "tokens"];
    let (mut child, address, _log) = serve_and_log(&workspace, &serve);
    let headers = json!({"Authorization": "Bearer token-of-ann-58fd4ba97c"});
    let url = format!("http://{address}/mcp");
    let count = shown(&workspace, &json!({"type": "http", "url": url, "headers": headers}));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(count, 2);
    workspace.write("tokens", "token-of-ann-58fd4ba97c name=ann view=writing\n");
    let run = workspace.run(&serve);
    assert!(run.code == Some(1) && run.err.contains("there is no view `writing`"), "{run:?}");
}

/// RPT-381
#[test]
fn rpt_381_views_are_listed_and_connected() {
    let workspace = workspace();
    let run = workspace.run(&["views"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = run.out.lines().map(words).collect();
    assert_eq!(lines[..3], ["VIEW SHOWS", "reading tools=echo,add", "all everything"], "{run:?}");
    let one = workspace.run(&["views", ".", "--view", "reading", "--format", "json"]).json();
    assert_eq!(one["views"], json!([{"name": "reading", "shows": "tools=echo,add"}]));
    assert_eq!(workspace.run(&["views", ".", "--view", "none"]).code, Some(1));
    workspace.write(".minds/mcp.views", "reading tool=echo\n");
    let broken = workspace.run(&["views"]);
    assert!(broken.code == Some(1) && broken.err.contains("line 1"), "{broken:?}");
    workspace.write(".config/mcp-host/mcp.views", "coding servers=git*\n");
    workspace.write(".cursor/mcp.json", "{\"mcpServers\": {}}");
    assert_eq!(workspace.run(&["connect", "cursor", "--view", "none"]).code, Some(1));
    assert_eq!(workspace.run(&["connect", "cursor", "--view", "coding", "--shared"]).code, Some(0));
    let text = fs::read_to_string(workspace.path().join(".cursor/mcp.json")).unwrap();
    let args = serde_json::from_str::<Value>(&text).unwrap()["mcpServers"]["mcp-host"]["args"].clone();
    assert_eq!(
        args.as_array().unwrap()[2..],
        [json!("--stdio"), json!("--shared"), json!("--view"), json!("coding")]
    );
}

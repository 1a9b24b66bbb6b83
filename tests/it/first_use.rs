//! First use with a real npm server: add it to an empty folder by package name, check, list, call, convert.

use std::os::unix::fs::symlink;

use mcp_testkit::program::{ProgramOutput, Run, installed_folder};
use serde_json::Value;

/// The package in the locked version: npx uses the installed one.
const PACKAGE: &str = "@modelcontextprotocol/server-everything";

#[test]
fn hd_sc1_from_an_empty_folder_to_a_call_and_a_conversion() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let folder = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    // The cache of an earlier `npx`.
    symlink(&modules, folder.path().join("node_modules")).unwrap();
    let run = |line: &[&str]| -> ProgramOutput {
        let run = Run::new(folder.path(), state.path(), line);
        // The registry is not queried: a missing package is an error.
        run.env("npm_config_offline", "true").env("HOME", state.path()).finish()
    };
    let done = |line: &[&str]| -> ProgramOutput {
        let ran = run(line);
        assert_eq!(ran.code, Some(0), "{line:?}: {ran:#?}");
        ran
    };
    done(&["add", ".mcp.json", "everything", "--npm", PACKAGE]);
    assert_eq!(done(&["check"]).stdout, "✓ .mcp.json: mcp-json, 1 server\n");
    let doctor = done(&["doctor", ".", "--server", "everything"]).stdout;
    // On a busy machine it starts slowly, which is a warning.
    assert!(doctor.contains("everything") && doctor.contains("npx") && !doctor.contains('✗'), "{doctor}");
    let tools = done(&["tools", ".", "--format", "json"]).json();
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert!(names.contains(&"everything__echo"), "{names:?}");
    let call = done(&["call", ".", "everything__echo", "message=hello", "--format", "json"]).json();
    assert!(
        call["success"] == Value::Bool(true) && call["content"].to_string().contains("hello"),
        "{call:#}"
    );
    for (dialect, file, tool) in
        [("dominds", ".minds/mcp.yaml", "echo"), ("holodeck", "agent.yaml", "everything__echo")]
    {
        std::fs::create_dir_all(folder.path().join(".minds")).unwrap();
        done(&["convert", ".mcp.json", "--to", dialect, "--output", file]);
        done(&["check", file]);
        done(&["call", file, tool, "message=hello"]);
    }
}

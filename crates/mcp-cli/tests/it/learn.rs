//! `doctor --learn` with real servers of npm and PyPI.

#![cfg(target_os = "linux")]

use std::fs;

use mcp_testkit::program::installed_folder;

use crate::support::{Run, Workspace};

/// RPT-317
#[test]
fn rpt_317_real_servers_get_the_smallest_sandbox_in_which_they_start() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let Some(venv) = installed_folder("MCP_HOST_VENV") else { return };
    let workspace = Workspace::empty();
    let (project, data) = (workspace.path().join("project"), workspace.path().join("data"));
    fs::create_dir_all(&project).unwrap();
    fs::create_dir_all(&data).unwrap();
    let files = modules.join("@modelcontextprotocol/server-filesystem/dist/index.js");
    // A server that writes a log outside of its folder and reads a variable of the user.
    let log = data.join("log");
    workspace
        .script("logging", &format!("echo $TOKEN_OF_USER > {} && exec mcp-host demo-server", log.display()));
    workspace.script("mcp-host", &format!("exec {} \"$@\"", crate::support::PROGRAM));
    let servers = serde_json::json!({"mcpServers": {
        "files": {"command": "node", "args": [files, project]},
        "time": {"command": venv.join("bin/python"), "args": ["-m", "mcp_server_time"]},
        "logging": {"command": "logging"},
        "url": {"url": "http://127.0.0.1:1/mcp"},
    }});
    workspace.write("project/.mcp.json", &servers.to_string());
    let learned = |server: &str| {
        let command = ["doctor", ".", "--learn", "--format", "json", "--server", server];
        let run = Run::of(workspace.command(&command).current_dir(&project).output().unwrap());
        let document = run.json()["servers"][0].clone();
        let sandbox =
            document["sandbox"].as_str().map(|it| serde_json::from_str::<serde_json::Value>(it).unwrap());
        (sandbox, document)
    };
    let (time, document) = learned("time");
    if document["error"].as_str().is_some_and(|it| it.contains("Landlock")) {
        assert!(std::env::var_os("CI").is_none(), "{document}");
        return;
    }
    assert_eq!(time, Some(serde_json::json!("project")), "{document}");
    assert_eq!(document["is_smallest"], true, "{document}");
    let (files, document) = learned("files");
    let modules = fs::canonicalize(modules).unwrap();
    assert_eq!(files, Some(serde_json::json!({"preset": "project", "read": [modules]})), "{document}");
    let (logging, document) = learned("logging");
    let program = fs::canonicalize(crate::support::PROGRAM).unwrap();
    let logging = logging.unwrap();
    assert_eq!(logging["read"], serde_json::json!([program]), "{document}");
    assert_eq!(logging["write"], serde_json::json!(["~/data/log"]), "{document}");
    let (url, document) = learned("url");
    assert_eq!(
        (url, document["error"].as_str()),
        (None, Some("it is not started here, so it has no sandbox"))
    );
}

/// RPT-317
#[test]
fn rpt_317_learned_sandbox_is_written_by_the_suggested_command() {
    let workspace = Workspace::empty();
    let file = r#"{"mcpServers": {"demo": {"command": "mcp-host", "args": ["demo-server"]}}}"#;
    workspace.write("project/.mcp.json", file);
    let run = |arguments: &[&str]| {
        Run::of(workspace.command(arguments).current_dir(workspace.path().join("project")).output().unwrap())
    };
    let waiting = run(&["doctor", "--learn"]);
    assert!(waiting.out.contains("it is not approved"), "{waiting:?}");
    let learned = run(&["doctor", ".", "--learn"]);
    if learned.out.contains("Landlock") {
        assert!(std::env::var_os("CI").is_none(), "{learned:?}");
        return;
    }
    let command = learned.out.split("write it with: mcp-host ").nth(1).unwrap().trim();
    let words = mcp_testkit::program::split_command_line(command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let written = run(&words);
    assert_eq!(written.code, Some(0), "{written:?}");
    let text = fs::read_to_string(workspace.path().join("project/.mcp.json")).unwrap();
    assert!(text.contains("\"sandbox\""), "{text}");
    let doctor = run(&["doctor", "."]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
}

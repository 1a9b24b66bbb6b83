//! Real processes: their arguments, variables and folder, and that none remains.

use std::path::Path;

use mcp_host_acp_agent::SessionServers;
use mcp_testkit::process::{is_alive, wait_until_dead};
use mcp_testkit::servers::SHELL_SERVER;
use mcp_testkit::wait::wait_until;
use serde_json::{Value, json};

use crate::sessions::{process_options, summary, text_or_error, tool_call, validated};

/// An entry of a shell server that runs `before` first. Its tool returns a variable, an argument and the folder.
fn server(before: &str) -> Value {
    let env = json!([
        {"name": "KEY", "value": "a value"},
        {"name": "BEFORE", "value": before},
        {"name": "TOOL", "value": r#"text "$id" "$KEY $1 $(pwd)""#},
    ]);
    json!([{"name": "sh", "command": "/bin/sh", "args": ["-c", SHELL_SERVER, "sh", "an argument"], "env": env}])
}

/// A script that starts a child which does not end by itself, and writes the ids of the server and of the child.
fn id_script(folder: &Path) -> String {
    format!("sleep 1000 & echo $$ $! > {0}/part; mv {0}/part {0}/ids", folder.display())
}

/// Waits until the server has written the ids of the two processes, and returns them.
async fn read_ids(folder: &Path) -> Vec<u32> {
    let path = folder.join("ids");
    wait_until(|| path.exists()).await;
    let ids = std::fs::read_to_string(path).unwrap();
    let ids: Vec<u32> = ids.split_whitespace().map(|id| id.parse().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    ids
}

#[tokio::test]
async fn acp_017_acp_036_acp_047_child_gets_arguments_variables_and_folder() {
    let folder = std::env::temp_dir().canonicalize().unwrap();
    let mut validated = validated(&server(""));
    validated.cwd = folder.to_str().unwrap().to_owned();
    let session = SessionServers::connect(validated, process_options()).await.unwrap();
    let answer = text_or_error(&session.call(tool_call("t", "{}")).await);
    assert_eq!(answer, format!("a value an argument {}", std::env::temp_dir().display()));
}

#[tokio::test]
async fn acp_020_closed_session_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionServers::connect(validated(&server(&id_script(folder.path()))), process_options())
        .await
        .unwrap();
    assert_eq!(summary(&session), "sh:connected");
    let ids = read_ids(folder.path()).await;
    assert!(ids.iter().all(|id| is_alive(*id)));
    session.close().await;
    wait_until_dead(&ids);
}

#[tokio::test]
async fn acp_020_dropped_session_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionServers::connect(validated(&server(&id_script(folder.path()))), process_options())
        .await
        .unwrap();
    let ids = read_ids(folder.path()).await;
    drop(session);
    tokio::task::spawn_blocking(move || wait_until_dead(&ids)).await.unwrap();
}

#[tokio::test]
async fn acp_020_cancelled_setup_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    // It never responds, so the setup is cancelled while it waits.
    let silent = format!("{}; sleep 1000", id_script(folder.path()));
    let setting_up = tokio::spawn(SessionServers::connect(validated(&server(&silent)), process_options()));
    let ids = read_ids(folder.path()).await;
    setting_up.abort();
    assert!(setting_up.await.is_err_and(|it| it.is_cancelled()));
    tokio::task::spawn_blocking(move || wait_until_dead(&ids)).await.unwrap();
}

#[tokio::test]
async fn acpx_03_failed_setup_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = server(&id_script(folder.path()));
    let late = format!("while [ ! -e {}/ids ]; do sleep 0.01; done; exit 1", folder.path().display());
    let late = json!({"name": "late", "command": "/bin/sh", "args": ["-c", late], "env": []});
    entries.as_array_mut().unwrap().push(late);
    let mut options = process_options();
    options.required = mcp_host_acp_agent::RequiredServers::All;
    let error = SessionServers::connect(validated(&entries), options).await.err().unwrap();
    assert_eq!(error.to_string(), "MCP server 'late' exited with status 1 before the handshake");
    wait_until_dead(&read_ids(folder.path()).await);
}

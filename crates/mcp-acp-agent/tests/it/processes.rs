//! Real processes: what reaches them, and that none is left.

use std::path::Path;
use std::time::{Duration, Instant};

use mcp_acp_agent::SessionMcp;
use serde_json::{Value, json};

use crate::world::{real, seen, told, tool_call, validated};

/// A server in shell whose one tool says what it was started with. It begins with what `$BEFORE` says.
const SERVER: &str = r#"
eval "$BEFORE"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"initialize"'*) answer "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) answer "$id" '{"tools":[{"name":"tell","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) answer "$id" "{\"content\":[{\"type\":\"text\",\"text\":\"$KEY $1 $(pwd)\"}]}" ;;
  esac
done
"#;

fn server(before: &str) -> Value {
    let env = json!([{"name": "KEY", "value": "a value"}, {"name": "BEFORE", "value": before}]);
    json!([{"name": "sh", "command": "/bin/sh", "args": ["-c", SERVER, "sh", "an argument"], "env": env}])
}

/// Has the server write its own process id, and that of a child of its own, which does not end by itself.
fn writes_ids(folder: &Path) -> String {
    format!("sleep 1000 & echo $$ $! > {0}/part; mv {0}/part {0}/ids", folder.display())
}

/// Is there a process with this id that is not a zombie?
fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|it| it.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z')))
}

/// The processes that the server has told of, once it has.
async fn ids(folder: &Path) -> Vec<String> {
    let begun = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(folder.join("ids")) {
            return text.split_whitespace().map(str::to_owned).collect();
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "the server does not start");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[track_caller]
fn assert_die(pids: &[String]) {
    let begun = Instant::now();
    assert_eq!(pids.len(), 2);
    while let Some(pid) = pids.iter().find(|it| lives(it)) {
        assert!(begun.elapsed() < Duration::from_secs(10), "process {pid} is left");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn acp_017_acp_036_acp_047_arguments_variables_and_the_folder_reach_the_child() {
    let folder = std::env::temp_dir().canonicalize().unwrap();
    let mut validated = validated(&server(""));
    validated.cwd = folder.to_str().unwrap().to_owned();
    let session = SessionMcp::connect(validated, real()).await.unwrap();
    let answer = told(&session.call(tool_call("tell", "{}")).await);
    assert_eq!(answer, format!("a value an argument {}", std::env::temp_dir().display()));
}

#[tokio::test]
async fn acp_020_a_session_that_is_closed_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionMcp::connect(validated(&server(&writes_ids(folder.path()))), real()).await.unwrap();
    assert_eq!(seen(&session), "sh:connected");
    let ids = ids(folder.path()).await;
    assert!(ids.iter().all(|it| lives(it)));
    session.close().await;
    assert_die(&ids);
}

#[tokio::test]
async fn acp_020_a_session_that_is_dropped_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionMcp::connect(validated(&server(&writes_ids(folder.path()))), real()).await.unwrap();
    let ids = ids(folder.path()).await;
    drop(session);
    tokio::task::spawn_blocking(move || assert_die(&ids)).await.unwrap();
}

#[tokio::test]
async fn acp_020_a_set_up_that_is_cancelled_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    // It never answers: the set-up is in its midst when it is cancelled.
    let silent = format!("{}; sleep 1000", writes_ids(folder.path()));
    let setting_up = tokio::spawn(SessionMcp::connect(validated(&server(&silent)), real()));
    let ids = ids(folder.path()).await;
    setting_up.abort();
    assert!(setting_up.await.is_err_and(|it| it.is_cancelled()));
    tokio::task::spawn_blocking(move || assert_die(&ids)).await.unwrap();
}

#[tokio::test]
async fn acpx_03_a_set_up_that_fails_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = server(&writes_ids(folder.path()));
    let late = format!("while [ ! -e {}/ids ]; do sleep 0.01; done; exit 1", folder.path().display());
    let late = json!({"name": "late", "command": "/bin/sh", "args": ["-c", late], "env": []});
    entries.as_array_mut().unwrap().push(late);
    let mut options = real();
    options.required = mcp_acp_agent::RequiredServers::All;
    let error = SessionMcp::connect(validated(&entries), options).await.err().unwrap();
    assert_eq!(error.to_string(), "MCP server 'late' exited with status 1 before the handshake");
    assert_die(&ids(folder.path()).await);
}

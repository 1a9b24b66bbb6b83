//! Errors of servers that cannot be started, as the client receives them (ACPX-03, ACPX-04).

use std::time::Duration;

use mcp_host_acp_agent::SessionServers;
use serde_json::{Value, json};

use crate::sessions::{failure, options, process_options, session, validated};

/// Connects a session to this one server, and returns the error of the server.
async fn start_error(entry: Value, limit: Duration) -> String {
    let mut options = process_options();
    options.limits.startup = limit;
    let name = entry["name"].as_str().unwrap().to_owned();
    let session = SessionServers::connect(validated(&json!([entry])), options).await.unwrap();
    failure(&session, &name)
}

fn script(name: &str, text: &str) -> Value {
    json!({"name": name, "command": "/bin/sh", "args": ["-c", text],
        "env": [{"name": "KEY", "value": "hunter2-and-more"}]})
}

#[tokio::test]
async fn acpx_03_acpx_04_missing_program() {
    let entry = json!({"name": "files", "command": "/no/such/program", "args": [], "env": []});
    insta::assert_snapshot!(start_error(entry, Duration::from_secs(20)).await, @r#"
    {
      "code": -32603,
      "message": "MCP server 'files': executable not found",
      "data": {"serverName":"files","transportType":"stdio","command":"/no/such/program","suggestion":"install the program, or use its absolute path as the command"}
    }
    "#);
}

#[tokio::test]
async fn acpx_03_acpx_04_file_that_is_not_executable() {
    let entry = json!({"name": "files", "command": "/etc/passwd", "args": [], "env": []});
    insta::assert_snapshot!(start_error(entry, Duration::from_secs(20)).await, @r#"
    {
      "code": -32603,
      "message": "MCP server 'files' could not be started: /etc/passwd is not executable",
      "data": {"serverName":"files","transportType":"stdio","command":"/etc/passwd","error":"/etc/passwd is not executable","suggestion":"check that the file is a program and is executable"}
    }
    "#);
}

#[tokio::test]
async fn acpx_03_acpx_04_acpx_05_exit_before_the_handshake() {
    let entry = script("files", "echo no login with \"$KEY\" >&2; exit 3");
    insta::assert_snapshot!(start_error(entry, Duration::from_secs(20)).await, @r#"
    {
      "code": -32603,
      "message": "MCP server 'files' exited with status 3 before the handshake: no login with ***",
      "data": {"serverName":"files","transportType":"stdio","command":"/bin/sh","exitCode":3,"stderr":"no login with ***","suggestion":"run the command in a terminal; `stderr` is its error output"}
    }
    "#);
}

#[tokio::test]
async fn acpx_03_acpx_04_program_killed_by_a_signal() {
    let error = start_error(script("files", "kill -9 $$"), Duration::from_secs(20)).await;
    assert!(
        error.contains("was ended by a signal before the handshake") && !error.contains("exitCode"),
        "{error}"
    );
}

#[tokio::test]
async fn acpx_03_acpx_04_silent_program() {
    let entry = script("files", "echo waiting for a login >&2; while read -r line; do :; done");
    insta::assert_snapshot!(start_error(entry, Duration::from_secs(2)).await, @r#"
    {
      "code": -32603,
      "message": "MCP server 'files' did not respond within 2000 ms",
      "data": {"serverName":"files","transportType":"stdio","stderr":"waiting for a login","timeoutMs":2000,"suggestion":"check that the server is running, or use a longer timeout"}
    }
    "#);
}

#[tokio::test]
async fn acpx_03_acpx_04_refused_connection() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp?token=hunter2-and-more");
    let entry = json!({"type": "http", "name": "api", "url": url, "headers": []});
    let error = start_error(entry, Duration::from_secs(20)).await;
    assert!(error.contains("MCP server 'api': connection failed") && error.contains("-32603"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn acpx_03_acpx_04_rejected_authentication() {
    let session = session(&["locked"]).await;
    insta::assert_snapshot!(failure(&session, "locked"), @r#"
    {
      "code": -32603,
      "message": "MCP server 'locked': authentication failed: the server answered with status 401",
      "data": {"serverName":"locked","transportType":"http","error":"the server answered with status 401","suggestion":"check the server's headers"}
    }
    "#);
}

#[tokio::test(start_paused = true)]
async fn acpx_12_acp_server_without_a_connection_fails() {
    let servers = json!([{"type": "acp", "name": "editor", "serverId": "server-1"}]);
    let session = SessionServers::connect(validated(&servers), options()).await.unwrap();
    insta::assert_snapshot!(failure(&session, "editor"), @r#"
    {
      "code": -32603,
      "message": "MCP server 'editor': connection failed: this agent does not support the acp transport",
      "data": {"serverName":"editor","transportType":"acp","error":"this agent does not support the acp transport","suggestion":"check that the client still provides the server"}
    }
    "#);
    drop(session);
    let session = SessionServers::connect(validated(&json!([])), options()).await.unwrap();
    assert!(session.statuses().is_empty() && session.tools().is_empty());
}

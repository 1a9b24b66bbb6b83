//! Runs the example of the README as a user would: as a process that starts the demo server as another process.
//! The program of the example is also the demo server for a host in these tests.

use std::process::{Command, Stdio};

use mcp_host_model::{RawJson, TraceContext};
use mcp_host_runtime::{Host, HostOptions, LoadRequest, ToolCall, load};
use serde_json::Value;

use crate::fixture::text_or_error;

/// Returns the path of the example's program. Builds it, because a run of these tests alone builds no examples.
fn built() -> String {
    if let Ok(programs) = std::env::var("MCP_TEST_PROGRAMS") {
        return format!("{programs}/examples/agent");
    }
    // With the same features, nothing is compiled twice.
    let features = if cfg!(feature = "otel") { "otel" } else { "" };
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--package",
            "mcp-host-runtime",
            "--example",
            "agent",
            "--message-format=json",
        ])
        .args(["--features", features])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the example does not build");
    let lines = String::from_utf8(output.stdout).unwrap();
    let messages = lines.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let mut executables = messages.filter_map(|it| it["executable"].as_str().map(str::to_owned));
    executables.find(|path| path.contains("agent")).unwrap()
}

#[test]
fn example_agent_reloads_during_a_call_and_leases_an_instance_for_each_dialog() {
    let output = Command::new(built()).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "reloaded",
            r#"ada: old_sleep {"ms": 3000} -> slept 3000 ms in 1 step"#,
            r#"ada: new_add {"a": "two"} -> ValidationError: Invalid arguments for tool 'new_add': "b" is a required property; /a: value is not of type "integer""#,
            r#"ada: new_echo {"text": "hello"} -> hello"#,
            r#"ada: new_change_tools {"name": "note"} -> added note"#,
            r#"bob: new_change_tools {"name": "note"} -> added note"#,
            r#"ada: new_change_tools {"name": "note"} -> removed note"#,
            "leases: 2",
            r#"bob: new_change_tools {"name": "note"} -> removed note"#,
            r#"ada: new_change_tools {"name": "note"} -> added note"#,
            "bob: released demo: DialogEnded",
        ],
        "{text}"
    );
    let lines = include_str!("../../examples/agent.rs").lines().count();
    assert!(lines < 120, "{lines} lines");
}

#[cfg(unix)]
#[tokio::test]
async fn server_process_accepts_a_trace_context() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    // `tee` logs what the server reads.
    let script = format!("tee \"{}\" | \"{}\" demo-server", log.display(), built());
    let servers = serde_json::json!({"mcpServers": {"demo": {"command": "sh", "args": ["-c", script]}}});
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, servers.to_string()).unwrap();
    let host = Host::start(HostOptions::default());
    host.apply(load(&LoadRequest::new(file)).unwrap().into_desired().unwrap()).await;
    host.wait_until_ready().await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = TraceContext::parse(parent, Some("vendor=1")).ok();
    let arguments = RawJson::parse(r#"{"text":"hello"}"#.into()).unwrap();
    let mut call = ToolCall::new("echo", arguments);
    call.options.context.trace = trace;
    assert_eq!(text_or_error(&host.call(call).await), "hello");
    host.shutdown().await;
    let heard = std::fs::read_to_string(log).unwrap();
    let calls = heard.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    let call = calls.into_iter().find(|it| it["method"] == "tools/call").unwrap();
    let meta = &call["params"]["_meta"];
    assert_eq!((meta["traceparent"].as_str(), meta["tracestate"].as_str()), (Some(parent), Some("vendor=1")));
}

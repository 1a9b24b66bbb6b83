//! Every call ends with a result or an error that explains it.

use std::time::Duration;

use mcp_host_model::{RawJson, ServerId};
use mcp_host_runtime::ToolCall;
use mcp_testkit::servers::configured_server;
use serde_json::json;

use crate::fixture::{HostFixture, text_or_error};
use crate::scripted_server::ScriptedServer;

#[track_caller]
fn check(got: &mcp_host_model::CallResult, want: &str) {
    assert_eq!(text_or_error(got), want);
}

#[tokio::test(start_paused = true)]
async fn hd_085_to_hd_088_result_has_content_and_metadata() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["echo"]))]).await;
    let result = fixture.call("a__echo", r#"{"b": 1, "a": "é"}"#).await;
    check(&result, r#"{"b":1,"a":"é"}"#);
    let metadata = result.metadata;
    assert_eq!(metadata.server, Some(ServerId::parse("a").unwrap()));
    assert_eq!(metadata.tool, "echo");
    assert!(metadata.request_id.is_some());
    check(&fixture.call("echo", "{}").await, "{}");
}

#[tokio::test(start_paused = true)]
async fn hd_118_x_24_failed_tool_is_a_failed_result() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["fail", "mute"]))]).await;
    let result = fixture.call("fail", "{}").await;
    check(&result, "MCPToolError: no luck");
    assert_eq!(result.text(), "no luck");
    check(&fixture.call("mute", "{}").await, "MCPToolError: the tool failed without an error message");
}

#[tokio::test(start_paused = true)]
async fn hd_sc4_invalid_arguments_are_not_sent() {
    let peer = ScriptedServer::new(&[]);
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    *peer.tools.lock().unwrap() = vec![
        json!({"name": "t", "inputSchema": schema}),
        json!({"name": "odd", "inputSchema": {"type": "object", "properties": {"x": {"type": "sausage"}}}}),
    ];
    let fixture = HostFixture::running(&[("a", peer)]).await;
    check(
        &fixture.call("a__t", r#"{"n": "secret"}"#).await,
        "ValidationError: Invalid arguments for tool 'a__t': /n: value is not of type \"integer\"",
    );
    check(
        &fixture.call("a__t", "[1]").await,
        "ValidationError: Invalid arguments for tool 'a__t': they must be a JSON object",
    );
    assert_eq!(fixture.peer("a").count("tools/call"), 0);
    check(&fixture.call("a__t", r#"{"n": 1}"#).await, r#"{"n":1}"#);

    // An unusable schema does not prevent calls. It is published as a problem.
    check(&fixture.call("odd", r#"{"x": 1}"#).await, r#"{"x":1}"#);
    let mut published = fixture.host.subscribe();
    let problems = published.wait_for(|it| !it.problems.is_empty()).await.unwrap().problems.clone();
    assert_eq!(problems[0].problem.id, "mcp/server/a/tool_unvalidated/odd");
}

#[tokio::test(start_paused = true)]
async fn hd_119_call_ends_at_its_deadline() {
    let mut quick = configured_server("a");
    quick.spec.limits.request = Duration::from_secs(7);
    let fixture = HostFixture::new(&[("a", ScriptedServer::new(&["hang"]))]);
    fixture.apply(vec![quick]).await;
    fixture.host.wait_until_ready().await;
    let want = "MCPTimeoutError: server 'a' (npx): no response within 7 s (request less, or raise the request timeout)";
    check(&fixture.call("hang", "{}").await, want);

    let begun = tokio::time::Instant::now();
    let deadline = Some(Duration::from_millis(1500));
    let mut call = ToolCall::new("hang", RawJson::empty_object());
    call.options.deadline = deadline;
    check(&fixture.host.call(call).await, &want.replace("7 s", "1.5 s"));
    assert!(begun.elapsed() < Duration::from_secs(2));
    // The server received a cancellation both times.
    assert_eq!(fixture.peer("a").count("abandon"), 2);
}

#[tokio::test(start_paused = true)]
async fn lost_response_is_retried_only_if_safe() {
    let peer = ScriptedServer::new(&["vanish"]);
    let fixture = HostFixture::running(&[("a", peer)]).await;
    check(
        &fixture.call("vanish", "{}").await,
        "MCPOutcomeUnknownError: server 'a' (npx): the response was lost (the response broke off), and it is not known \
         whether the call ran (check whether the call took effect before repeating it)",
    );
    let peer = ScriptedServer::new(&[]);
    let hints = json!({"idempotentHint": true});
    *peer.tools.lock().unwrap() =
        vec![json!({"name": "vanish", "inputSchema": {"type": "object"}, "annotations": hints})];
    let fixture = HostFixture::running(&[("a", peer)]).await;
    check(&fixture.call("vanish", "{}").await, "{}");
    assert_eq!(fixture.peer("a").count("tools/call"), 2);
}

#[tokio::test(start_paused = true)]
async fn hd_117_server_exit_ends_its_calls() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["lost"]))]).await;
    let result = fixture.call("lost", "{}").await;
    let want = "MCPConnectionError: server 'a' (npx): the server is no longer available: its process ended with exit \
                status 3; its standard error ended with: out of memory; it is not known whether the call ran \
                (check its last output and its log; a crash is a bug of the server)";
    check(&result, want);

    // For a repeatable tool, the error does not mention that the call may have run.
    let peer = ScriptedServer::new(&[]);
    let hints = json!({"readOnlyHint": true});
    *peer.tools.lock().unwrap() =
        vec![json!({"name": "lost", "inputSchema": {"type": "object"}, "annotations": hints})];
    let fixture = HostFixture::running(&[("a", peer)]).await;
    let result = fixture.call("lost", "{}").await;
    check(&result, &want.replace("; it is not known whether the call ran", ""));
}

#[tokio::test(start_paused = true)]
async fn hd_133_result_over_the_limit_is_truncated() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["big"]))]).await;
    let text = fixture.call("big", "{}").await.text();
    assert!(text.starts_with("éééé"));
    assert!(text.ends_with("é\n[137856 more bytes of this text are left out]"), "{}", text.len());
}

#[tokio::test(start_paused = true)]
async fn hd_131_calls_are_concurrent_and_a_dropped_one_is_cancelled() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["slow", "hang", "echo"]))]).await;
    let (slow, ()) = tokio::join!(fixture.call("slow", "{}"), async {
        check(&fixture.call("echo", "{}").await, "{}");
        fixture.peer("a").release.notify_one();
    });
    check(&slow, "at last");
    let hang = tokio::time::timeout(Duration::from_secs(1), fixture.call("hang", "{}")).await;
    assert!(hang.is_err());
    check(&fixture.call("echo", "{}").await, "{}");
    assert_eq!(fixture.peer("a").count("abandon"), 1);
}

#[tokio::test(start_paused = true)]
async fn tool_can_be_called_by_server_and_original_name() {
    let fixture =
        HostFixture::running(&[("a", ScriptedServer::new(&["echo"])), ("b", ScriptedServer::new(&["echo"]))])
            .await;
    let of = |server: &str| {
        let mut call = ToolCall::new("echo", RawJson::empty_object());
        call.options.server = Some(ServerId::parse(server).unwrap());
        call
    };
    for id in ["a", "b"] {
        let result = fixture.host.call(of(id)).await;
        assert_eq!(result.metadata.server.unwrap().as_str(), id);
    }
    let missing = fixture.host.call(of("c")).await;
    check(&missing, "MCPToolNotFoundError: Tool 'echo' not found: there is no server 'c'");
    assert_eq!(missing.metadata.tool, "echo");
}

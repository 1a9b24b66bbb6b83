//! Every call ends with a result or an error that explains it.

use std::time::Duration;

use mcp_host::ToolCall;
use mcp_model::{RawJson, ServerId};
use serde_json::json;

use crate::peer::Peer;
use crate::world::{World, server, told};

#[track_caller]
fn check(got: &mcp_model::CallResult, want: &str) {
    assert_eq!(told(got), want);
}

#[tokio::test(start_paused = true)]
async fn hd_085_to_hd_088_a_call_brings_content_and_circumstances() {
    let world = World::running(&[("a", Peer::new(&["echo"]))]).await;
    let result = world.call("a__echo", r#"{"b": 1, "a": "é"}"#).await;
    check(&result, r#"{"b":1,"a":"é"}"#);
    let metadata = result.metadata;
    assert_eq!(metadata.server, Some(ServerId::parse("a").unwrap()));
    assert_eq!(metadata.tool, "echo");
    assert!(metadata.request_id.is_some());
    check(&world.call("echo", "{}").await, "{}");
}

#[tokio::test(start_paused = true)]
async fn hd_118_x_24_a_tool_that_fails_is_a_failure() {
    let world = World::running(&[("a", Peer::new(&["fail", "mute"]))]).await;
    let result = world.call("fail", "{}").await;
    check(&result, "MCPToolError: no luck");
    assert_eq!(result.text(), "no luck");
    check(&world.call("mute", "{}").await, "MCPToolError: the tool failed without an error message");
}

#[tokio::test(start_paused = true)]
async fn hd_sc4_wrong_arguments_are_never_sent() {
    let peer = Peer::new(&[]);
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    *peer.tools.lock().unwrap() = vec![
        json!({"name": "t", "inputSchema": schema}),
        json!({"name": "odd", "inputSchema": {"type": "object", "properties": {"x": {"type": "sausage"}}}}),
    ];
    let world = World::running(&[("a", peer)]).await;
    check(
        &world.call("a__t", r#"{"n": "secret"}"#).await,
        "ValidationError: Invalid arguments for tool 'a__t': /n: value is not of type \"integer\"",
    );
    check(
        &world.call("a__t", "[1]").await,
        "ValidationError: Invalid arguments for tool 'a__t': they must be a JSON object",
    );
    assert_eq!(world.peer("a").count("tools/call"), 0);
    check(&world.call("a__t", r#"{"n": 1}"#).await, r#"{"n":1}"#);

    // An unusable schema does not prevent calls. It is published as a problem.
    check(&world.call("odd", r#"{"x": 1}"#).await, r#"{"x":1}"#);
    let mut published = world.host.subscribe();
    let problems = published.wait_for(|it| !it.problems.is_empty()).await.unwrap().problems.clone();
    assert_eq!(problems[0].problem.id, "mcp/server/a/tool_unvalidated/odd");
}

#[tokio::test(start_paused = true)]
async fn hd_119_a_call_has_a_deadline() {
    let mut quick = server("a");
    quick.spec.limits.request = Duration::from_secs(7);
    let world = World::new(&[("a", Peer::new(&["hang"]))]);
    world.apply(vec![quick]).await;
    world.host.ready().await;
    let want = "MCPTimeoutError: server 'a' (npx): no response within 7 s (request less, or raise the request timeout)";
    check(&world.call("hang", "{}").await, want);

    let begun = tokio::time::Instant::now();
    let deadline = Some(Duration::from_millis(1500));
    let call = ToolCall { deadline, ..ToolCall::new("hang", RawJson::empty_object()) };
    check(&world.host.call(call).await, &want.replace("7 s", "1.5 s"));
    assert!(begun.elapsed() < Duration::from_secs(2));
    // The server received a cancellation both times.
    assert_eq!(world.peer("a").count("abandon"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again_only_where_that_is_safe() {
    let peer = Peer::new(&["vanish"]);
    let world = World::running(&[("a", peer)]).await;
    check(
        &world.call("vanish", "{}").await,
        "MCPOutcomeUnknownError: server 'a' (npx): the response was lost (the response broke off), and it is not known \
         whether the call ran (check whether the call took effect before repeating it)",
    );
    let peer = Peer::new(&[]);
    let hints = json!({"idempotentHint": true});
    *peer.tools.lock().unwrap() =
        vec![json!({"name": "vanish", "inputSchema": {"type": "object"}, "annotations": hints})];
    let world = World::running(&[("a", peer)]).await;
    check(&world.call("vanish", "{}").await, "{}");
    assert_eq!(world.peer("a").count("tools/call"), 2);
}

#[tokio::test(start_paused = true)]
async fn hd_117_a_server_that_dies_during_a_call_ends_it() {
    let world = World::running(&[("a", Peer::new(&["lost"]))]).await;
    let result = world.call("lost", "{}").await;
    let want = "MCPConnectionError: server 'a' (npx): the server is no longer available: its process ended with exit \
                status 3; its standard error ended with: out of memory; it is not known whether the call ran \
                (check its last output and its log; a crash is a bug of the server)";
    check(&result, want);

    // For a repeatable tool, the error does not mention that the call may have run.
    let peer = Peer::new(&[]);
    let hints = json!({"readOnlyHint": true});
    *peer.tools.lock().unwrap() =
        vec![json!({"name": "lost", "inputSchema": {"type": "object"}, "annotations": hints})];
    let world = World::running(&[("a", peer)]).await;
    let result = world.call("lost", "{}").await;
    check(&result, &want.replace("; it is not known whether the call ran", ""));
}

#[tokio::test(start_paused = true)]
async fn hd_133_a_result_past_the_budget_is_cut() {
    let world = World::running(&[("a", Peer::new(&["big"]))]).await;
    let text = world.call("big", "{}").await.text();
    assert!(text.starts_with("éééé"));
    assert!(text.ends_with("é\n[137856 more bytes of this text are left out]"), "{}", text.len());
}

#[tokio::test(start_paused = true)]
async fn hd_131_calls_go_side_by_side_and_a_dropped_one_is_cancelled() {
    let world = World::running(&[("a", Peer::new(&["slow", "hang", "echo"]))]).await;
    let (slow, ()) = tokio::join!(world.call("slow", "{}"), async {
        check(&world.call("echo", "{}").await, "{}");
        world.peer("a").release.notify_one();
    });
    check(&slow, "at last");
    let hang = tokio::time::timeout(Duration::from_secs(1), world.call("hang", "{}")).await;
    assert!(hang.is_err());
    check(&world.call("echo", "{}").await, "{}");
    assert_eq!(world.peer("a").count("abandon"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_be_asked_for_by_its_server() {
    let world = World::running(&[("a", Peer::new(&["echo"])), ("b", Peer::new(&["echo"]))]).await;
    let of = |server: &str| ToolCall {
        server: Some(ServerId::parse(server).unwrap()),
        ..ToolCall::new("echo", RawJson::empty_object())
    };
    for id in ["a", "b"] {
        let result = world.host.call(of(id)).await;
        assert_eq!(result.metadata.server.unwrap().as_str(), id);
    }
    let missing = world.host.call(of("c")).await;
    check(&missing, "MCPToolNotFoundError: Tool 'echo' not found: there is no server 'c'");
    assert_eq!(missing.metadata.tool, "echo");
}

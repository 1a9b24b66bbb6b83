//! What the stream brings, in whatever form.

use mcp_testkit::wait::wait_until;

use super::*;

/// The answer to a call, or why there is none, where its event is made like this.
async fn answered(event: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> String {
    let peer = Peer::start(move |request| legacy(request, &event)).await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    call(&session).await.unwrap_or_else(|error| error.to_string())
}

#[tokio::test]
async fn response_is_read_in_every_valid_event_form() {
    let crlf = |request: &ReceivedRequest| taken().push(tool_result(request, "hello").replace('\n', "\r\n"));
    assert_eq!(answered(crlf).await, "hello");
    let lines = |request: &ReceivedRequest| {
        let pretty = serde_json::to_string_pretty(&json!({
            "jsonrpc": "2.0", "id": request.rpc()["id"], "result": {"content": [{"type": "text", "text": "hello"}]},
        }));
        taken().push(format!("data: {}\n\n", pretty.unwrap().replace('\n', "\ndata: ")))
    };
    assert_eq!(answered(lines).await, "hello");
    let pieces = |request: &ReceivedRequest| {
        let event = tool_result(request, "hello");
        event.split_inclusive(':').fold(taken(), Reply::push)
    };
    assert_eq!(answered(pieces).await, "hello");
    let unnamed = |request: &ReceivedRequest| {
        taken().push(tool_result(request, "hello").replace("event: message\n", "id: 1\nretry: 10\n"))
    };
    assert_eq!(answered(unnamed).await, "hello");
    let among = |request: &ReceivedRequest| {
        taken()
            .push(": comment\n\nevent: other\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\ndata: no json\n\n")
            .push(tool_result(request, "hello"))
    };
    assert_eq!(answered(among).await, "hello");
    let last = |request: &ReceivedRequest| taken().push(tool_result(request, "hello").trim_end()).ending();
    assert_eq!(answered(last).await, "hello", "an end without the empty line");
}

#[tokio::test]
async fn end_of_the_stream_ends_the_connection() {
    let lost = |why: &str| format!("the server is no longer available: {why}");
    assert_eq!(answered(|_| taken().ending()).await, lost("it closed the connection"));
    let cut = |request: &ReceivedRequest| taken().push(&tool_result(request, "hello")[..40]).ending();
    assert_eq!(answered(cut).await, lost("it closed the connection"));
    // A process that exits does not end the body.
    assert_eq!(answered(|_| taken().breaking()).await, lost("it closed the connection"));
}

#[tokio::test]
async fn hd_122_silent_stream_ends_the_connection() {
    let peer = Peer::start(|request| legacy(request, |_| taken())).await;
    let mut limits = Limits::default();
    limits.sse_read = Duration::from_millis(500);
    let session =
        TestClient { limits: Some(limits), ..TestClient::legacy() }.connect(&peer.url).await.unwrap();
    assert_eq!(session.closed().await.to_string(), "nothing was received on the stream for 0.5 s");
    wait_until(|| peer.streams() == 0).await;
    assert_eq!(peer.count("GET"), 1, "no stream is taken up again");
}

#[tokio::test]
async fn too_large_message_fails_its_call_only() {
    let peer = Peer::start(|request| {
        legacy(request, |request| {
            let size = if request.rpc()["params"]["name"] == "large" { 10 << 20 } else { 12 << 20 };
            taken().push(tool_result(request, &"x".repeat(size)))
        })
    })
    .await;
    let mut limits = Limits::default();
    limits.message_bytes = 11 << 20;
    let session =
        TestClient { limits: Some(limits), ..TestClient::legacy() }.connect(&peer.url).await.unwrap();
    let empty = RawJson::empty_object();
    let large = session.call_tool("large", &empty, CallOptions::default()).await.unwrap();
    assert_eq!(large.value.text().len(), 10 << 20);
    let error = session.call_tool("larger", &empty, CallOptions::default()).await.unwrap_err();
    let want = "the server's response exceeds the message size limit of 11534336 bytes";
    assert_eq!(error.to_string(), want);
    assert!(session.counters().noise_bytes > 12 << 20, "it is counted");
    let large = session.call_tool("large", &empty, CallOptions::default()).await.unwrap();
    assert_eq!(large.value.text().len(), 10 << 20);
}

#[tokio::test]
async fn server_requests_and_notifications_are_handled() {
    let peer = Peer::start(|request| {
        legacy(request, |request| match request.rpc()["method"].as_str() {
            Some("tools/call") => taken()
                .push(message(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})))
                .push(message(&json!({"jsonrpc": "2.0", "id": "p-1", "method": "ping"})))
                .push(tool_result(request, "hello")),
            _ => taken(),
        })
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let mut changes = session.list_changes();
    assert_eq!(call(&session).await.unwrap(), "hello");
    changes.wait_for(|it| it.tools == 1).await.unwrap();
    wait_until(|| peer.received().iter().any(|request| request.rpc()["id"] == "p-1")).await;
    let pong = peer.received().into_iter().find(|request| request.rpc()["id"] == "p-1").unwrap();
    assert_eq!(pong.rpc()["result"], json!({}));
}

#[tokio::test]
async fn noise_is_counted_and_ignored() {
    let peer = Peer::start(|request| {
        legacy(request, |request| taken().push("data: hello?\n\n").push(tool_result(request, "hello")))
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
    assert_eq!(session.counters().noise_bytes, 6);
}

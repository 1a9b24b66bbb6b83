//! Leased servers: clients never share their state, and leases end with their client.

use std::time::Duration;

use mcp_host_gateway::{Bounds, ClientCounts};
use mcp_testkit::wait::wait_until;

use crate::support::TestGateway;

/// Toggles a tool at the server and returns its state.
async fn toggle(fixture: &TestGateway, server: &str, session: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{server}__change_tools","arguments":{{"name":"x"}}}}}}"#
    );
    let reply = fixture.post(&[("mcp-session-id", session)], &body).await;
    reply.json()["result"]["content"][0]["text"].as_str().unwrap_or("?").to_owned()
}

#[tokio::test]
async fn dm_074_sessions_share_shared_servers_only() {
    let fixture = TestGateway::new().await;
    let before = fixture.servers.demo.open();
    let (one, other) = (fixture.initialize(&[]).await, fixture.initialize(&[]).await);
    let first = toggle(&fixture, "own", &one).await;
    assert_eq!(toggle(&fixture, "own", &other).await, first);
    assert_ne!(toggle(&fixture, "own", &one).await, first);
    assert_eq!(fixture.servers.demo.open(), before + 2);
    let shared = toggle(&fixture, "demo", &one).await;
    assert_ne!(toggle(&fixture, "demo", &other).await, shared);

    let ended = fixture.http("DELETE", "/mcp", &[("mcp-session-id", &one)], "").await;
    assert_eq!(ended.status, 204);
    wait_until(|| fixture.servers.demo.open() == before + 1).await;
    assert_eq!(fixture.http("DELETE", "/mcp", &[("mcp-session-id", &one)], "").await.status, 404);
    fixture.end().await;
}

#[tokio::test]
async fn client_without_session_has_a_dialog_for_its_name_token_or_connection() {
    let fixture = TestGateway::new().await;
    let before = fixture.servers.demo.open();
    let list = fixture.modern("tools/list", None, "").await;
    assert!(list.body.contains("demo__echo") && list.body.contains("own__echo"));
    // Each of these connections ends with its response, and its dialog with it.
    let arguments = r#""name":"own__echo","arguments":{"text":"a"}"#;
    let reply = fixture.modern("tools/call", Some("own__echo"), arguments).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "a", "{reply:?}");
    wait_until(|| {
        fixture.gateway.client_counts() == ClientCounts::default() && fixture.servers.demo.open() == before
    })
    .await;
    // A call of a shared server begins no dialog.
    fixture.modern("tools/call", Some("demo__echo"), &arguments.replace("own", "demo")).await;
    assert_eq!(fixture.servers.demo.open(), before);

    let named = r#""name":"own__change_tools","arguments":{"name":"x"}"#;
    let (mut headers, body) = crate::support::modern("tools/call", Some("own__change_tools"), named);
    let mut texts = Vec::new();
    for dialog in ["a", "b", "a"] {
        headers.retain(|it| it.0 != "mcp-host-dialog");
        headers.push(("mcp-host-dialog", dialog.to_owned()));
        let all: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
        let reply = fixture.post(&all, &body).await;
        texts.push(reply.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned());
    }
    assert!(texts[0] == texts[1] && texts[0] != texts[2], "{texts:?}");
    let clients = fixture.gateway.client_counts();
    assert_eq!((clients.sessions, clients.dialogs), (0, 2));
    fixture.end().await;
}

#[tokio::test]
async fn unused_sessions_and_dialogs_end() {
    let mut bounds = Bounds::default();
    bounds.idle_timeout = Duration::from_millis(200);
    let fixture = TestGateway::bounded(bounds).await;
    let before = fixture.servers.demo.open();
    let session = fixture.initialize(&[]).await;
    toggle(&fixture, "own", &session).await;
    wait_until(|| fixture.gateway.client_counts().sessions == 0).await;
    wait_until(|| fixture.servers.demo.open() == before).await;
    assert_eq!(
        fixture
            .post(&[("mcp-session-id", &session)], r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)
            .await
            .status,
        404
    );
    fixture.end().await;
}

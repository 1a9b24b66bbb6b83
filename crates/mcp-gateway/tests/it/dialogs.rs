//! Leased servers: clients never share their state, and leases end with their client.

use std::time::Duration;

use mcp_gateway::Bounds;

use crate::support::{TestGateway, until};

/// Toggles a tool at the server and returns its state.
async fn toggle(world: &TestGateway, server: &str, session: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{server}__change_tools","arguments":{{"name":"x"}}}}}}"#
    );
    let reply = world.post(&[("mcp-session-id", session)], &body).await;
    reply.json()["result"]["content"][0]["text"].as_str().unwrap_or("?").to_owned()
}

#[tokio::test]
async fn dm_074_two_sessions_never_share_what_is_leased_and_share_what_is_shared() {
    let world = TestGateway::new().await;
    let before = world.site.open();
    let (one, other) = (world.initialize(&[]).await, world.initialize(&[]).await);
    let first = toggle(&world, "own", &one).await;
    assert_eq!(toggle(&world, "own", &other).await, first);
    assert_ne!(toggle(&world, "own", &one).await, first);
    assert_eq!(world.site.open(), before + 2);
    let shared = toggle(&world, "demo", &one).await;
    assert_ne!(toggle(&world, "demo", &other).await, shared);

    let ended = world.http("DELETE", "/mcp", &[("mcp-session-id", &one)], "").await;
    assert_eq!(ended.status, 204);
    until("its instance goes with its session", || world.site.open() == before + 1).await;
    assert_eq!(world.http("DELETE", "/mcp", &[("mcp-session-id", &one)], "").await.status, 404);
    world.end().await;
}

#[tokio::test]
async fn without_dialog_only_shared_servers_are_listed() {
    let world = TestGateway::new().await;
    let list = world.modern("tools/list", None, "").await;
    assert!(list.body.contains("demo__echo") && !list.body.contains("own__echo"));
    let arguments = r#""name":"own__echo","arguments":{"text":"a"}"#;
    let refused = world.modern("tools/call", Some("own__echo"), arguments).await;
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("Mcp-Host-Dialog"), "{refused:?}");

    let named = r#""name":"own__change_tools","arguments":{"name":"x"}"#;
    let (mut headers, body) = crate::support::modern("tools/call", Some("own__change_tools"), named);
    let mut texts = Vec::new();
    for dialog in ["a", "b", "a"] {
        headers.retain(|it| it.0 != "mcp-host-dialog");
        headers.push(("mcp-host-dialog", dialog.to_owned()));
        let all: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
        let reply = world.post(&all, &body).await;
        texts.push(reply.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned());
    }
    assert!(texts[0] == texts[1] && texts[0] != texts[2], "{texts:?}");
    assert_eq!(world.gateway.clients(), (0, 2));
    world.end().await;
}

#[tokio::test]
async fn unused_sessions_and_dialogs_end() {
    let bounds = Bounds { idle_timeout: Duration::from_millis(200), ..Bounds::default() };
    let world = TestGateway::bounded(bounds).await;
    let before = world.site.open();
    let session = world.initialize(&[]).await;
    toggle(&world, "own", &session).await;
    until("the session ends by itself", || world.gateway.clients().0 == 0).await;
    until("and its instance with it", || world.site.open() == before).await;
    assert_eq!(
        world
            .post(&[("mcp-session-id", &session)], r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)
            .await
            .status,
        404
    );
    world.end().await;
}

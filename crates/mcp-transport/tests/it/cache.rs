//! Results are cached for the time that the server allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_host_model::{CacheScope, RawJson};
use mcp_host_transport::{CallOptions, SessionOptions};
use serde_json::{Value, json};

use crate::in_memory::{Reply, Server, answer};

/// A server with a resource and two pages of tools. `lives` has the lifetime of each page in milliseconds. The
/// tool `change` announces a change of the tool list; any other tool announces an update of the resource.
fn server(lives: [u64; 2]) -> (Server, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let server = Server::modern(json!({"tools": {}, "resources": {}}), move |message| {
        let tool = |name: &str| json!({"name": name, "inputSchema": {}});
        let changed = |method: &str, params: Value| {
            let mut replies =
                vec![Reply::Send(json!({"jsonrpc": "2.0", "method": method, "params": params}))];
            replies.extend(answer(message, json!({"content": []})));
            replies
        };
        match (message["method"].as_str(), message["params"]["cursor"].as_str()) {
            (Some("tools/list"), None) => {
                count.fetch_add(1, Ordering::SeqCst);
                let page = json!({"tools": [tool("a")], "nextCursor": "2", "ttlMs": lives[0], "cacheScope": "public"});
                answer(message, page)
            }
            (Some("tools/list"), Some(_)) => {
                answer(message, json!({"tools": [tool("b")], "ttlMs": lives[1], "cacheScope": "private"}))
            }
            (Some("resources/read"), _) => {
                count.fetch_add(1, Ordering::SeqCst);
                let uri = &message["params"]["uri"];
                answer(message, json!({"contents": [{"uri": uri, "text": "x"}], "ttlMs": lives[0]}))
            }
            (Some("tools/call"), _) => match message["params"]["name"].as_str() {
                Some("change") => changed("notifications/tools/list_changed", json!({})),
                _ => changed("notifications/resources/updated", json!({"uri": "a:b"})),
            },
            _ => vec![],
        }
    });
    (server, asked)
}

async fn advance(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

#[tokio::test(start_paused = true)]
async fn fresh_list_is_not_requested_again() {
    let (server, asked) = server([5000, 2000]);
    let session = server.connect(SessionOptions::default()).await;
    let listing = session.list_tools().await.unwrap();
    assert_eq!(listing.freshness.ttl, Duration::from_secs(2), "the first page to end ends the list");
    assert_eq!(listing.freshness.scope, CacheScope::Private);
    advance(1999).await;
    assert_eq!(session.list_tools().await.unwrap(), listing);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    advance(2).await;
    session.list_tools().await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    // Another session with the same server does not share the cache.
    server.connect(SessionOptions::default()).await.list_tools().await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn announced_change_invalidates_the_list() {
    let (server, asked) = server([5000, 5000]);
    let session = server.connect(SessionOptions::default()).await;
    session.list_tools().await.unwrap();
    session.call_tool("change", &RawJson::empty_object(), CallOptions::default()).await.unwrap();
    session.list_changes().wait_for(|it| it.tools == 1).await.unwrap();
    session.list_tools().await.unwrap();
    session.list_tools().await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn list_without_ttl_is_requested_each_time() {
    let (server, asked) = server([5000, 0]);
    let session = server.connect(SessionOptions::default()).await;
    session.list_tools().await.unwrap();
    session.list_tools().await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn fresh_resource_is_read_once_until_it_changes() {
    let (server, asked) = server([5000, 0]);
    let session = server.connect(SessionOptions::default()).await;
    let read = async |uri: &str| {
        session.read_resource(uri, CallOptions::default()).await.unwrap();
        asked.load(Ordering::SeqCst)
    };
    assert_eq!((read("a:b").await, read("a:b").await, read("a:c").await), (1, 1, 2));
    session.call_tool("update", &RawJson::empty_object(), CallOptions::default()).await.unwrap();
    advance(1).await;
    assert_eq!((read("a:c").await, read("a:b").await, read("a:b").await), (2, 3, 3));
    advance(5000).await;
    assert_eq!(read("a:b").await, 4);
}

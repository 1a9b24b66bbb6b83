//! Shutdown: no instance, process or lease remains.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::RawJson;
use mcp_host_runtime::{DialogId, ToolCall};
use mcp_testkit::servers::configured_server;
use tokio::task::JoinSet;

use crate::fixture::{HostFixture, text_or_error};
use crate::leases::leased;
use crate::scripted_server::{ScriptedServer, StartBehavior};

#[tokio::test(start_paused = true)]
async fn hd_fr024_running_calls_complete_and_new_ones_are_refused() {
    let fixture =
        HostFixture::running(&[("a", ScriptedServer::new(&["slow"])), ("b", ScriptedServer::new(&["t"]))])
            .await;
    let slow = fixture.call("slow", "{}");
    let rest = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        tokio::join!(fixture.host.shutdown(), async {
            fixture.wait_for_summary("a:stopped b:stopped |").await;
            let refused = text_or_error(&fixture.call("b__t", "{}").await);
            assert_eq!(refused, "MCPConnectionError: the host was shut down");
            fixture.peer("a").release.notify_one();
        });
        assert_eq!((fixture.peer("a").open(), fixture.peer("b").open()), (0, 0));
    };
    let (slow, ()) = tokio::join!(slow, rest);
    assert_eq!(text_or_error(&slow), "at last");
}

#[tokio::test(start_paused = true)]
async fn hd_fr024_servers_are_stopped_concurrently() {
    let fixture =
        HostFixture::running(&[("a", ScriptedServer::new(&["hang"])), ("b", ScriptedServer::new(&["hang"]))])
            .await;
    let begun = tokio::time::Instant::now();
    let calls = async { tokio::join!(fixture.call("a__hang", "{}"), fixture.call("b__hang", "{}")) };
    let ((first, second), ()) = tokio::join!(calls, async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        fixture.host.shutdown().await;
    });
    assert!(!first.success && !second.success);
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    assert_eq!((fixture.peer("a").open(), fixture.peer("b").open()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn hd_fr024_leases_are_stopped_concurrently() {
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let peers = ids.map(|it| (it, ScriptedServer::new(&["t", "hang"])));
    let fixture = HostFixture::new(&peers);
    // Half of the servers are shared, half are leased.
    let servers =
        ids.iter().enumerate().map(|(at, it)| if at % 2 == 0 { configured_server(it) } else { leased(it) });
    fixture.apply(servers.collect()).await;
    fixture.host.wait_until_ready().await;
    let dialog = fixture.host.dialog(DialogId::new("d"));
    let turn = Arc::new(dialog.pin());
    let call = |name: &str| ToolCall::new(name, RawJson::empty_object());
    let mut hanging = JoinSet::new();
    for id in ids {
        assert!(turn.call(call(&format!("{id}__t"))).await.success);
        let (turn, hang) = (Arc::clone(&turn), call(&format!("{id}__hang")));
        hanging.spawn(async move { turn.call(hang).await });
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(ids.iter().all(|it| fixture.peer(it).open() == 1 && fixture.peer(it).count("tools/call") == 2));

    let begun = tokio::time::Instant::now();
    fixture.host.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    // A turn or dialog that still exists keeps no instance alive.
    assert!(ids.iter().all(|it| fixture.peer(it).open() == 0) && fixture.host.leases().is_empty());
    while let Some(ended) = hanging.join_next().await {
        assert!(!ended.unwrap().success);
    }
    assert_eq!(text_or_error(&dialog.call(call("b__t")).await), "MCPConnectionError: the host was shut down");
    assert!(text_or_error(&turn.call(call("a__t")).await).starts_with("MCPConnectionError: Replaced: "));
}

#[tokio::test(start_paused = true)]
async fn shutdown_may_be_requested_repeatedly_at_any_time() {
    let fixture = HostFixture::new(&[("a", ScriptedServer::starting(StartBehavior::Silent))]);
    fixture.apply(vec![configured_server("a")]).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    tokio::join!(fixture.host.shutdown(), fixture.host.shutdown(), fixture.host.wait_until_ready());
    // The pending start is aborted too.
    assert_eq!((fixture.peer("a").count("connect"), fixture.peer("a").open()), (1, 0));
    fixture.host.shutdown().await;
    fixture.apply(vec![configured_server("a")]).await;
    fixture.host.wait_until_ready().await;
    assert_eq!(fixture.summary(), "a:stopped |");
    assert_eq!((fixture.peer("a").count("connect"), fixture.peer("a").open()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn dropped_host_stops_its_servers() {
    let peer = ScriptedServer::new(&["t"]);
    let fixture = HostFixture::running(&[("a", peer.clone())]).await;
    assert_eq!(peer.open(), 1);
    drop(fixture);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(peer.open(), 0);
}

//! Shutdown: no instance, process or lease remains.

use std::sync::Arc;
use std::time::Duration;

use mcp_host::{DialogId, ToolCall};
use mcp_model::RawJson;
use tokio::task::JoinSet;

use crate::leasing::leased;
use crate::peer::{Beginning, Peer};
use crate::world::{World, server, told};

#[tokio::test(start_paused = true)]
async fn hd_fr024_calls_in_flight_end_well_and_new_ones_are_refused() {
    let world = World::running(&[("a", Peer::new(&["slow"])), ("b", Peer::new(&["t"]))]).await;
    let slow = world.call("slow", "{}");
    let rest = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        tokio::join!(world.host.shutdown(), async {
            world.until("a:stopped b:stopped |").await;
            let refused = told(&world.call("b__t", "{}").await);
            assert_eq!(refused, "MCPConnectionError: the host was shut down");
            world.peer("a").release.notify_one();
        });
        assert_eq!((world.peer("a").open(), world.peer("b").open()), (0, 0));
    };
    let (slow, ()) = tokio::join!(slow, rest);
    assert_eq!(told(&slow), "at last");
}

#[tokio::test(start_paused = true)]
async fn hd_fr024_servers_that_do_not_end_are_waited_for_beside_each_other() {
    let world = World::running(&[("a", Peer::new(&["hang"])), ("b", Peer::new(&["hang"]))]).await;
    let begun = tokio::time::Instant::now();
    let calls = async { tokio::join!(world.call("a__hang", "{}"), world.call("b__hang", "{}")) };
    let ((first, second), ()) = tokio::join!(calls, async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        world.host.shutdown().await;
    });
    assert!(!first.success && !second.success);
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    assert_eq!((world.peer("a").open(), world.peer("b").open()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn hd_fr024_what_dialogs_and_turns_hold_goes_beside_each_other_as_well() {
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let peers = ids.map(|it| (it, Peer::new(&["t", "hang"])));
    let world = World::new(&peers);
    // Half of the servers are shared, half are leased.
    let servers = ids.iter().enumerate().map(|(at, it)| if at % 2 == 0 { server(it) } else { leased(it) });
    world.apply(servers.collect()).await;
    world.host.ready().await;
    let dialog = world.host.dialog(DialogId::new("d"));
    let turn = Arc::new(dialog.pin());
    let call = |name: &str| ToolCall::new(name, RawJson::empty_object());
    let mut hanging = JoinSet::new();
    for id in ids {
        assert!(turn.call(call(&format!("{id}__t"))).await.success);
        let (turn, hang) = (Arc::clone(&turn), call(&format!("{id}__hang")));
        hanging.spawn(async move { turn.call(hang).await });
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(ids.iter().all(|it| world.peer(it).open() == 1 && world.peer(it).count("tools/call") == 2));

    let begun = tokio::time::Instant::now();
    world.host.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    // A turn or dialog that still exists keeps no instance alive.
    assert!(ids.iter().all(|it| world.peer(it).open() == 0) && world.host.leases().is_empty());
    while let Some(ended) = hanging.join_next().await {
        assert!(!ended.unwrap().success);
    }
    assert_eq!(told(&dialog.call(call("b__t")).await), "MCPConnectionError: the host was shut down");
    assert!(told(&turn.call(call("a__t")).await).starts_with("MCPConnectionError: Replaced: "));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_may_be_asked_for_at_any_time_and_by_many() {
    let world = World::new(&[("a", Peer::beginning(Beginning::Silent))]);
    world.apply(vec![server("a")]).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    tokio::join!(world.host.shutdown(), world.host.shutdown(), world.host.ready());
    // The pending start is aborted too.
    assert_eq!((world.peer("a").count("connect"), world.peer("a").open()), (1, 0));
    world.host.shutdown().await;
    world.apply(vec![server("a")]).await;
    world.host.ready().await;
    assert_eq!(world.seen(), "a:stopped |");
    assert_eq!((world.peer("a").count("connect"), world.peer("a").open()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_dropped_takes_its_servers_with_it() {
    let peer = Peer::new(&["t"]);
    let world = World::running(&[("a", peer.clone())]).await;
    assert_eq!(peer.open(), 1);
    drop(world);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(peer.open(), 0);
}

//! A turn keeps its generation: its model can call the tools that it was shown, until the grace period ends.

use std::time::Duration;

use mcp_host::{PinnedGeneration, ToolCall};
use mcp_model::{CallResult, RawJson};

use crate::leasing::leased;
use crate::peer::Peer;
use crate::world::{World, changed, server, told};

async fn call(pinned: &PinnedGeneration, name: &str) -> CallResult {
    pinned.call(ToolCall::new(name, RawJson::empty_object())).await
}

const REPLACED: &str = "MCPConnectionError: Replaced: server 'a' was replaced or stopped after this generation; Tool \
                        'a__t' is no longer available";

#[tokio::test(start_paused = true)]
async fn dm_096_a_turn_keeps_names_schemas_and_routes_until_the_grace_is_over() {
    let world = World::running(&[("a", Peer::new(&["t"]))]).await;
    let pinned = world.host.pin();
    world.peer("a").set_tools(&["u"]);
    world.apply(vec![changed(server("a"))]).await;
    world.until("a:ready | a__u").await;
    // The turn still lists and calls the old tools. A lookup in the latest generation does not find them.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(pinned.snapshot().catalog.tools()[0].name.as_str(), "a__t");
    assert_eq!(told(&call(&pinned, "a__t").await), "{}");
    assert!(told(&world.call("a__t", "{}").await).contains("not found"));
    assert_eq!(world.peer("a").open(), 2);
    // The old instance ends after the grace period. The turn's calls are not sent to the new one.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.peer("a").open(), 1);
    assert_eq!(told(&call(&pinned, "a__t").await), REPLACED);
    assert!(
        told(&world.host.pin().call(ToolCall::new("a__u", RawJson::empty_object())).await).starts_with('{')
    );
}

#[tokio::test(start_paused = true)]
async fn dm_104_a_turn_that_is_over_holds_nothing() {
    let world = World::running(&[("a", Peer::new(&["t"]))]).await;
    let pinned = world.host.pin();
    world.apply(Vec::new()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.peer("a").open(), 1);
    drop(pinned);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(world.peer("a").open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_began_in_time_ends_after_the_pin_is_gone() {
    let world = World::running(&[("a", Peer::new(&["slow"]))]).await;
    let pinned = world.host.pin();
    world.apply(Vec::new()).await;
    let (slow, ()) = tokio::join!(call(&pinned, "slow"), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        world.peer("a").release.notify_one();
    });
    assert_eq!(told(&slow), "at last");
}

#[tokio::test(start_paused = true)]
async fn hd_fr024_a_shutdown_does_not_wait_for_turns() {
    let world = World::running(&[("a", Peer::new(&["t"]))]).await;
    let pinned = world.host.pin();
    let begun = tokio::time::Instant::now();
    world.host.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(told(&call(&pinned, "a__t").await), REPLACED);
}

#[tokio::test(start_paused = true)]
async fn dm_074_a_turn_keeps_what_it_has_leased() {
    let world = World::new(&[("a", Peer::new(&["t"]))]);
    world.apply(vec![leased("a")]).await;
    world.host.ready().await;
    let (pinned, late) = (world.host.pin(), world.host.pin());
    assert_eq!(told(&call(&pinned, "a__t").await), "{}");
    world.apply(vec![changed(leased("a"))]).await;
    world.host.ready().await;
    assert_eq!(told(&call(&pinned, "a__t").await), "{}");
    // A turn that made no call before the change has no pinned instance.
    assert_eq!(told(&call(&late, "a__t").await), REPLACED);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(told(&call(&pinned, "a__t").await), REPLACED);
    assert_eq!(world.peer("a").open(), 0);
}

//! A turn keeps its generation: its model can call the tools that it was shown, until the drain period ends.

use std::time::Duration;

use mcp_host_model::{CallResult, RawJson};
use mcp_host_runtime::{PinnedGeneration, ToolCall};
use mcp_testkit::servers::configured_server;

use crate::fixture::{HostFixture, changed, text_or_error};
use crate::leases::leased;
use crate::scripted_server::ScriptedServer;

async fn call(pinned: &PinnedGeneration, name: &str) -> CallResult {
    pinned.call(ToolCall::new(name, RawJson::empty_object())).await
}

const REPLACED: &str = "MCPConnectionError: Replaced: server 'a' was replaced or stopped after this generation; Tool \
                        'a__t' is no longer available";

#[tokio::test(start_paused = true)]
async fn dm_096_turn_keeps_names_schemas_and_routes_during_the_drain_period() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
    let pinned = fixture.host.pin();
    fixture.peer("a").set_tools(&["u"]);
    fixture.apply(vec![changed(configured_server("a"))]).await;
    fixture.wait_for_summary("a:ready | a__u").await;
    // The turn still lists and calls the old tools. A lookup in the latest generation does not find them.
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(pinned.snapshot().catalog.tools()[0].name.as_str(), "a__t");
    assert_eq!(text_or_error(&call(&pinned, "a__t").await), "{}");
    assert!(text_or_error(&fixture.call("a__t", "{}").await).contains("not found"));
    assert_eq!(fixture.peer("a").open(), 2);
    // The old instance ends after the drain period. The turn's calls are not sent to the new one.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(fixture.peer("a").open(), 1);
    assert_eq!(text_or_error(&call(&pinned, "a__t").await), REPLACED);
    assert!(
        text_or_error(&fixture.host.pin().call(ToolCall::new("a__u", RawJson::empty_object())).await)
            .starts_with('{')
    );
}

#[tokio::test(start_paused = true)]
async fn dm_104_ended_turn_holds_no_instance() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
    let pinned = fixture.host.pin();
    fixture.apply(Vec::new()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fixture.peer("a").open(), 1);
    drop(pinned);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(fixture.peer("a").open(), 0);
}

#[tokio::test(start_paused = true)]
async fn running_call_continues_after_its_pin_is_dropped() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["slow"]))]).await;
    let pinned = fixture.host.pin();
    fixture.apply(Vec::new()).await;
    let (slow, ()) = tokio::join!(call(&pinned, "slow"), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        fixture.peer("a").release.notify_one();
    });
    assert_eq!(text_or_error(&slow), "at last");
}

#[tokio::test(start_paused = true)]
async fn hd_fr024_shutdown_does_not_wait_for_turns() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
    let pinned = fixture.host.pin();
    let begun = tokio::time::Instant::now();
    fixture.host.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(text_or_error(&call(&pinned, "a__t").await), REPLACED);
}

#[tokio::test(start_paused = true)]
async fn dm_074_turn_keeps_its_lease() {
    let fixture = HostFixture::new(&[("a", ScriptedServer::new(&["t"]))]);
    fixture.apply(vec![leased("a")]).await;
    fixture.host.wait_until_ready().await;
    let (pinned, late) = (fixture.host.pin(), fixture.host.pin());
    assert_eq!(text_or_error(&call(&pinned, "a__t").await), "{}");
    fixture.apply(vec![changed(leased("a"))]).await;
    fixture.host.wait_until_ready().await;
    assert_eq!(text_or_error(&call(&pinned, "a__t").await), "{}");
    // A turn that made no call before the change has no pinned instance.
    assert_eq!(text_or_error(&call(&late, "a__t").await), REPLACED);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(text_or_error(&call(&pinned, "a__t").await), REPLACED);
    assert_eq!(fixture.peer("a").open(), 0);
}

//! The lifetime of leases: a turn may continue after its lease has ended, and no instance outlives its dialog,
//! turn or host.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_host::{
    Dialog, DialogId, HostOptions, LeasePolicy, PinnedGeneration, RequestOptions, Supervision, ToolCall,
};
use mcp_model::{RawJson, ServerId};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use crate::leasing::leased;
use crate::peer::Peer;
use crate::world::{World, changed, server, told};

fn tool(name: &str) -> ToolCall {
    ToolCall::new(name, RawJson::empty_object())
}

fn a() -> ServerId {
    ServerId::parse("a").unwrap()
}

fn dialog(world: &World) -> Dialog {
    world.host.dialog(DialogId::new("d"))
}

/// A host with one leased server `a` and without supervision.
async fn world(options: HostOptions) -> World {
    let options = HostOptions { supervision: Supervision::Off, ..options };
    let world = World::with(&[("a", Peer::new(&["t", "slow"]))], options);
    world.apply(vec![leased("a")]).await;
    world.host.ready().await;
    world
}

/// Waits long enough for everything that happens without a delay.
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

async fn check_called(turn: &PinnedGeneration) {
    assert_eq!(told(&turn.call(tool("a__t")).await), "{}");
}

#[tokio::test(start_paused = true)]
async fn dm_074_a_dialog_is_over_when_its_last_turn_is() {
    let world = world(HostOptions::default()).await;
    let dialog = dialog(&world);
    let turn = dialog.pin();
    drop(dialog);
    check_called(&turn).await;
    a_moment().await;
    assert_eq!((world.peer("a").open(), world.host.leases().len()), (1, 1));
    drop(turn);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!((world.peer("a").open(), world.host.leases().len()), (0, 0));
}

/// Polls a call once, then drops it.
fn begin(call: impl Future) {
    let mut call = std::pin::pin!(call);
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[tokio::test(start_paused = true)]
async fn dm_074_what_a_dialog_asked_for_before_its_end_ends_with_it() {
    let world = world(HostOptions::default()).await;
    for round in 0..40 {
        let dialog = dialog(&world);
        begin(dialog.call(tool("a__t")));
        drop(dialog);
        a_moment().await;
        assert_eq!((world.peer("a").open(), world.host.leases().len()), (0, 0), "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn dm_074_an_end_that_finds_the_queue_full_comes_after_what_is_in_it() {
    let world = world(HostOptions {
        leases: LeasePolicy { idle_timeout: None, max_leases: 1000 },
        ..HostOptions::default()
    });
    let world = world.await;
    for _ in 0..10 {
        let dialog = dialog(&world);
        // More calls than the host's command queue can hold.
        for _ in 0..100 {
            begin(dialog.call(tool("a__t")));
        }
        drop(dialog);
        a_moment().await;
        assert_eq!((world.peer("a").open(), world.host.leases().len()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn dm_074_a_dialog_that_begins_again_at_once_keeps_what_it_leases() {
    let world = world(HostOptions::default()).await;
    for round in 0..20 {
        let first = dialog(&world);
        // In every other round the host's queue is full when the dialog ends.
        for _ in 0..1 + round % 2 * 100 {
            begin(first.call(tool("a__t")));
        }
        drop(first);
        let second = dialog(&world);
        assert!(second.call(tool("a__t")).await.success, "round {round}");
        a_moment().await;
        assert_eq!((world.peer("a").open(), world.host.leases().len()), (1, 1), "round {round}");
        drop(second);
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn dm_096_a_turn_leases_again_what_was_given_back() {
    let world = world(HostOptions::default()).await;
    let dialog = dialog(&world);
    let turn = dialog.pin();
    check_called(&turn).await;
    assert!(world.host.release(dialog.id(), &a()).await.unwrap());
    check_called(&turn).await;
    assert_eq!((world.peer("a").count("connect"), world.peer("a").open()), (3, 1));
    // When the base is replaced, the turn keeps its pinned instance only while that drains.
    world.apply(vec![changed(leased("a"))]).await;
    world.host.ready().await;
    check_called(&turn).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let late = told(&turn.call(tool("a__t")).await);
    assert!(late.starts_with("MCPConnectionError: Replaced: server 'a'"), "{late}");
    assert_eq!((world.peer("a").count("connect"), world.peer("a").open()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn dm_096_a_turn_leases_again_what_was_lost() {
    let world = world(HostOptions::default()).await;
    let dialog = dialog(&world);
    let turn = dialog.pin();
    check_called(&turn).await;
    world.peer("a").die();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.peer("a").open(), 0);
    check_called(&turn).await;
    let asking = RequestOptions { server: Some(a()), ..RequestOptions::default() };
    world.peer("a").die();
    tokio::time::sleep(Duration::from_secs(60)).await;
    // The error comes from the peer, which has no resources: the request was sent.
    let answer = turn.read_resource("x:y", asking).await.unwrap_err().to_string();
    assert!(answer.contains("what?"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn dm_075_what_a_turn_counts_on_does_not_lie_unused() {
    let leases = LeasePolicy { idle_timeout: Some(Duration::from_secs(60)), max_leases: 8 };
    let world = world(HostOptions { leases, ..HostOptions::default() }).await;
    let dialog = dialog(&world);
    let turn = dialog.pin();
    check_called(&turn).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((world.peer("a").open(), world.host.leases()[0].expires), (1, None));
    check_called(&turn).await;
    assert_eq!(world.peer("a").count("connect"), 2);
    drop(turn);
    assert!(world.host.leases()[0].expires.is_some());
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!((world.peer("a").open(), world.host.leases().len()), (0, 0));
}

/// The change of each gauge since the last snapshot.
fn gauges(snapshotter: &Snapshotter) -> Vec<(String, f64)> {
    let all = snapshotter.snapshot().into_vec().into_iter();
    let mut res: Vec<_> = all
        .filter_map(|(key, _, _, value)| match value {
            DebugValue::Gauge(it) => Some((key.key().name().to_owned(), it.into_inner())),
            DebugValue::Counter(_) | DebugValue::Histogram(_) => None,
        })
        .filter(|it| it.0 != mcp_host::metrics::GENERATION)
        .collect();
    res.sort_by(|left, right| left.0.cmp(&right.0));
    res
}

#[tokio::test(start_paused = true)]
async fn hd_fr024_a_host_that_is_dropped_ends_what_dialogs_and_turns_still_hold() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let (shared, own) = (Peer::new(&["t", "slow"]), Peer::new(&["t"]));
    let world = World::new(&[("a", shared.clone()), ("b", own.clone())]);
    world.apply(vec![server("a"), leased("b")]).await;
    world.host.ready().await;
    let dialog = dialog(&world);
    let turn = dialog.pin();
    assert!(turn.call(tool("a__t")).await.success && turn.call(tool("b__t")).await.success);
    // The previous instance is now held only by the turn.
    world.apply(vec![changed(server("a")), leased("b")]).await;
    world.host.ready().await;
    assert_eq!((shared.open(), own.open()), (2, 1));
    gauges(&snapshotter);
    let mut published = world.host.subscribe();
    let (slow, ()) = tokio::join!(turn.call(tool("a__slow")), async {
        a_moment().await;
        drop(world);
    });
    assert!(!slow.success);
    a_moment().await;
    assert_eq!((shared.open(), own.open()), (0, 0));
    let names = [mcp_host::metrics::LEASES, mcp_host::metrics::INSTANCES];
    let after = gauges(&snapshotter);
    let sums = names.map(|name| after.iter().filter(|it| it.0 == name).map(|it| it.1).sum::<f64>());
    assert_eq!(sums, [-1.0, -3.0], "{after:?}");
    let last = published.borrow_and_update().clone();
    let states: Vec<_> = last.servers.iter().map(|it| it.state.as_str()).collect();
    assert_eq!((states, last.catalog.tools().len()), (vec!["stopped", "stopped"], 0));
    assert_eq!(told(&dialog.call(tool("b__t")).await), "MCPConnectionError: the host was shut down");
    assert!(dialog.reminders().is_empty());
    assert!(!turn.call(tool("a__t")).await.success && !turn.call(tool("b__t")).await.success);
    assert_eq!((shared.open(), own.open()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn hd_119_a_deadline_covers_the_start_of_what_is_leased() {
    let world = world(HostOptions::default()).await;
    world.peer("a").silent.lock().unwrap().push("initialize");
    let dialog = dialog(&world);
    let turn = dialog.pin();
    let deadline = Some(Duration::from_secs(1));
    let begun = tokio::time::Instant::now();
    let call = || ToolCall { deadline, ..tool("a__t") };
    let want = "MCPTimeoutError: server 'a' (npx): no response within 1 s: its instance for the caller was still being \
                started";
    assert_eq!((told(&dialog.call(call()).await), begun.elapsed().as_secs()), (want.to_owned(), 1));
    assert_eq!((told(&turn.call(call()).await), begun.elapsed().as_secs()), (want.to_owned(), 2));
    let asking = RequestOptions { server: Some(a()), deadline, ..RequestOptions::default() };
    let asked = dialog.read_resource("x:y", asking).await.unwrap_err().to_string();
    assert_eq!((asked.as_str(), begun.elapsed().as_secs()), (want, 3));
    // All three calls caused one start, which continues after their deadlines.
    assert_eq!((world.peer("a").count("connect"), world.peer("a").open()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn hd_119_what_the_start_took_is_not_there_for_the_answer() {
    let world = world(HostOptions::default()).await;
    let dialog = dialog(&world);
    *world.peer("a").delay.lock().unwrap() = Duration::from_millis(1500);
    let begun = tokio::time::Instant::now();
    let call = ToolCall { deadline: Some(Duration::from_secs(2)), ..tool("a__t") };
    let late = told(&dialog.call(call).await);
    assert!(late.starts_with("MCPTimeoutError: server 'a'"), "{late}");
    assert_eq!(begun.elapsed().as_secs(), 2);
}

//! The lifetime of leases: a turn may continue after its lease has ended, and no instance outlives its dialog,
//! turn or host.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_host_model::{RawJson, ServerId};
use mcp_host_runtime::{
    Dialog, DialogId, HostOptions, LeasePolicy, PinnedGeneration, RequestOptions, Supervision, ToolCall,
};
use mcp_testkit::servers::configured_server;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use crate::fixture::{HostFixture, changed, text_or_error};
use crate::leases::leased;
use crate::scripted_server::ScriptedServer;

fn tool(name: &str) -> ToolCall {
    ToolCall::new(name, RawJson::empty_object())
}

fn a() -> ServerId {
    ServerId::parse("a").unwrap()
}

fn dialog(fixture: &HostFixture) -> Dialog {
    fixture.host.dialog(DialogId::new("d"))
}

/// Returns a host with one leased server `a` and without supervision.
async fn fixture(options: HostOptions) -> HostFixture {
    let mut options = options;
    options.supervision = Supervision::Off;
    let fixture = HostFixture::with(&[("a", ScriptedServer::new(&["t", "slow"]))], options);
    fixture.apply(vec![leased("a")]).await;
    fixture.host.wait_until_ready().await;
    fixture
}

/// Waits long enough for everything that happens without a delay.
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

async fn check_called(turn: &PinnedGeneration) {
    assert_eq!(text_or_error(&turn.call(tool("a__t")).await), "{}");
}

#[tokio::test(start_paused = true)]
async fn dm_074_dialog_ends_with_its_last_turn() {
    let fixture = fixture(HostOptions::default()).await;
    let dialog = dialog(&fixture);
    let turn = dialog.pin();
    drop(dialog);
    check_called(&turn).await;
    a_moment().await;
    assert_eq!((fixture.peer("a").open(), fixture.host.leases().len()), (1, 1));
    drop(turn);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!((fixture.peer("a").open(), fixture.host.leases().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn dm_074_two_handles_of_a_dialog_share_one_lease() {
    let fixture = fixture(HostOptions::default()).await;
    let (first, second) = (dialog(&fixture), dialog(&fixture));
    for handle in [&first, &second] {
        assert_eq!(text_or_error(&handle.call(tool("a__t")).await), "{}");
    }
    drop(first);
    a_moment().await;
    assert_eq!((fixture.peer("a").open(), fixture.host.leases().len()), (1, 1));
    assert_eq!(text_or_error(&second.call(tool("a__t")).await), "{}");
    // Only the first call of the dialog started an instance; the other start was for the lists.
    assert_eq!(fixture.peer("a").count("connect"), 2);
    drop(second);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!((fixture.peer("a").open(), fixture.host.leases().len()), (0, 0));
}

/// Polls a call once, then drops it.
fn begin(call: impl Future) {
    let mut call = std::pin::pin!(call);
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[tokio::test(start_paused = true)]
async fn dm_074_pending_call_ends_with_its_dialog() {
    let fixture = fixture(HostOptions::default()).await;
    for round in 0..40 {
        let dialog = dialog(&fixture);
        begin(dialog.call(tool("a__t")));
        drop(dialog);
        a_moment().await;
        assert_eq!((fixture.peer("a").open(), fixture.host.leases().len()), (0, 0), "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn dm_074_full_queue_does_not_lose_the_end_of_a_dialog() {
    let fixture = fixture({
        let mut options = HostOptions::default();
        options.leases.idle_timeout = None;
        options.leases.max_leases = 1000;
        options
    });
    let fixture = fixture.await;
    for _ in 0..10 {
        let dialog = dialog(&fixture);
        // More calls than the host's command queue can hold.
        for _ in 0..100 {
            begin(dialog.call(tool("a__t")));
        }
        drop(dialog);
        a_moment().await;
        assert_eq!((fixture.peer("a").open(), fixture.host.leases().len()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn dm_074_reopened_dialog_keeps_its_leases() {
    let fixture = fixture(HostOptions::default()).await;
    for round in 0..20 {
        let first = dialog(&fixture);
        // In every other round the host's queue is full when the dialog ends.
        for _ in 0..1 + round % 2 * 100 {
            begin(first.call(tool("a__t")));
        }
        drop(first);
        let second = dialog(&fixture);
        assert!(second.call(tool("a__t")).await.success, "round {round}");
        a_moment().await;
        assert_eq!((fixture.peer("a").open(), fixture.host.leases().len()), (1, 1), "round {round}");
        drop(second);
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn dm_096_turn_renews_a_released_lease() {
    let fixture = fixture(HostOptions::default()).await;
    let dialog = dialog(&fixture);
    let turn = dialog.pin();
    check_called(&turn).await;
    assert!(fixture.host.release(dialog.id(), &a()).await.unwrap());
    check_called(&turn).await;
    assert_eq!((fixture.peer("a").count("connect"), fixture.peer("a").open()), (3, 1));
    // When the base is replaced, the turn keeps its pinned instance only while that drains.
    fixture.apply(vec![changed(leased("a"))]).await;
    fixture.host.wait_until_ready().await;
    check_called(&turn).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let late = text_or_error(&turn.call(tool("a__t")).await);
    assert!(late.starts_with("MCPConnectionError: Replaced: server 'a'"), "{late}");
    assert_eq!((fixture.peer("a").count("connect"), fixture.peer("a").open()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn dm_096_turn_renews_a_lost_lease() {
    let fixture = fixture(HostOptions::default()).await;
    let dialog = dialog(&fixture);
    let turn = dialog.pin();
    check_called(&turn).await;
    fixture.peer("a").disconnect();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(fixture.peer("a").open(), 0);
    check_called(&turn).await;
    let mut asking = RequestOptions::default();
    asking.server = Some(a());
    fixture.peer("a").disconnect();
    tokio::time::sleep(Duration::from_secs(60)).await;
    // The error comes from the peer, which has no resources: the request was sent.
    let answer = turn.read_resource("x:y", asking).await.unwrap_err().to_string();
    assert!(answer.contains("no such resource"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn dm_075_lease_of_a_turn_is_not_idle() {
    let mut leases = LeasePolicy::default();
    leases.idle_timeout = Some(Duration::from_secs(60));
    leases.max_leases = 8;
    let fixture = fixture({
        let mut options = HostOptions::default();
        options.leases = leases;
        options
    })
    .await;
    let dialog = dialog(&fixture);
    let turn = dialog.pin();
    check_called(&turn).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((fixture.peer("a").open(), fixture.host.leases()[0].expires), (1, None));
    check_called(&turn).await;
    assert_eq!(fixture.peer("a").count("connect"), 2);
    drop(turn);
    assert!(fixture.host.leases()[0].expires.is_some());
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!((fixture.peer("a").open(), fixture.host.leases().len()), (0, 0));
}

/// Returns the change of each gauge since the last snapshot.
fn gauges(snapshotter: &Snapshotter) -> Vec<(String, f64)> {
    let all = snapshotter.snapshot().into_vec().into_iter();
    let mut res: Vec<_> = all
        .filter_map(|(key, _, _, value)| match value {
            DebugValue::Gauge(it) => Some((key.key().name().to_owned(), it.into_inner())),
            DebugValue::Counter(_) | DebugValue::Histogram(_) => None,
        })
        .filter(|it| it.0 != mcp_host_runtime::metrics::GENERATION)
        .collect();
    res.sort_by(|left, right| left.0.cmp(&right.0));
    res
}

#[tokio::test(start_paused = true)]
async fn hd_fr024_dropped_host_ends_the_leases_of_dialogs_and_turns() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let (shared, own) = (ScriptedServer::new(&["t", "slow"]), ScriptedServer::new(&["t"]));
    let fixture = HostFixture::new(&[("a", shared.clone()), ("b", own.clone())]);
    fixture.apply(vec![configured_server("a"), leased("b")]).await;
    fixture.host.wait_until_ready().await;
    let dialog = dialog(&fixture);
    let turn = dialog.pin();
    assert!(turn.call(tool("a__t")).await.success && turn.call(tool("b__t")).await.success);
    // The previous instance is now held only by the turn.
    fixture.apply(vec![changed(configured_server("a")), leased("b")]).await;
    fixture.host.wait_until_ready().await;
    assert_eq!((shared.open(), own.open()), (2, 1));
    gauges(&snapshotter);
    let mut published = fixture.host.subscribe();
    let (slow, ()) = tokio::join!(turn.call(tool("a__slow")), async {
        a_moment().await;
        drop(fixture);
    });
    assert!(!slow.success);
    a_moment().await;
    assert_eq!((shared.open(), own.open()), (0, 0));
    let names = [mcp_host_runtime::metrics::LEASES, mcp_host_runtime::metrics::INSTANCES];
    let after = gauges(&snapshotter);
    let sums = names.map(|name| after.iter().filter(|it| it.0 == name).map(|it| it.1).sum::<f64>());
    assert_eq!(sums, [-1.0, -3.0], "{after:?}");
    let last = published.borrow_and_update().clone();
    let states: Vec<_> = last.servers.iter().map(|server| server.state.as_str()).collect();
    assert_eq!((states, last.catalog.tools().len()), (vec!["stopped", "stopped"], 0));
    assert_eq!(text_or_error(&dialog.call(tool("b__t")).await), "MCPConnectionError: the host was shut down");
    assert!(dialog.reminders().is_empty());
    assert!(!turn.call(tool("a__t")).await.success && !turn.call(tool("b__t")).await.success);
    assert_eq!((shared.open(), own.open()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn hd_119_deadline_includes_the_start_of_a_lease() {
    let fixture = fixture(HostOptions::default()).await;
    fixture.peer("a").silent_methods.lock().unwrap().push("initialize");
    let dialog = dialog(&fixture);
    let turn = dialog.pin();
    let deadline = Some(Duration::from_secs(1));
    let begun = tokio::time::Instant::now();
    let call = || {
        let mut call = tool("a__t");
        call.options.deadline = deadline;
        call
    };
    let want = "MCPTimeoutError: server 'a' (npx): no response within 1 s: its instance for the caller was still being \
                started";
    assert_eq!((text_or_error(&dialog.call(call()).await), begun.elapsed().as_secs()), (want.to_owned(), 1));
    assert_eq!((text_or_error(&turn.call(call()).await), begun.elapsed().as_secs()), (want.to_owned(), 2));
    let mut asking = RequestOptions::default();
    asking.server = Some(a());
    asking.deadline = deadline;
    let asked = dialog.read_resource("x:y", asking).await.unwrap_err().to_string();
    assert_eq!((asked.as_str(), begun.elapsed().as_secs()), (want, 3));
    // All three calls caused one start, which continues after their deadlines.
    assert_eq!((fixture.peer("a").count("connect"), fixture.peer("a").open()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn hd_119_start_time_reduces_the_time_for_the_response() {
    let fixture = fixture(HostOptions::default()).await;
    let dialog = dialog(&fixture);
    *fixture.peer("a").delay.lock().unwrap() = Duration::from_millis(1500);
    let begun = tokio::time::Instant::now();
    let mut call = tool("a__t");
    call.options.deadline = Some(Duration::from_secs(2));
    let late = text_or_error(&dialog.call(call).await);
    assert!(late.starts_with("MCPTimeoutError: server 'a'"), "{late}");
    assert_eq!(begun.elapsed().as_secs(), 2);
}

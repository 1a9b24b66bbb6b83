//! Concurrent operations in every possible order. The tests of the state machine cannot cover these cases, because
//! they need a server that responds late or a call that is dropped.

use std::time::Duration;

use mcp_host_model::RawJson;
use mcp_host_runtime::{DialogId, HostOptions, ToolCall};
use mcp_testkit::servers::configured_server;
use tokio::time::Instant;

use crate::fixture::{HostFixture, changed, short_drain, text_or_error};
use crate::leases::leased;
use crate::scripted_server::ScriptedServer;

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Orders of four steps: the list changes (`c`), the change is announced (`a`), the response to a read is built
/// (`r`) and sent (`d`). In each case the new list must be published in the end.
const INTERLUDES: [&str; 6] = ["card", "crad", "crda", "rcad", "rcda", "rdca"];

#[tokio::test(start_paused = true)]
async fn hd_115_list_change_during_the_first_read_is_not_missed() {
    for interlude in INTERLUDES {
        let fixture = HostFixture::new(&[("a", ScriptedServer::new(&["t"]))]);
        *fixture.peer("a").list_steps.lock().unwrap() = interlude.to_owned();
        fixture.apply(vec![configured_server("a")]).await;
        fixture.wait_for_summary("a:ready | a__u").await;
        fixture.host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn hd_115_list_change_during_a_later_read_is_not_missed() {
    for interlude in INTERLUDES {
        let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
        fixture.peer("a").set_tools(&["t", "v"]);
        *fixture.peer("a").list_steps.lock().unwrap() = interlude.to_owned();
        fixture.peer("a").announce();
        fixture.wait_for_summary("a:ready | a__u").await;
        assert_eq!(fixture.peer("a").count("connect"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn hd_115_list_change_during_a_replacement_is_of_the_new_instance() {
    // The change and its announcement happen at different times of a replacement that takes 30 ms.
    for at in [0, 5, 10, 15, 20, 25, 29, 30, 31, 40] {
        let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
        let peer = fixture.peer("a");
        *peer.delay.lock().unwrap() = milliseconds(10);
        let swap = fixture.apply(vec![changed(configured_server("a"))]);
        tokio::join!(swap, async {
            tokio::time::sleep(milliseconds(at)).await;
            peer.set_tools(&["u"]);
            peer.announce();
        });
        fixture.host.wait_until_ready().await;
        fixture.wait_for_summary("a:ready | a__u").await;
        tokio::time::sleep(milliseconds(100)).await;
        assert_eq!((peer.count("connect"), peer.open()), (2, 1), "{at}");
    }
}

#[tokio::test(start_paused = true)]
async fn dm_074_first_caller_may_be_dropped_at_any_moment_of_the_start() {
    let moments = [0, 1, 5, 9, 10, 11, 15, 25];
    for (gone, second) in moments.iter().flat_map(|gone| moments.map(|second| (*gone, second))) {
        let fixture = HostFixture::with(&[("a", ScriptedServer::new(&["t"]))], HostOptions::default());
        fixture.apply(vec![leased("a")]).await;
        fixture.host.wait_until_ready().await;
        let peer = fixture.peer("a");
        *peer.delay.lock().unwrap() = milliseconds(10);
        let dialog = fixture.host.dialog(DialogId::new("d"));
        let call = || dialog.call(ToolCall::new("a__t", RawJson::empty_object()));
        let (_, result) = tokio::join!(tokio::time::timeout(milliseconds(gone), call()), async {
            tokio::time::sleep(milliseconds(second)).await;
            call().await
        });
        assert_eq!(text_or_error(&result), "{}", "{gone} {second}");
        // One connection listed the tools; the other one serves both calls.
        assert_eq!((peer.count("connect"), peer.open()), (2, 1), "{gone} {second}");
        drop(dialog);
        tokio::time::sleep(milliseconds(100)).await;
        assert_eq!(peer.open(), 0, "{gone} {second}");
    }
}

#[tokio::test(start_paused = true)]
async fn dm_077_release_at_any_moment_of_a_start_leaves_no_instance() {
    for at in [0, 1, 5, 9, 10, 11, 15, 20, 25] {
        let fixture = HostFixture::with(&[("a", ScriptedServer::new(&["t"]))], HostOptions::default());
        fixture.apply(vec![leased("a")]).await;
        fixture.host.wait_until_ready().await;
        let peer = fixture.peer("a");
        *peer.delay.lock().unwrap() = milliseconds(10);
        let dialog = fixture.host.dialog(DialogId::new("d"));
        let a = mcp_host_model::ServerId::parse("a").unwrap();
        let call = dialog.call(ToolCall::new("a__t", RawJson::empty_object()));
        let (result, released) = tokio::join!(call, async {
            tokio::time::sleep(milliseconds(at)).await;
            fixture.host.release(dialog.id(), &a).await
        });
        // If the lease is released while it is being started, the waiting call gets an error. Otherwise the call
        // succeeds.
        let answer = text_or_error(&result);
        let refused = "MCPConnectionError: server 'a': its lease was released while it was starting";
        assert!(answer == "{}" || answer == refused, "{at}: {answer}");
        assert_eq!(answer == "{}", at == 0 && released == Ok(false) || at > 10, "{at}: {answer}");
        tokio::time::sleep(milliseconds(100)).await;
        assert_eq!(peer.open(), usize::from(released == Ok(false)), "{at}");
    }
}

/// Replaces a server during a call. The server completes the call `ends` ms after the replacement; `want` is the
/// start of the call's result. The old instance must be closed within `closed` ms after the replacement.
async fn check_drain(ends: u64, want: &str, closed: u64) {
    let fixture =
        HostFixture::with(&[("a", ScriptedServer::new(&["slow", "t"]))], short_drain()).started().await;
    let peer = fixture.peer("a");
    let swap = async {
        tokio::time::sleep(milliseconds(1)).await;
        fixture.apply(vec![changed(configured_server("a"))]).await;
        fixture.host.wait_until_ready().await;
        let begun = Instant::now();
        let end = async {
            tokio::time::sleep(milliseconds(ends)).await;
            peer.release.notify_one();
        };
        let old = async {
            while peer.open() > 1 {
                tokio::time::sleep(milliseconds(1)).await;
            }
            begun.elapsed()
        };
        // The new instance accepts calls in any case.
        let (after, (), result) = tokio::join!(old, end, fixture.call("a__t", "{}"));
        assert_eq!(text_or_error(&result), "{}");
        assert!(after <= milliseconds(closed), "{ends}: {after:?}");
    };
    let (result, ()) = tokio::join!(fixture.call("a__slow", "{}"), swap);
    assert!(text_or_error(&result).starts_with(want), "{ends}: {}", text_or_error(&result));
    assert_eq!(text_or_error(&fixture.call("a__t", "{}").await), "{}");
    assert_eq!((peer.count("connect"), peer.open()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn dm_104_drain_deadline_before_at_and_after_the_end_of_a_call() {
    let lost = "MCPConnectionError: server 'a' (npx): the server is no longer available: it was stopped; it is not \
        known";
    check_drain(0, "at last", 100).await;
    check_drain(19_990, "at last", 20_100).await;
    // After the drain period of 20 s, the server has 5 s to end by itself.
    check_drain(20_500, lost, 25_100).await;
    check_drain(60_000, lost, 25_100).await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_servers_ignores_other_servers() {
    let ids = |names: &[&str]| -> Vec<mcp_host_model::ServerId> {
        names.iter().map(|it| mcp_host_model::ServerId::parse(it).unwrap()).collect()
    };
    let fixture = HostFixture::new(&[
        ("a", ScriptedServer::new(&["t"])),
        ("b", ScriptedServer::new(&["t"])),
        ("c", ScriptedServer::new(&["t"])),
    ]);
    *fixture.peer("b").delay.lock().unwrap() = milliseconds(1000);
    fixture.peer("c").silent_methods.lock().unwrap().push("initialize");
    let begun = Instant::now();
    fixture.apply(["a", "b", "c"].map(configured_server).to_vec()).await;
    let states = |server: Vec<mcp_host_runtime::ServerStatus>| {
        server
            .iter()
            .map(|server| format!("{}:{}", server.id, server.state.as_str()))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(states(fixture.host.wait_for_servers(&ids(&["a", "nobody"])).await), "a:ready");
    assert!(begun.elapsed() < milliseconds(1000), "{:?}", begun.elapsed());
    assert_eq!(states(fixture.host.wait_for_servers(&ids(&["b", "a"])).await), "b:ready a:ready");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(states(fixture.host.wait_for_servers(&ids(&["c"])).await), "c:failed");
    fixture.host.shutdown().await;
    assert_eq!(states(fixture.host.wait_for_servers(&ids(&["a"])).await), "a:stopped");
}

//! Concurrent operations in every possible order. The tests of the state machine cannot cover these cases, because
//! they need a server that responds late or a call that is dropped.

use std::time::Duration;

use mcp_host::{DialogId, HostOptions, ToolCall};
use mcp_model::RawJson;
use tokio::time::Instant;

use crate::leasing::leased;
use crate::peer::Peer;
use crate::world::{World, changed, server, told};

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Orders of four steps: the list changes (`c`), the change is announced (`a`), the response to a read is built
/// (`r`) and sent (`d`). In each case the new list must be published in the end.
const INTERLUDES: [&str; 6] = ["card", "crad", "crda", "rcad", "rcda", "rdca"];

#[tokio::test(start_paused = true)]
async fn hd_115_a_list_that_changes_while_it_is_first_read_is_not_missed() {
    for interlude in INTERLUDES {
        let world = World::new(&[("a", Peer::new(&["t"]))]);
        *world.peer("a").interlude.lock().unwrap() = interlude.to_owned();
        world.apply(vec![server("a")]).await;
        world.until("a:ready | a__u").await;
        world.host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn hd_115_a_list_that_changes_while_it_is_read_again_is_not_missed() {
    for interlude in INTERLUDES {
        let world = World::running(&[("a", Peer::new(&["t"]))]).await;
        world.peer("a").set_tools(&["t", "v"]);
        *world.peer("a").interlude.lock().unwrap() = interlude.to_owned();
        world.peer("a").announce();
        world.until("a:ready | a__u").await;
        assert_eq!(world.peer("a").count("connect"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn hd_115_a_list_that_changes_while_its_server_is_replaced_is_that_of_the_new_one() {
    // The change and its announcement happen at different times of a replacement that takes 30 ms.
    for at in [0, 5, 10, 15, 20, 25, 29, 30, 31, 40] {
        let world = World::running(&[("a", Peer::new(&["t"]))]).await;
        let peer = world.peer("a");
        *peer.delay.lock().unwrap() = milliseconds(10);
        let swap = world.apply(vec![changed(server("a"))]);
        tokio::join!(swap, async {
            tokio::time::sleep(milliseconds(at)).await;
            peer.set_tools(&["u"]);
            peer.announce();
        });
        world.host.ready().await;
        world.until("a:ready | a__u").await;
        tokio::time::sleep(milliseconds(100)).await;
        assert_eq!((peer.count("connect"), peer.open()), (2, 1), "{at}");
    }
}

#[tokio::test(start_paused = true)]
async fn dm_074_the_first_caller_goes_away_at_any_moment_of_the_start_that_he_has_caused() {
    let moments = [0, 1, 5, 9, 10, 11, 15, 25];
    for (gone, second) in moments.iter().flat_map(|gone| moments.map(|second| (*gone, second))) {
        let world = World::with(&[("a", Peer::new(&["t"]))], HostOptions::default());
        world.apply(vec![leased("a")]).await;
        world.host.ready().await;
        let peer = world.peer("a");
        *peer.delay.lock().unwrap() = milliseconds(10);
        let dialog = world.host.dialog(DialogId::new("d"));
        let call = || dialog.call(ToolCall::new("a__t", RawJson::empty_object()));
        let (_, result) = tokio::join!(tokio::time::timeout(milliseconds(gone), call()), async {
            tokio::time::sleep(milliseconds(second)).await;
            call().await
        });
        assert_eq!(told(&result), "{}", "{gone} {second}");
        // One connection listed the tools; the other one serves both calls.
        assert_eq!((peer.count("connect"), peer.open()), (2, 1), "{gone} {second}");
        drop(dialog);
        tokio::time::sleep(milliseconds(100)).await;
        assert_eq!(peer.open(), 0, "{gone} {second}");
    }
}

#[tokio::test(start_paused = true)]
async fn dm_077_a_release_at_any_moment_of_a_start_leaves_nothing() {
    for at in [0, 1, 5, 9, 10, 11, 15, 20, 25] {
        let world = World::with(&[("a", Peer::new(&["t"]))], HostOptions::default());
        world.apply(vec![leased("a")]).await;
        world.host.ready().await;
        let peer = world.peer("a");
        *peer.delay.lock().unwrap() = milliseconds(10);
        let dialog = world.host.dialog(DialogId::new("d"));
        let a = mcp_model::ServerId::parse("a").unwrap();
        let call = dialog.call(ToolCall::new("a__t", RawJson::empty_object()));
        let (result, released) = tokio::join!(call, async {
            tokio::time::sleep(milliseconds(at)).await;
            world.host.release(dialog.id(), &a).await
        });
        // If the lease is released while it is being started, the waiting call gets an error. Otherwise the call
        // succeeds.
        let answer = told(&result);
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
    let world = World::running(&[("a", Peer::new(&["slow", "t"]))]).await;
    let peer = world.peer("a");
    let swap = async {
        tokio::time::sleep(milliseconds(1)).await;
        world.apply(vec![changed(server("a"))]).await;
        world.host.ready().await;
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
        let (after, (), result) = tokio::join!(old, end, world.call("a__t", "{}"));
        assert_eq!(told(&result), "{}");
        assert!(after <= milliseconds(closed), "{ends}: {after:?}");
    };
    let (result, ()) = tokio::join!(world.call("a__slow", "{}"), swap);
    assert!(told(&result).starts_with(want), "{ends}: {}", told(&result));
    assert_eq!(told(&world.call("a__t", "{}").await), "{}");
    assert_eq!((peer.count("connect"), peer.open()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn dm_104_the_drain_deadline_falls_before_into_and_after_the_end_of_a_call() {
    let lost = "MCPConnectionError: server 'a' (npx): the server is no longer available: it was stopped; it is not known";
    check_drain(0, "at last", 100).await;
    check_drain(4_990, "at last", 5_100).await;
    // The host's grace period is 5 s. After that, the server has 1 s to end by itself.
    check_drain(5_500, lost, 6_100).await;
    check_drain(60_000, lost, 6_100).await;
}

#[tokio::test(start_paused = true)]
async fn who_needs_some_servers_waits_for_no_others() {
    let ids = |names: &[&str]| -> Vec<mcp_model::ServerId> {
        names.iter().map(|it| mcp_model::ServerId::parse(it).unwrap()).collect()
    };
    let world = World::new(&[("a", Peer::new(&["t"])), ("b", Peer::new(&["t"])), ("c", Peer::new(&["t"]))]);
    *world.peer("b").delay.lock().unwrap() = milliseconds(1000);
    world.peer("c").silent.lock().unwrap().push("initialize");
    let begun = Instant::now();
    world.apply(["a", "b", "c"].map(server).to_vec()).await;
    let states = |it: Vec<mcp_host::ServerStatus>| {
        it.iter().map(|it| format!("{}:{}", it.id, it.state.as_str())).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(states(world.host.wait_for(&ids(&["a", "nobody"])).await), "a:ready");
    assert!(begun.elapsed() < milliseconds(1000), "{:?}", begun.elapsed());
    assert_eq!(states(world.host.wait_for(&ids(&["b", "a"])).await), "b:ready a:ready");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(states(world.host.wait_for(&ids(&["c"])).await), "c:failed");
    world.host.shutdown().await;
    assert_eq!(states(world.host.wait_for(&ids(&["a"])).await), "a:stopped");
}

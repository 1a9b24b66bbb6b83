//! Failed servers are restarted. Meanwhile calls fail at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use mcp_host::{HostEventKind, HostOptions, NotificationStreamItem, Supervision, TelemetryOptions};
use tokio::time::Instant;

use crate::peer::{Beginning, Peer};
use crate::world::{World, supervision, told};

#[tokio::test(start_paused = true)]
async fn hd_117_a_server_that_dies_in_mid_call_ends_it_and_comes_back() {
    let world = World::supervised(&[("a", Peer::new(&["lost", "echo"])), ("b", Peer::new(&["slow"]))])
        .started()
        .await;
    let mut events = world.host.events();
    let begun = Instant::now();
    let (slow, ()) = tokio::join!(world.call("slow", "{}"), async {
        let lost = told(&world.call("lost", "{}").await);
        let want = "MCPConnectionError: server 'a' (npx): the server is no longer available: its process ended with \
                    exit status 3; its standard error ended with: out of memory; it is not known whether the call ran \
                    (check its last output and its log; a crash is a bug of the server)";
        assert_eq!(lost, want);
        world.until("a:restarting b:ready | b__slow").await;
        // While the server is down, a call fails at once, with the evidence.
        let down = told(&world.call("a__echo", "{}").await);
        assert_eq!(
            down,
            "MCPConnectionError: Tool 'a__echo' is not available: server 'a' (npx): the server is no longer \
             available: its process ended with exit status 3; its standard error ended with: out of memory; it is \
             restarted automatically"
        );
        assert_eq!(begun.elapsed(), Duration::ZERO);
        world.until("a:ready b:ready | a__lost a__echo b__slow").await;
        let after = begun.elapsed();
        assert!(after >= Duration::from_secs(1) && after <= Duration::from_secs(2), "{after:?}");
        assert_eq!(told(&world.call("a__echo", "{}").await), "{}");
        world.peer("b").release.notify_one();
    });
    assert_eq!(told(&slow), "at last");
    assert_eq!((world.peer("a").count("connect"), world.peer("b").count("connect")), (2, 1));
    assert!(world.host.snapshot().problems.is_empty());

    let mut heard = Vec::new();
    while let Some(NotificationStreamItem::Notification(event)) = events.try_next() {
        assert_eq!(event.server, "a");
        heard.push(match &event.kind {
            HostEventKind::Lost(_) => "lost",
            HostEventKind::RestartScheduled { failures: 1, .. } => "again",
            HostEventKind::Starting { failures: 1 } => "starting",
            HostEventKind::Ready { .. } => "ready",
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(heard, ["lost", "again", "starting", "ready"]);
}

#[tokio::test(start_paused = true)]
async fn a_first_connection_that_fails_is_tried_again_and_nobody_waits_for_it() {
    let world = World::supervised(&[("a", Peer::beginning(Beginning::NotFound)), ("b", Peer::new(&["t"]))])
        .started()
        .await;
    assert_eq!(world.seen(), "a:restarting b:ready | b__t");
    world.host.ready().await;
    // The server fails repeatedly until its restarts are suspended.
    world.until("a:failed b:ready | b__t").await;
    assert!(world.failure("a").ends_with(
        "the command was not found; it failed 4 times in a row; restarts are suspended for up to 100 s"
    ));
    *world.peer("a").beginning.lock().unwrap() = Beginning::Well;
    world.peer("a").set_tools(&["u"]);
    let begun = Instant::now();
    world.until("a:ready b:ready | a__u b__t").await;
    assert!(begun.elapsed() >= Duration::from_secs(50), "{:?}", begun.elapsed());
    assert_eq!(world.failure("a"), "");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_nothing_any_more_is_replaced() {
    let world = World::supervised(&[("a", Peer::new(&["t", "hang"]))]).started().await;
    // A busy server is not probed, because many servers do not respond during a call.
    let hang = world.call("hang", "{}");
    world.peer("a").silent.lock().unwrap().push("ping");
    assert!(told(&hang.await).starts_with("MCPTimeoutError: "));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((world.peer("a").count("ping"), world.seen().as_str()), (0, "a:ready | a__t a__hang"));

    world.until("a:restarting |").await;
    assert_eq!(world.peer("a").count("ping"), 2);
    assert_eq!(world.failure("a"), "MCPTimeoutError: server 'a' (npx): no response within 5 s");
    world.until("a:ready | a__t a__hang").await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(world.peer("a").open(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_sleep_of_the_machine_servers_are_asked_whether_they_live() {
    let slept = Arc::new(AtomicU64::new(0));
    let (begun, wall, also) = (Instant::now(), SystemTime::now(), Arc::clone(&slept));
    let wall_clock =
        Arc::new(move || wall + begun.elapsed() + Duration::from_secs(also.load(Ordering::Relaxed)));
    let Supervision::Restart(mut policy) = supervision() else { panic!("it supervises") };
    policy.probe.interval = None;
    let supervision = Supervision::Restart(policy);
    let options = HostOptions {
        supervision,
        telemetry: TelemetryOptions { wall_clock, ..TelemetryOptions::default() },
        ..HostOptions::default()
    };
    let world = World::with(&[("a", Peer::new(&["t"]))], options).started().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.peer("a").count("ping"), 0);
    slept.store(3600, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!((world.peer("a").count("ping"), world.seen().as_str()), (1, "a:ready | a__t"));

    // After the next missed probes the server counts as lost.
    world.peer("a").silent.lock().unwrap().push("ping");
    slept.store(7200, Ordering::Relaxed);
    world.until("a:restarting |").await;
    world.until("a:ready | a__t").await;
}

#[tokio::test(start_paused = true)]
async fn dm_110_a_changed_limit_reaches_a_running_server() {
    let world = World::supervised(&[("a", Peer::new(&["t", "u"]))]).started().await;
    let mut limited = crate::world::server("a");
    limited.spec.limits.list_items = 1;
    world.apply(vec![limited]).await;
    world.peer("a").announce();
    let mut published = world.host.subscribe();
    let problems = published.wait_for(|it| !it.problems.is_empty()).await.unwrap().problems.clone();
    assert!(problems[0].problem.message.ends_with("tools/list has more than 1 items"), "{problems:?}");
    assert_eq!(world.peer("a").count("connect"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_no_clock_can_count_to_is_no_limit() {
    let world = World::supervised(&[("a", Peer::new(&["t"]))]);
    let mut patient = crate::world::server("a");
    patient.spec.limits.startup = Duration::MAX;
    world.apply(vec![patient]).await;
    world.host.ready().await;
    world.peer("a").set_tools(&["u"]);
    world.peer("a").announce();
    world.until("a:ready | a__u").await;
}

#[tokio::test(start_paused = true)]
async fn problems_come_and_go_with_their_causes() {
    let world = World::supervised(&[("a", Peer::new(&["t"]))]).started().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut published = world.host.subscribe();
    published.mark_unchanged();
    world.peer("a").die();
    let ids = |it: &mcp_host::HostSnapshot| {
        it.problems.iter().map(|it| it.problem.id.clone()).collect::<Vec<_>>().join(" ")
    };
    for _ in 0..2 {
        published.changed().await.unwrap();
        seen.lock().unwrap().push(ids(&published.borrow_and_update()));
    }
    assert_eq!(*seen.lock().unwrap(), ["mcp/server/a/server_error", ""]);
}

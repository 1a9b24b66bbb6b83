//! Failed servers are restarted. Meanwhile calls fail at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use mcp_host_runtime::{HostEventKind, HostOptions, NotificationStreamItem, ServerState, Supervision};
use mcp_testkit::servers::configured_server;
use tokio::time::Instant;

use crate::fixture::{HostFixture, supervision, text_or_error};
use crate::scripted_server::{ScriptedServer, StartBehavior};

#[tokio::test(start_paused = true)]
async fn hd_117_server_exit_ends_its_call_and_restarts_it() {
    let fixture = HostFixture::supervised(&[
        ("a", ScriptedServer::new(&["lost", "echo"])),
        ("b", ScriptedServer::new(&["slow"])),
    ])
    .started()
    .await;
    let mut events = fixture.host.events();
    let begun = Instant::now();
    let (slow, ()) = tokio::join!(fixture.call("slow", "{}"), async {
        let lost = text_or_error(&fixture.call("lost", "{}").await);
        let want = "MCPConnectionError: server 'a' (npx): the server is no longer available: its process ended with \
                    exit status 3; its standard error ended with: out of memory; it is not known whether the call ran \
                    (check its last output and its log; a crash is a bug of the server)";
        assert_eq!(lost, want);
        fixture.wait_for_summary("a:restarting b:ready | b__slow").await;
        // While the server is down, a call fails at once, with the evidence.
        let down = text_or_error(&fixture.call("a__echo", "{}").await);
        assert_eq!(
            down,
            "MCPConnectionError: Tool 'a__echo' is not available: server 'a' (npx): the server is no longer \
             available: its process ended with exit status 3; its standard error ended with: out of memory; it is \
             restarted automatically"
        );
        assert_eq!(begun.elapsed(), Duration::ZERO);
        fixture.wait_for_summary("a:ready b:ready | a__lost a__echo b__slow").await;
        let after = begun.elapsed();
        assert!(after >= Duration::from_secs(1) && after <= Duration::from_secs(2), "{after:?}");
        assert_eq!(text_or_error(&fixture.call("a__echo", "{}").await), "{}");
        fixture.peer("b").release.notify_one();
    });
    assert_eq!(text_or_error(&slow), "at last");
    assert_eq!((fixture.peer("a").count("connect"), fixture.peer("b").count("connect")), (2, 1));
    assert!(fixture.host.snapshot().problems.is_empty());

    let mut heard = Vec::new();
    while let Some(NotificationStreamItem::Notification(event)) = events.try_next() {
        assert_eq!(event.server, "a");
        heard.push(match &event.kind {
            HostEventKind::ConnectionLost(_) => "lost",
            HostEventKind::RestartScheduled { failures: 1, .. } => "again",
            HostEventKind::Starting { failures: 1 } => "starting",
            HostEventKind::Ready { .. } => "ready",
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(heard, ["lost", "again", "starting", "ready"]);
}

/// A supervised host with one server, which ends after each response to a call.
async fn ending_server() -> HostFixture {
    let fixture = HostFixture::supervised(&[("a", ScriptedServer::new(&["echo"]))]).started().await;
    fixture.peer("a").ends_after_calls.store(true, Ordering::Relaxed);
    fixture
}

/// Calls the tool of this server, and waits until the server has ended.
async fn call_until_end(fixture: &HostFixture) {
    let ended = fixture.peer("a").count("end");
    assert_eq!(text_or_error(&fixture.call("a__echo", "{}").await), "{}");
    while fixture.peer("a").count("end") == ended {
        tokio::task::yield_now().await;
    }
}

// RPT-064
#[tokio::test(start_paused = true)]
async fn call_waits_for_a_server_that_ended_after_its_last_response() {
    let fixture = ending_server().await;
    let mut published = fixture.host.subscribe();
    for _ in 0..20 {
        call_until_end(&fixture).await;
        let now = published.borrow_and_update().clone();
        assert!(now.problems.is_empty() && now.servers[0].state == ServerState::Ready, "{now:?}");
    }
    // A slow start is waited for.
    *fixture.peer("a").delay.lock().unwrap() = Duration::from_secs(2);
    call_until_end(&fixture).await;
    call_until_end(&fixture).await;
    assert!(fixture.peer("a").count("connect") >= 22);
}

// RPT-064
#[tokio::test(start_paused = true)]
async fn clean_exit_while_a_call_is_sent_is_no_failure() {
    let fixture = HostFixture::supervised(&[("a", ScriptedServer::new(&["lost", "echo"]))]).started().await;
    fixture.peer("a").exits_cleanly.store(true, Ordering::Relaxed);
    for _ in 0..6 {
        assert_eq!(text_or_error(&fixture.call("a__echo", "{}").await), "{}");
        let lost = text_or_error(&fixture.call("a__lost", "{}").await);
        assert!(lost.contains("exit status 0; it is not known whether the call ran"), "{lost}");
    }
}

// RPT-064
#[tokio::test(start_paused = true)]
async fn call_waits_for_a_restart_for_a_bounded_time() {
    let ended = "MCPConnectionError: server 'a' (npx): the server is no longer available: its process ended with exit \
                 status 3; its standard error ended with: out of memory; it is still being started";
    let not_found = "MCPConnectionError: Tool 'a__echo' is not available: server 'a' (npx): the server could not be \
                     started: the command was not found; it is restarted automatically";
    for (is_silent, want) in [(true, ended), (false, not_found)] {
        let fixture = ending_server().await;
        if is_silent {
            fixture.peer("a").silent_methods.lock().unwrap().push("initialize");
        } else {
            *fixture.peer("a").start_behavior.lock().unwrap() = StartBehavior::NotFound;
        }
        call_until_end(&fixture).await;
        let begun = Instant::now();
        let failed = text_or_error(&fixture.call("a__echo", "{}").await);
        assert!(failed.starts_with(want), "{failed}");
        assert!(begun.elapsed() <= Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn failed_first_connection_is_retried_in_the_background() {
    let fixture = HostFixture::supervised(&[
        ("a", ScriptedServer::starting(StartBehavior::NotFound)),
        ("b", ScriptedServer::new(&["t"])),
    ])
    .started()
    .await;
    assert_eq!(fixture.summary(), "a:restarting b:ready | b__t");
    fixture.host.wait_until_ready().await;
    // The server fails repeatedly until its restarts are suspended.
    fixture.wait_for_summary("a:failed b:ready | b__t").await;
    assert!(fixture.failure("a").ends_with(
        "the command was not found; it failed 4 times in a row; restarts are suspended for up to 100 s"
    ));
    *fixture.peer("a").start_behavior.lock().unwrap() = StartBehavior::Works;
    fixture.peer("a").set_tools(&["u"]);
    let begun = Instant::now();
    fixture.wait_for_summary("a:ready b:ready | a__u b__t").await;
    assert!(begun.elapsed() >= Duration::from_secs(50), "{:?}", begun.elapsed());
    assert_eq!(fixture.failure("a"), "");
}

#[tokio::test(start_paused = true)]
async fn unresponsive_server_is_replaced() {
    let fixture = HostFixture::supervised(&[("a", ScriptedServer::new(&["t", "hang"]))]).started().await;
    // A busy server is not probed, because many servers do not respond during a call.
    let hang = fixture.call("hang", "{}");
    fixture.peer("a").silent_methods.lock().unwrap().push("ping");
    assert!(text_or_error(&hang.await).starts_with("MCPTimeoutError: "));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((fixture.peer("a").count("ping"), fixture.summary().as_str()), (0, "a:ready | a__t a__hang"));

    fixture.wait_for_summary("a:restarting |").await;
    assert_eq!(fixture.peer("a").count("ping"), 2);
    assert_eq!(fixture.failure("a"), "MCPTimeoutError: server 'a' (npx): no response within 5 s");
    fixture.wait_for_summary("a:ready | a__t a__hang").await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(fixture.peer("a").open(), 1);
}

// RPT-043
#[tokio::test(start_paused = true)]
async fn server_that_now_refuses_access_to_pings_is_not_ready() {
    for has_answered in [true, false] {
        let peer = ScriptedServer::new(&["t"]);
        if !has_answered {
            peer.refused_methods.lock().unwrap().push("ping");
        }
        let fixture = HostFixture::supervised(&[("a", peer)]).started().await;
        let peer = fixture.peer("a");
        while peer.count("ping") == 0 {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        if has_answered {
            peer.refused_methods.lock().unwrap().push("ping");
            fixture.wait_for_summary("a:restarting |").await;
            assert!(fixture.failure("a").contains("HTTP 403"), "{}", fixture.failure("a"));
        } else {
            // It never allowed pings, so this says nothing.
            tokio::time::sleep(Duration::from_secs(120)).await;
            assert_eq!((peer.count("connect"), fixture.summary().as_str()), (1, "a:ready | a__t"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn servers_are_probed_after_a_suspend() {
    let slept = Arc::new(AtomicU64::new(0));
    let (begun, wall, also) = (Instant::now(), SystemTime::now(), Arc::clone(&slept));
    let wall_clock =
        Arc::new(move || wall + begun.elapsed() + Duration::from_secs(also.load(Ordering::Relaxed)));
    let Supervision::Restart(mut policy) = supervision() else { panic!("it supervises") };
    policy.probe.interval = None;
    let supervision = Supervision::Restart(policy);
    let mut options = HostOptions::default();
    options.supervision = supervision;
    options.telemetry.wall_clock = wall_clock;
    let fixture = HostFixture::with(&[("a", ScriptedServer::new(&["t"]))], options).started().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(fixture.peer("a").count("ping"), 0);
    slept.store(3600, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!((fixture.peer("a").count("ping"), fixture.summary().as_str()), (1, "a:ready | a__t"));

    // After the next missed probes the server counts as lost.
    fixture.peer("a").silent_methods.lock().unwrap().push("ping");
    slept.store(7200, Ordering::Relaxed);
    fixture.wait_for_summary("a:restarting |").await;
    fixture.wait_for_summary("a:ready | a__t").await;
}

#[tokio::test(start_paused = true)]
async fn dm_110_changed_limit_applies_to_a_running_server() {
    let fixture = HostFixture::supervised(&[("a", ScriptedServer::new(&["t", "u"]))]).started().await;
    let mut limited = configured_server("a");
    limited.spec.limits.list_items = 1;
    fixture.apply(vec![limited]).await;
    fixture.peer("a").announce();
    let mut published = fixture.host.subscribe();
    let problems = published.wait_for(|it| !it.problems.is_empty()).await.unwrap().problems.clone();
    assert!(problems[0].problem.message.ends_with("tools/list has more than 1 items"), "{problems:?}");
    assert_eq!(fixture.peer("a").count("connect"), 1);
}

#[tokio::test(start_paused = true)]
async fn huge_limit_is_no_limit() {
    let fixture = HostFixture::supervised(&[("a", ScriptedServer::new(&["t"]))]);
    let mut patient = configured_server("a");
    patient.spec.limits.startup = Duration::MAX;
    fixture.apply(vec![patient]).await;
    fixture.host.wait_until_ready().await;
    fixture.peer("a").set_tools(&["u"]);
    fixture.peer("a").announce();
    fixture.wait_for_summary("a:ready | a__u").await;
}

#[tokio::test(start_paused = true)]
async fn problems_end_with_their_causes() {
    let fixture = HostFixture::supervised(&[("a", ScriptedServer::new(&["t"]))]).started().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut published = fixture.host.subscribe();
    published.mark_unchanged();
    fixture.peer("a").disconnect();
    let ids = |it: &mcp_host_runtime::HostSnapshot| {
        it.problems.iter().map(|it| it.problem.id.clone()).collect::<Vec<_>>().join(" ")
    };
    for _ in 0..2 {
        published.changed().await.unwrap();
        seen.lock().unwrap().push(ids(&published.borrow_and_update()));
    }
    assert_eq!(*seen.lock().unwrap(), ["mcp/server/a/server_error", ""]);
}

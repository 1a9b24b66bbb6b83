//! How long closing a session takes, with a paused clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_host_transport::{
    Disconnect, DisconnectReason, Eras, Link, Outbound, ProcessExit, Session, SessionOptions, StreamId,
};
use mcp_testkit::servers;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::in_memory::initialized;

/// When a transport returns, relative to the deadline of the shutdown.
#[derive(Debug, Clone, Copy)]
enum Returns {
    AtOnce,
    /// This many milliseconds later than its deadline.
    Late(u64),
    Never,
}

/// Counts a running transport until its future is dropped.
struct RunningGuard(Arc<AtomicUsize>);

impl RunningGuard {
    fn new(running: Arc<AtomicUsize>) -> RunningGuard {
        running.fetch_add(1, Ordering::Relaxed);
        RunningGuard(running)
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve(link: Link, returns: Returns, running: Arc<AtomicUsize>) -> Disconnect {
    let _running = RunningGuard::new(running);
    let Link { mut outbound, inbound, mut shutdown, .. } = link;
    let deadline = loop {
        let message = tokio::select! {
            deadline = shutdown.requested() => break deadline,
            Some(Outbound::Send(message)) = outbound.next() => message,
        };
        let request: Value = serde_json::from_slice(&message.body).unwrap();
        if request["method"] == "initialize" {
            let response =
                json!({"jsonrpc": "2.0", "id": request["id"], "result": initialized("2025-11-25")});
            inbound.deliver(StreamId::Shared, response.to_string().into());
        }
    };
    match returns {
        Returns::AtOnce => {}
        Returns::Late(millis) => tokio::time::sleep_until(deadline + Duration::from_millis(millis)).await,
        Returns::Never => std::future::pending().await,
    }
    let mut ended = Disconnect::new(DisconnectReason::Stopped);
    ended.evidence.exit = Some(ProcessExit::Status(0));
    ended
}

async fn check(returns: Returns, grace: u64, want: (u64, Option<ProcessExit>)) {
    let running = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&running);
    let dial = servers::in_memory("closing", move |link| serve(link, returns, Arc::clone(&running)));
    let mut options = SessionOptions::default();
    options.eras = Eras::Legacy;
    let session = Session::connect(dial, options).await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 1);
    let begun = Instant::now();
    let ended = session.close(Duration::from_millis(grace)).await;
    let millis = u64::try_from(begun.elapsed().as_millis()).unwrap();
    assert_eq!((millis, ended.evidence.exit), want, "{returns:?}, {grace}");
    assert_eq!(ended.reason, DisconnectReason::Stopped);
    assert_eq!(count.load(Ordering::Relaxed), 0, "its future was not dropped");
    assert_eq!(session.closed().await.reason, DisconnectReason::Stopped);
    let begun = Instant::now();
    session.close(Duration::from_secs(2)).await;
    assert!(begun.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn close_ends_within_its_grace_period() {
    let exit = Some(ProcessExit::Status(0));
    check(Returns::AtOnce, 2_000, (0, exit)).await;
    check(Returns::Late(0), 400, (300, exit)).await;
    check(Returns::Late(0), 2_000, (1_500, exit)).await;
    check(Returns::Late(400), 2_000, (1_900, exit)).await;
    check(Returns::Late(600), 2_000, (2_000, None)).await;
    check(Returns::Never, 2_000, (2_000, None)).await;
    check(Returns::Never, 100, (100, None)).await;
    check(Returns::Late(0), 60_000, (59_500, exit)).await;
    check(Returns::Never, 60_000, (60_000, None)).await;
    check(Returns::Never, 24 * 60 * 60_000, (60 * 60_000, None)).await;
}

#[tokio::test(start_paused = true)]
async fn close_without_a_grace_period_cuts_off_at_once() {
    for returns in [Returns::Late(0), Returns::Late(100), Returns::Never] {
        check(returns, 0, (0, None)).await;
    }
}

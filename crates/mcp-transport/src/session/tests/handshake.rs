//! Interleaving tests of the handshake: connecting ends in time with the expected result and leaves nothing behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_host_model::{Era, Limits, code};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::super::{Eras, Session, SessionOptions, SessionState};
use super::calls::WakeFlag;
use super::harness::handshake_response;
use super::peer::{Peer, ScriptedDial, ShutdownBehavior};
use super::{config, run_with_paused_time};
use crate::error::disconnect::DisconnectReason;
use crate::transport::{Dial, Outbound, RequestId, StreamId};

/// The limit for a start. It is longer than the timeout of the probe, so that both eras are tried.
const STARTUP: Duration = Duration::from_secs(20);

/// The additional time for a connection that does not close: 500 ms for a graceful end, 2 s for an end by force, and
/// the tolerance of the timer.
const CLOSE_TIME: Duration = Duration::from_millis(2_502);

/// The error codes with which a server refuses.
const ERRORS: [i64; 4] =
    [code::METHOD_NOT_FOUND, code::UNSUPPORTED_PROTOCOL_VERSION, code::INTERNAL_ERROR, code::HEADER_MISMATCH];

/// An event of a sequence.
#[derive(Debug, Clone)]
enum Step {
    /// The server responds to one of the last requests: 0 is the last one.
    Respond(usize, Reply),
    /// This number of milliseconds passes.
    Advance(u64),
    Disconnect(DisconnectReason),
    /// The caller drops the future of `connect`.
    DropFuture,
}

/// A response to a handshake request.
#[derive(Debug, Clone, Copy)]
enum Reply {
    /// The handshake succeeds.
    Accept,
    /// An error with this code.
    Error(i64),
    /// An invalid result.
    Invalid,
}

fn sequences() -> impl Strategy<Value = (Eras, Option<Era>, ShutdownBehavior, Vec<Step>)> {
    let reply = prop_oneof![
        3 => Just(Reply::Accept),
        2 => prop::sample::select(ERRORS.to_vec()).prop_map(Reply::Error),
        1 => Just(Reply::Invalid),
    ];
    let reason =
        prop_oneof![Just(DisconnectReason::PeerClosed), Just(DisconnectReason::Broken("broken".to_owned()))];
    let step = prop_oneof![
        6 => (0usize..3, reply).prop_map(|(requests_ago, reply)| Step::Respond(requests_ago, reply)),
        5 => (0u64..8_000).prop_map(Step::Advance),
        2 => reason.prop_map(Step::Disconnect),
        1 => Just(Step::DropFuture),
    ];
    (
        prop::sample::select(vec![Eras::Both, Eras::Both, Eras::Legacy, Eras::Modern]),
        prop::sample::select(vec![None, Some(Era::Legacy), Some(Era::Modern)]),
        prop::sample::select(vec![
            ShutdownBehavior::Immediate,
            ShutdownBehavior::Delayed(200),
            ShutdownBehavior::Never,
        ]),
        prop::collection::vec(step, 0..12),
    )
}

/// The connections that were dialled, and their requests.
struct Servers {
    dialled: mpsc::UnboundedReceiver<Peer>,
    peers: Vec<Peer>,
    requests: Vec<HandshakeRequest>,
    /// Whether a valid response was sent.
    accepted: bool,
}

/// A request of a handshake.
struct HandshakeRequest {
    /// The index of its connection.
    peer: usize,
    id: RequestId,
    method: String,
}

impl Servers {
    /// Reads what was sent. There must be no cancel notice.
    fn read_sent(&mut self) {
        self.peers.extend(std::iter::from_fn(|| self.dialled.try_recv().ok()));
        for (index, peer) in self.peers.iter_mut().enumerate() {
            for out in peer.sent() {
                match out {
                    Outbound::Cancel { id, notice } => {
                        assert_eq!(notice, None, "a handshake sends no cancel notice");
                        let count = self.requests.iter().filter(|it| (it.peer, it.id) == (index, id)).count();
                        assert_eq!(count, 1, "only sent requests are released");
                    }
                    Outbound::Send(message) => {
                        if let Some(id) = message.head.id {
                            let method = message.head.method_name().unwrap().to_owned();
                            self.requests.push(HandshakeRequest { peer: index, id, method });
                        }
                    }
                }
            }
        }
    }

    fn respond(&mut self, requests_ago: usize, reply: Reply) {
        let Some(index) = self.requests.len().checked_sub(requests_ago + 1) else { return };
        let HandshakeRequest { peer, id, ref method } = self.requests[index];
        let era = if method == "initialize" { Era::Legacy } else { Era::Modern };
        let message: Value = match reply {
            Reply::Accept => handshake_response(id, era),
            Reply::Error(code) => json!({"id": id, "error": {"code": code, "message": "no"}}),
            Reply::Invalid => json!({"id": id, "result": 7}),
        };
        self.peers[peer].sink.deliver(StreamId::Shared, message.to_string().into());
        self.accepted |= matches!(reply, Reply::Accept);
    }
}

async fn run_sequence(
    (eras, known_era, shutdown_behavior, steps): (Eras, Option<Era>, ShutdownBehavior, Vec<Step>),
) {
    let (peers, dialled) = mpsc::unbounded_channel();
    let mut servers = Servers { dialled, peers: Vec::new(), requests: Vec::new(), accepted: false };
    let mut limits = Limits::default();
    limits.startup = STARTUP;
    let options = SessionOptions { eras, known_era, limits, ..SessionOptions::default() };
    let state = options.state.subscribe();
    let dial: Arc<dyn Dial> = Arc::new(ScriptedDial { peers, shutdown_behavior });
    let mut connecting = Some(Box::pin(Session::connect(dial, options)));
    let flag = Arc::new(WakeFlag { woken: AtomicBool::new(true), any_woken: Arc::new(Notify::new()) });
    let waker = Waker::from(Arc::clone(&flag));
    // A server may be started twice.
    let due = Instant::now() + 2 * (STARTUP + CLOSE_TIME);
    let mut outcome = None;
    // The last step is longer than all deadlines, so that nothing is sent after it.
    for step in [Step::Advance(0)].into_iter().chain(steps).chain([Step::Advance(50_000)]) {
        let mut until = Instant::now();
        match step {
            Step::Respond(requests_ago, reply) => servers.respond(requests_ago, reply),
            Step::Advance(millis) => until += Duration::from_millis(millis),
            Step::Disconnect(reason) => {
                if let Some(end) = servers.peers.last_mut().and_then(|it| it.end.take()) {
                    let _ = end.send(reason);
                }
            }
            Step::DropFuture => connecting = None,
        }
        loop {
            for _ in 0..4 {
                tokio::task::yield_now().await;
                let is_woken = flag.woken.swap(false, Ordering::Relaxed);
                if let Some(future) = connecting.as_mut().filter(|_| is_woken)
                    && let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker))
                {
                    assert!(Instant::now() <= due, "it takes too long");
                    (outcome, connecting) = (Some(done), None);
                }
                servers.read_sent();
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(until) => break,
                () = flag.any_woken.notified() => {}
            }
        }
    }
    assert!(connecting.is_none(), "it ends");
    let state = state.borrow().clone();
    match outcome {
        Some(Ok(session)) => {
            assert!(servers.accepted, "no valid response was sent");
            let has_ended = session.connection.engine.disconnect().is_some();
            assert_eq!(state == SessionState::Connected, !has_ended, "{state:?}");
            // No request of the handshake is left.
            assert_eq!(session.connection.engine.in_flight(), (0, 0));
            drop(session);
        }
        Some(Err(error)) => assert_eq!(state, SessionState::Error(error.to_string())),
        None => assert_eq!(state, SessionState::Error("connecting was cancelled".to_owned())),
    }
    tokio::task::yield_now().await;
    servers.read_sent();
    assert!(servers.peers.iter().all(Peer::is_dropped), "a connection is left behind");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn connect_ends_in_time_and_sends_no_cancel_notice(sequence in sequences()) {
        run_with_paused_time(run_sequence(sequence));
    }
}

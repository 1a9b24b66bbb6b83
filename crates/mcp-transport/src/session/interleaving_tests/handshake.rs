//! Interleaving tests of the handshake: connecting ends in time with the expected result and leaves nothing behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_model::{Era, Limits, code};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::super::{Eras, Session, SessionOptions, SessionState};
use super::calls::Flag;
use super::harness::opened;
use super::peer::{Hand, Manners, Peer};
use super::{config, on_a_paused_clock};
use crate::error::disconnect::DisconnectReason;
use crate::transport::{Dial, Outbound, RequestId, StreamId};

/// Longer than the probe timeout, so that both eras are tried.
const STARTUP: Duration = Duration::from_secs(20);

/// Additional time for a connection that does not close.
const CLOSE_GRACE: Duration = Duration::from_millis(2_502);

/// How a server refuses.
const ERRORS: [i64; 4] =
    [code::METHOD_NOT_FOUND, code::UNSUPPORTED_PROTOCOL_VERSION, code::INTERNAL_ERROR, code::HEADER_MISMATCH];

#[derive(Debug, Clone)]
enum Step {
    /// Responds to the request sent this many requests ago.
    Answer(usize, Reply),
    /// This number of milliseconds passes.
    Pass(u64),
    Leave(DisconnectReason),
    /// The caller drops the future.
    GiveUp,
}

#[derive(Debug, Clone, Copy)]
enum Reply {
    Good,
    /// An error with this code.
    Error(i64),
    /// An invalid response.
    Odd,
}

fn stories() -> impl Strategy<Value = (Eras, Option<Era>, Manners, Vec<Step>)> {
    let reply = prop_oneof![
        3 => Just(Reply::Good),
        2 => prop::sample::select(ERRORS.to_vec()).prop_map(Reply::Error),
        1 => Just(Reply::Odd),
    ];
    let reason =
        prop_oneof![Just(DisconnectReason::PeerClosed), Just(DisconnectReason::Broken("broken".to_owned()))];
    let step = prop_oneof![
        6 => (0usize..3, reply).prop_map(|(back, reply)| Step::Answer(back, reply)),
        5 => (0u64..8_000).prop_map(Step::Pass),
        2 => reason.prop_map(Step::Leave),
        1 => Just(Step::GiveUp),
    ];
    (
        prop::sample::select(vec![Eras::Both, Eras::Both, Eras::Legacy, Eras::Modern]),
        prop::sample::select(vec![None, Some(Era::Legacy), Some(Era::Modern)]),
        prop::sample::select(vec![Manners::Polite, Manners::Slow(200), Manners::Stubborn]),
        prop::collection::vec(step, 0..12),
    )
}

/// The observed connections.
struct Servers {
    dialled: mpsc::UnboundedReceiver<Peer>,
    peers: Vec<Peer>,
    /// The requests: connection, id, method.
    asked: Vec<(usize, RequestId, String)>,
    /// A valid response was sent.
    welcomed: bool,
}

impl Servers {
    /// Reads what was sent; there must be no cancel notice.
    fn hear(&mut self) {
        self.peers.extend(std::iter::from_fn(|| self.dialled.try_recv().ok()));
        for (at, peer) in self.peers.iter_mut().enumerate() {
            for out in peer.sent() {
                match out {
                    Outbound::Cancel { id, notice } => {
                        assert_eq!(notice, None, "nothing of a handshake is cancelled");
                        let of = self.asked.iter().filter(|it| (it.0, it.1) == (at, id)).count();
                        assert_eq!(of, 1, "only what was sent can be let go of");
                    }
                    Outbound::Send(message) => {
                        if let Some(id) = message.head.id {
                            self.asked.push((at, id, message.head.method.into_owned()));
                        }
                    }
                }
            }
        }
    }

    fn answer(&mut self, back: usize, reply: Reply) {
        let Some(at) = self.asked.len().checked_sub(back + 1) else { return };
        let (peer, id, method) = self.asked[at].clone();
        let era = if method == "initialize" { Era::Legacy } else { Era::Modern };
        let message: Value = match reply {
            Reply::Good => opened(id, era),
            Reply::Error(code) => json!({"id": id, "error": {"code": code, "message": "no"}}),
            Reply::Odd => json!({"id": id, "result": 7}),
        };
        self.peers[peer].inbox.deliver(StreamId::Shared, message.to_string().into());
        self.welcomed |= matches!(reply, Reply::Good);
    }
}

async fn tell((eras, remembered, manners, steps): (Eras, Option<Era>, Manners, Vec<Step>)) {
    let (peers, dialled) = mpsc::unbounded_channel();
    let mut servers = Servers { dialled, peers: Vec::new(), asked: Vec::new(), welcomed: false };
    let limits = Limits { startup: STARTUP, ..Limits::default() };
    let options = SessionOptions { eras, known_era: remembered, limits, ..SessionOptions::default() };
    let state = options.state.subscribe();
    let dial: Arc<dyn Dial> = Arc::new(Hand { peers, manners });
    let mut connecting = Some(Box::pin(Session::connect(dial, options)));
    let flag = Arc::new(Flag { woken: AtomicBool::new(true), any: Arc::new(Notify::new()) });
    let waker = Waker::from(Arc::clone(&flag));
    let due = Instant::now() + STARTUP + CLOSE_GRACE;
    let mut outcome = None;
    // At the end nothing more is sent.
    for step in [Step::Pass(0)].into_iter().chain(steps).chain([Step::Pass(25_000)]) {
        let mut until = Instant::now();
        match step {
            Step::Answer(back, reply) => servers.answer(back, reply),
            Step::Pass(millis) => until += Duration::from_millis(millis),
            Step::Leave(reason) => {
                if let Some(end) = servers.peers.last_mut().and_then(|it| it.end.take()) {
                    let _ = end.send(reason);
                }
            }
            Step::GiveUp => connecting = None,
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
                servers.hear();
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(until) => break,
                () = flag.any.notified() => {}
            }
        }
    }
    assert!(connecting.is_none(), "it ends");
    let state = state.borrow().clone();
    match outcome {
        Some(Ok(session)) => {
            assert!(servers.welcomed, "nobody has let it in");
            let over = session.connection.engine().disconnect().is_some();
            assert_eq!(state == SessionState::Connected, !over, "{state:?}");
            // Earlier requests have ended, and no request follows.
            assert_eq!(session.connection.engine().in_flight(), (0, 0));
            drop(session);
        }
        Some(Err(error)) => assert_eq!(state, SessionState::Error(error.to_string())),
        None => assert_eq!(state, SessionState::Error("connecting was cancelled".to_owned())),
    }
    tokio::task::yield_now().await;
    servers.hear();
    assert!(servers.peers.iter().all(Peer::is_gone), "a connection is left behind");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_the_order_an_opening_ends_in_time_and_cancels_nothing(story in stories()) {
        on_a_paused_clock(tell(story));
    }
}

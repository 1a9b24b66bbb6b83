//! A scripted connection: the test delivers frames, ends the connection, and reads what was sent.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot};
use tokio::task::unconstrained;

use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::transport::{Dial, FrameSink, HandshakeMode, Link, Outbound, OutboundQueue, Transport};

/// How a connection reacts to a shutdown.
#[derive(Debug, Clone, Copy)]
pub(super) enum ShutdownBehavior {
    /// It ends at once.
    Immediate,
    /// It ends after this number of milliseconds.
    Delayed(u64),
    /// It does not end.
    Never,
}

/// The test's side of a connection.
pub(super) struct Peer {
    pub(super) sink: Arc<dyn FrameSink>,
    pub(super) outbound: OutboundQueue,
    /// Ends the connection for this reason.
    pub(super) end: Option<oneshot::Sender<DisconnectReason>>,
    /// The connection owns the only strong reference.
    alive: Weak<()>,
}

impl Peer {
    /// Whether the connection was dropped.
    pub(super) fn is_dropped(&self) -> bool {
        self.alive.strong_count() == 0
    }

    /// Returns what was sent since the last call. Runs without Tokio's coop budget, which would hide a part of it.
    pub(super) fn sent(&mut self) -> Vec<Outbound> {
        std::iter::from_fn(|| unconstrained(self.outbound.next()).now_or_never().flatten()).collect()
    }
}

/// A dial that creates scripted connections and passes the test's side of each to the test.
pub(super) struct ScriptedDial {
    pub(super) peers: mpsc::UnboundedSender<Peer>,
    pub(super) shutdown_behavior: ShutdownBehavior,
}

impl Dial for ScriptedDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(ScriptedTransport { peers: self.peers.clone(), shutdown_behavior: self.shutdown_behavior })
    }

    fn label(&self) -> String {
        "scripted".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

struct ScriptedTransport {
    peers: mpsc::UnboundedSender<Peer>,
    shutdown_behavior: ShutdownBehavior,
}

#[async_trait]
impl Transport for ScriptedTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let Link { outbound, inbound: sink, mut shutdown } = link;
        let (end, ended) = oneshot::channel();
        let alive = Arc::new(());
        let _ = self.peers.send(Peer { sink, outbound, end: Some(end), alive: Arc::downgrade(&alive) });
        let stopped = async {
            shutdown.requested().await;
            match self.shutdown_behavior {
                ShutdownBehavior::Immediate => {}
                ShutdownBehavior::Delayed(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                ShutdownBehavior::Never => std::future::pending().await,
            }
        };
        tokio::select! {
            Ok(reason) = ended => Disconnect::new(reason),
            () = stopped => Disconnect::new(DisconnectReason::Stopped),
        }
    }
}

//! A scripted connection: the test decides what arrives and when it ends, and sees what is sent.

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
pub(super) enum Manners {
    /// It ends at once.
    Polite,
    /// It ends after this number of milliseconds.
    Slow(u64),
    /// It does not end.
    Stubborn,
}

/// The test's side of a connection.
pub(super) struct Peer {
    pub(super) inbox: Arc<dyn FrameSink>,
    pub(super) out: OutboundQueue,
    /// Ends the connection.
    pub(super) end: Option<oneshot::Sender<DisconnectReason>>,
    /// Dropped with the connection.
    alive: Weak<()>,
}

impl Peer {
    /// Whether the connection was dropped.
    pub(super) fn is_gone(&self) -> bool {
        self.alive.strong_count() == 0
    }

    /// Returns what was sent since the last call. Runs without Tokio's coop budget, which would hide a part of it.
    pub(super) fn sent(&mut self) -> Vec<Outbound> {
        std::iter::from_fn(|| unconstrained(self.out.next()).now_or_never().flatten()).collect()
    }
}

/// A dial that creates scripted connections and passes the test's side of each to the test.
pub(super) struct Hand {
    pub(super) peers: mpsc::UnboundedSender<Peer>,
    pub(super) manners: Manners,
}

impl Dial for Hand {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(Connection { peers: self.peers.clone(), manners: self.manners })
    }

    fn label(&self) -> String {
        "by hand".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

struct Connection {
    peers: mpsc::UnboundedSender<Peer>,
    manners: Manners,
}

#[async_trait]
impl Transport for Connection {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let Link { outbound: out, inbound: inbox, shutdown: mut stop } = link;
        let (end, ended) = oneshot::channel();
        let alive = Arc::new(());
        let _ = self.peers.send(Peer { inbox, out, end: Some(end), alive: Arc::downgrade(&alive) });
        let stopped = async {
            stop.requested().await;
            match self.manners {
                Manners::Polite => {}
                Manners::Slow(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                Manners::Stubborn => std::future::pending().await,
            }
        };
        tokio::select! {
            Ok(reason) = ended => Disconnect::new(reason),
            () = stopped => Disconnect::new(DisconnectReason::Stopped),
        }
    }
}

//! Counts the connections of a host, so that its shutdown can say that none is left.
//!
//! A session that is dropped ends its connection, but nobody can wait for that: the wire's task is given up, and what
//! it holds (a process) goes with it a moment later. So every wire counts itself while it runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_transport::{Dial, Disconnect, DisconnectReason, HandshakeMode, Link, RequestError, Transport};
use tokio::sync::watch;

use crate::supervisor::gate::Gate;

/// How long a shutdown waits for connections that were given up.
const PATIENCE: Duration = Duration::from_secs(2);

/// The connections of one host.
#[derive(Clone, Default)]
pub(crate) struct Wires(Arc<Place>);

#[derive(Default)]
struct Place {
    gate: Gate,
    cut: watch::Sender<bool>,
}

impl Wires {
    /// The same place, with its connections counted.
    pub(crate) fn counted(&self, dial: Arc<dyn Dial>) -> Arc<dyn Dial> {
        Arc::new(CountedDial { dial, place: Arc::clone(&self.0) })
    }

    /// Lets no connection begin any more, and resolves when none is left.
    pub(crate) async fn ended(&self) {
        self.0.gate.seal();
        if tokio::time::timeout(PATIENCE, self.0.gate.emptied()).await.is_err() {
            tracing::error!("a connection does not end");
        }
    }

    /// Gives up all connections, however many hold them, and lets none begin any more.
    pub(crate) fn cut(&self) {
        self.0.gate.seal();
        self.0.cut.send_replace(true);
    }
}

struct CountedDial {
    dial: Arc<dyn Dial>,
    place: Arc<Place>,
}

impl Dial for CountedDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(CountedWire { wire: self.dial.dial(), place: Arc::clone(&self.place) })
    }

    fn label(&self) -> String {
        self.dial.label()
    }

    fn redact(&self, text: &str) -> String {
        self.dial.redact(text)
    }

    fn redact_json(&self, json: &str) -> Option<String> {
        self.dial.redact_json(json)
    }

    fn handshake_mode(&self) -> HandshakeMode {
        self.dial.handshake_mode()
    }

    fn fallback(&self, refusal: &RequestError) -> Option<Arc<dyn Dial>> {
        let dial = self.dial.fallback(refusal)?;
        Some(Arc::new(CountedDial { dial, place: Arc::clone(&self.place) }))
    }

    fn diagnostic_probe(&self, refusal: &RequestError) -> Option<Arc<dyn Dial>> {
        let dial = self.dial.diagnostic_probe(refusal)?;
        Some(Arc::new(CountedDial { dial, place: Arc::clone(&self.place) }))
    }

    fn is_authorizing(&self) -> bool {
        self.dial.is_authorizing()
    }
}

struct CountedWire {
    wire: Box<dyn Transport>,
    place: Arc<Place>,
}

impl Transport for CountedWire {
    fn run<'a>(self: Box<Self>, link: Link) -> Pin<Box<dyn Future<Output = Disconnect> + Send + 'a>>
    where
        Self: 'a,
    {
        let CountedWire { wire, place } = *self;
        Box::pin(async move {
            let mut cut = place.cut.subscribe();
            let Some(guard) = place.gate.begin() else { return Disconnect::new(DisconnectReason::Stopped) };
            // When this is dropped, the wire goes before the guard, for it was made after it. What it holds goes with
            // it, by its contract.
            let ended = tokio::select! {
                ended = wire.run(link) => ended,
                _ = cut.wait_for(|it| *it) => Disconnect::new(DisconnectReason::Stopped),
            };
            drop(guard);
            ended
        })
    }
}

#[cfg(test)]
mod tests {
    use mcp_transport::{ConnectError, Session, SessionOptions};
    use tokio::time::Instant;

    use super::*;

    /// A server that never says anything.
    struct Silent;

    impl Transport for Silent {
        fn run<'a>(self: Box<Self>, link: Link) -> Pin<Box<dyn Future<Output = Disconnect> + Send + 'a>>
        where
            Self: 'a,
        {
            Box::pin(async move {
                let Link { outbound: _out, inbound: _inbox, shutdown: mut stop } = link;
                stop.requested().await;
                Disconnect::new(DisconnectReason::Stopped)
            })
        }
    }

    impl Dial for Silent {
        fn dial(&self) -> Box<dyn Transport> {
            Box::new(Silent)
        }

        fn label(&self) -> String {
            String::new()
        }

        fn redact(&self, text: &str) -> String {
            text.to_owned()
        }

        fn handshake_mode(&self) -> HandshakeMode {
            HandshakeMode::Negotiate
        }
    }

    #[tokio::test(start_paused = true)]
    async fn hd_fr024_a_connection_that_is_given_up_is_waited_for() {
        let wires = Wires::default();
        let start = || Session::connect(wires.counted(Arc::new(Silent)), SessionOptions::default());
        let connecting = tokio::spawn(start());
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut ended = Box::pin(wires.ended());
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut ended).await.is_err());
        connecting.abort();
        let begun = Instant::now();
        ended.await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        // None begins any more.
        let refused = start().await.map(|_| ()).unwrap_err();
        assert!(matches!(refused, ConnectError::Disconnected(it) if it.reason == DisconnectReason::Stopped));
    }
}

//! Counts the connections of a host, so that shutdown can wait for all of them.
//!
//! Dropping a session aborts its transport task, which ends a moment later together with its process. Therefore each
//! transport counts itself while it runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_transport::{
    Dial, Disconnect, DisconnectReason, HandshakeMode, Link, RequestError, Transport, TransportProbe,
};
use tokio::sync::watch;

use crate::supervisor::gate::Gate;

/// The time for which a shutdown waits for aborted connections.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// A counter of the connections of one host.
#[derive(Clone, Default)]
pub(crate) struct ConnectionCounter(Arc<CounterState>);

/// The state that a counter shares with the transports that it counts.
#[derive(Default)]
struct CounterState {
    /// Counts the running transports.
    gate: Arc<Gate>,
    /// Whether all transports must end at once.
    abort: watch::Sender<bool>,
}

impl ConnectionCounter {
    /// Returns a dial like `dial` whose transports are counted.
    pub(crate) fn wrap(&self, dial: Arc<dyn Dial>) -> Arc<dyn Dial> {
        Arc::new(CountedDial { dial, state: Arc::clone(&self.0) })
    }

    /// Refuses new connections and waits until none is left.
    pub(crate) async fn close(&self) {
        self.0.gate.seal();
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, self.0.gate.wait_drained()).await.is_err() {
            tracing::error!("a connection was not closed in time");
        }
    }

    /// Aborts all connections and refuses new ones.
    pub(crate) fn abort(&self) {
        self.0.gate.seal();
        self.0.abort.send_replace(true);
    }
}

/// A dial whose transports are counted.
struct CountedDial {
    dial: Arc<dyn Dial>,
    state: Arc<CounterState>,
}

impl Dial for CountedDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(CountedTransport { transport: self.dial.dial(), state: Arc::clone(&self.state) })
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
        Some(Arc::new(CountedDial { dial, state: Arc::clone(&self.state) }))
    }

    fn diagnostic_probe(&self, refusal: &RequestError) -> Option<TransportProbe> {
        let mut probe = self.dial.diagnostic_probe(refusal)?;
        probe.dial = Arc::new(CountedDial { dial: probe.dial, state: Arc::clone(&self.state) });
        Some(probe)
    }

    fn can_lose_session(&self) -> bool {
        self.dial.can_lose_session()
    }

    fn is_authorizing(&self) -> bool {
        self.dial.is_authorizing()
    }
}

/// A transport that is counted while it runs.
struct CountedTransport {
    transport: Box<dyn Transport>,
    state: Arc<CounterState>,
}

impl Transport for CountedTransport {
    fn run<'a>(self: Box<Self>, link: Link) -> Pin<Box<dyn Future<Output = Disconnect> + Send + 'a>>
    where
        Self: 'a,
    {
        let CountedTransport { transport, state } = *self;
        Box::pin(async move {
            let mut abort = state.abort.subscribe();
            let Some(guard) = state.gate.enter() else { return Disconnect::new(DisconnectReason::Stopped) };
            // On drop the transport is dropped before the guard, so what it holds is released before it is uncounted.
            let ended = tokio::select! {
                ended = transport.run(link) => ended,
                _ = abort.wait_for(|it| *it) => Disconnect::new(DisconnectReason::Stopped),
            };
            drop(guard);
            ended
        })
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_transport::{ConnectError, Session, SessionOptions};
    use tokio::time::Instant;

    use super::*;

    /// A server that sends nothing.
    struct Silent;

    impl Transport for Silent {
        fn run<'a>(self: Box<Self>, link: Link) -> Pin<Box<dyn Future<Output = Disconnect> + Send + 'a>>
        where
            Self: 'a,
        {
            Box::pin(async move {
                let Link { outbound: _out, inbound: _inbox, shutdown: mut stop, .. } = link;
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
    async fn hd_fr024_shutdown_waits_for_aborted_connection() {
        let connections = ConnectionCounter::default();
        let start = || Session::connect(connections.wrap(Arc::new(Silent)), SessionOptions::default());
        let connecting = tokio::spawn(start());
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut ended = Box::pin(connections.close());
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut ended).await.is_err());
        connecting.abort();
        let begun = Instant::now();
        ended.await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        // New connections are refused.
        let refused = start().await.map(|_| ()).unwrap_err();
        assert!(matches!(refused, ConnectError::Disconnected(it) if it.reason == DisconnectReason::Stopped));
    }
}

//! Opens and reopens sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::ConnectError;
use crate::session::cache::ResultCache;
use crate::session::connection::SessionParts;
use crate::session::handshake::{self, HandshakeConnection, OpenedConnection};
use crate::session::incoming::request_responder::RequestResponder;
use crate::session::list_changes::ListSet;
use crate::session::options::SessionOptions;
use crate::session::session_state::SessionState;
use crate::session::session_trust::SessionTrust;
use crate::session::state::Session;
use crate::transport::{Dial, Epoch};

/// Sets the state to an error when connecting is cancelled.
struct ConnectingGuard<'a>(&'a watch::Sender<SessionState>);

impl Drop for ConnectingGuard<'_> {
    fn drop(&mut self) {
        self.0.send_replace(SessionState::Error("connecting was cancelled".to_owned()));
    }
}

impl Session {
    /// Starts or contacts the server and does the handshake of its era, within `options.limits.startup`. A
    /// server of both eras that started slowly is started a second time, with the same limit, so that its era
    /// does not depend on how fast it starts. A failure leaves no process and no connection behind.
    /// Cancel-safe: dropping the future releases everything.
    pub async fn connect(dial: Arc<dyn Dial>, options: SessionOptions) -> Result<Session, ConnectError> {
        options.state.send_replace(SessionState::Connecting);
        let connecting = ConnectingGuard(&options.state);
        let cache = ResultCache::default();
        let responder =
            Arc::new(RequestResponder::new(options.handlers.clone(), options.limits.message_bytes));
        let parts =
            SessionParts { responder: Arc::clone(&responder), read_results: Arc::clone(&cache.read_results) };
        let outcome = handshake::open(&dial, &options, &parts).await;
        // Connecting was not cancelled.
        std::mem::forget(connecting);
        match outcome {
            Ok(OpenedConnection { connection, negotiated, deadline: start_deadline }) => {
                connection.set_connected();
                let negotiated = Arc::new(negotiated);
                connection.open_notification_stream(&negotiated);
                let limits = ArcSwap::from_pointee(options.limits.clone());
                let level = options.log_level;
                connection.send_settings(&negotiated, level, options.limits.request, Epoch(0));
                Ok(Session {
                    connection,
                    dial,
                    limits,
                    log_level: Mutex::new(level),
                    options,
                    epoch: AtomicU32::new(0),
                    negotiated: ArcSwap::new(negotiated),
                    start_deadline,
                    responder,
                    cache,
                    trust: SessionTrust::default(),
                    suspected_outages: watch::Sender::new(0),
                    reopening: tokio::sync::Mutex::new(None),
                })
            }
            Err(error) => {
                options.state.send_replace(SessionState::Error(error.to_string()));
                Err(error)
            }
        }
    }

    /// Repeats the handshake after the server lost the session of `epoch`. Many callers may notice at once: the first
    /// one reopens the session, the others wait for it.
    pub(crate) async fn reopen(&self, epoch: Epoch) -> Result<(), Arc<ConnectError>> {
        let requested_at = Instant::now();
        let mut last_failure = self.reopening.lock().await;
        if self.epoch.load(Ordering::Acquire) != epoch.0 {
            return Ok(());
        }
        if let Some((at, error)) = &*last_failure
            && *at >= requested_at
        {
            return Err(Arc::clone(error));
        }
        let next = Epoch(epoch.0 + 1);
        let (connection, options) = (&self.connection, &self.options);
        let handshake = HandshakeConnection { dial: self.dial.as_ref(), connection, options, epoch: next };
        let negotiated = match handshake::reopen(handshake).await {
            Ok(negotiated) => Arc::new(negotiated.with_era_reason(self.era_reason())),
            Err(error) => {
                let error = Arc::new(error);
                *last_failure = Some((Instant::now(), Arc::clone(&error)));
                return Err(error);
            }
        };
        self.negotiated.store(Arc::clone(&negotiated));
        self.epoch.store(next.0, Ordering::Release);
        let level = *self.log_level.lock();
        self.connection.send_settings(&negotiated, level, self.options.limits.request, next);
        // A server that lost the session may have been replaced or updated.
        self.connection.list_changes.send_modify(|counts| counts.count_lists(ListSet::ALL));
        Ok(())
    }
}

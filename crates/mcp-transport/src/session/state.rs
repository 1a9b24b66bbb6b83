//! A session, its state, and what is known about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use mcp_host_model::{Era, Limits, LogLevel, Method, ProtocolVersion};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::ConnectError;
use crate::error::disconnect::Disconnect;
use crate::session::cache::ResultCache;
use crate::session::connection::Connection;
use crate::session::incoming::request_responder::RequestResponder;
use crate::session::list_changes::ListChangeCounts;
use crate::session::negotiated::Negotiated;
use crate::session::negotiated::era_reason::EraReason;
use crate::session::negotiated::server::ServerInfo;
use crate::session::options::SessionOptions;
use crate::session::session_state::SessionState;
use crate::transport::{Dial, Epoch};

/// A session with one server.
///
/// It lives from [`Session::connect`], after the handshake, to its end, and is never revived: dial again for
/// a new one. All methods may be called concurrently from many tasks.
///
/// - **Calls end:** with the response, at the deadline, or with the connection. An error says whether the
///   request may have run.
/// - **Cancellation:** dropping the future of a call cancels it at the server. A call makes progress only
///   while its future is polled: over Streamable HTTP the calling task usually reads the response itself.
/// - **Order:** requests of one task are sent in the order of their calls. Responses arrive in any order;
///   progress of a call precedes its response.
/// - **Bounds:** [`Limits`] bounds sizes, times and lists. A session has at most 65,536 calls in flight. It
///   sends at most 512 messages at once over Streamable HTTP, and 256 requests over HTTP with SSE; further
///   calls wait.
/// - **End:** [`Session::close`] ends it gracefully, dropping it at once. Both end the processes that it started.
pub struct Session {
    pub(super) connection: Connection,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) options: SessionOptions,
    pub(super) epoch: AtomicU32,
    pub(super) negotiated: ArcSwap<Negotiated>,
    pub(super) start_deadline: Instant,
    pub(super) limits: ArcSwap<Limits>,
    /// The minimum level of log messages.
    pub(super) log_level: Mutex<Option<LogLevel>>,
    pub(super) responder: Arc<RequestResponder>,
    pub(super) cache: ResultCache,
    /// The number of failures that suggest an outage.
    pub(super) suspicions: watch::Sender<u64>,
    /// The last failure and its time. Callers that waited for the same attempt return it instead of trying again.
    pub(super) reopening: tokio::sync::Mutex<Option<(Instant, Arc<ConnectError>)>>,
}

/// Counters of a session since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SessionCounters {
    /// The number of bytes that were not protocol.
    pub noise_bytes: u64,
    /// The number of messages that were dropped because the server sent too many.
    pub dropped_messages: u64,
}

impl Session {
    /// The server's description of itself.
    pub fn server(&self) -> ServerInfo {
        self.negotiated().server.clone()
    }

    /// The negotiated protocol version.
    pub fn version(&self) -> ProtocolVersion {
        self.negotiated().version
    }

    /// The era of that version.
    pub fn era(&self) -> Era {
        self.version().era()
    }

    /// Why the session has this era.
    pub fn era_reason(&self) -> EraReason {
        self.negotiated().era_reason
    }

    /// When the start, with the first lists, has to be done: `limits.startup` after its beginning, or after the second
    /// beginning if the server had to be started again.
    pub fn start_deadline(&self) -> Instant {
        self.start_deadline
    }

    /// A receiver for the session's state.
    pub fn state(&self) -> watch::Receiver<SessionState> {
        self.options.state.subscribe()
    }

    /// A receiver for the numbers of list changes that the server has announced.
    pub fn list_changes(&self) -> watch::Receiver<ListChangeCounts> {
        self.connection.changes.subscribe()
    }

    /// A receiver for the method of the first sampling, elicitation or roots request that the server has sent on this
    /// connection. Requests in the results of a modern server do not count, because each belongs to a call.
    pub fn first_server_request(&self) -> watch::Receiver<Option<Method>> {
        self.connection.first_request.subscribe()
    }

    /// A receiver for the number of requests that failed because the server may be down
    /// ([`CallError::suggests_outage`](crate::CallError::suggests_outage)). Over HTTP the session does not end then,
    /// because the next request may succeed.
    pub fn suspicions(&self) -> watch::Receiver<u64> {
        self.suspicions.subscribe()
    }

    /// Replaces the limits for requests, idle time and lists, from the next request on. Limits that the transport
    /// enforces (connecting, message size, silent streams) stay as they were when the transport was dialled.
    pub fn set_limits(&self, limits: Limits) {
        self.limits.store(Arc::new(limits));
    }

    /// Resolves when the connection has ended. Cancel-safe.
    pub async fn closed(&self) -> Arc<Disconnect> {
        self.connection.disconnected().await
    }

    /// Closes the connection and returns when the server has ended or was cut off, at the latest when `grace`
    /// has passed. Calls in flight end with [`CallError::Closed`](crate::CallError::Closed).
    ///
    /// The server may end by itself within three quarters of `grace`, or all but 500 ms if that is longer.
    /// The rest is for ending it by force. A zero `grace` cuts it off at once. At most an hour is used. Of
    /// several calls at once, the earliest end applies. Dropping the future leaves the shutdown running; a
    /// transport that ignores it then ends with the session.
    pub async fn close(&self, grace: Duration) -> Arc<Disconnect> {
        self.connection.close(grace).await
    }

    /// What the server sent in vain so far.
    pub fn counters(&self) -> SessionCounters {
        let (noise_bytes, dropped_messages) = self.connection.engine.counters();
        SessionCounters { noise_bytes, dropped_messages }
    }

    /// The guard must not be held across an `.await`: many `arc_swap` guards at once slow down readers.
    pub(crate) fn negotiated(&self) -> Guard<Arc<Negotiated>> {
        self.negotiated.load()
    }

    /// This guard must not be held across an `.await` either.
    pub(crate) fn limits(&self) -> Guard<Arc<Limits>> {
        self.limits.load()
    }

    pub(crate) fn change_negotiated(&self, change: impl Fn(&mut Negotiated)) {
        self.negotiated.rcu(|it| {
            let mut changed = Negotiated::clone(it);
            change(&mut changed);
            changed
        });
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }
}

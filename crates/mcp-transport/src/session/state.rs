//! The session type: its fields, and its methods that send nothing.

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
use crate::rpc::pending::CallerRequests;
use crate::session::cache::ResultCache;
use crate::session::connection::SessionConnection;
use crate::session::incoming::request_responder::RequestResponder;
use crate::session::list_changes::ListChangeCounts;
use crate::session::negotiated::NegotiatedSession;
use crate::session::negotiated::era_reason::EraReason;
use crate::session::negotiated::server::ServerInfo;
use crate::session::options::SessionOptions;
use crate::session::session_state::SessionState;
use crate::session::session_trust::SessionTrust;
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
    pub(super) connection: SessionConnection,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) options: SessionOptions,
    /// The number of times that the session was reopened; see [`Epoch`].
    pub(super) epoch: AtomicU32,
    pub(super) negotiated: ArcSwap<NegotiatedSession>,
    /// The deadline of the start, which includes the first lists.
    pub(super) start_deadline: Instant,
    /// The current limits; `options.limits` are those of the start.
    pub(super) limits: ArcSwap<Limits>,
    /// The minimum level of log messages.
    pub(super) log_level: Mutex<Option<LogLevel>>,
    pub(super) responder: Arc<RequestResponder>,
    pub(super) cache: ResultCache,
    pub(super) trust: SessionTrust,
    /// The number of requests that failed because the server may be down.
    pub(super) suspected_outages: watch::Sender<u64>,
    /// Locked while the session is reopened. Has the time and the error of the last failure, so that callers that
    /// waited for a failed attempt do not try again.
    pub(super) reopening: tokio::sync::Mutex<Option<(Instant, Arc<ConnectError>)>>,
}

/// Counters of a session since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SessionCounters {
    /// The number of received bytes that were not JSON-RPC.
    pub noise_bytes: u64,
    /// The number of dropped messages: notifications of a server that sent too many, and responses to a server that did
    /// not read.
    pub dropped_messages: u64,
    /// The number of responses to requests of callers: those of the session itself, such as lists and pings, do not
    /// count.
    pub answered_requests: u64,
    /// The number of requests of callers that waited for a response when the connection ended.
    pub lost_requests: u64,
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

    /// The era of the negotiated version.
    pub fn era(&self) -> Era {
        self.version().era()
    }

    /// Why the session has this era.
    pub fn era_reason(&self) -> EraReason {
        self.negotiated().era_reason
    }

    /// The deadline of the start, which includes the first lists: `limits.startup` after the start began. If the server
    /// had to be started a second time, it counts from then.
    pub fn start_deadline(&self) -> Instant {
        self.start_deadline
    }

    /// A receiver for the session's state.
    pub fn state(&self) -> watch::Receiver<SessionState> {
        self.options.state.subscribe()
    }

    /// A receiver for the numbers of list changes that the server has announced.
    pub fn list_changes(&self) -> watch::Receiver<ListChangeCounts> {
        self.connection.list_changes.subscribe()
    }

    /// A receiver for the method of the first sampling, elicitation or roots request that the server has sent on this
    /// connection. Requests in the results of a modern server do not count, because each belongs to a call.
    pub fn first_server_request(&self) -> watch::Receiver<Option<Method>> {
        self.connection.first_server_request.subscribe()
    }

    /// A receiver for the number of requests that failed because the server may be down
    /// ([`CallError::suggests_outage`](crate::CallError::suggests_outage)). Over HTTP the session does not end then,
    /// because the next request may succeed.
    pub fn suspected_outages(&self) -> watch::Receiver<u64> {
        self.suspected_outages.subscribe()
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

    /// Closes the connection and returns when the server has ended or was ended by force, at the latest when `grace`
    /// has passed. Calls in flight end with [`CallError::Closed`](crate::CallError::Closed).
    ///
    /// The server may end by itself within three quarters of `grace`, or all but 500 ms if that is longer.
    /// The rest is for ending it by force. A zero `grace` ends it by force at once. A `grace` of more than an hour
    /// counts as an hour. Of several concurrent calls, the earliest deadline counts. Dropping the future does not stop
    /// the shutdown, but a transport that ignores it ends only when the session is dropped.
    pub async fn close(&self, grace: Duration) -> Arc<Disconnect> {
        self.connection.close(grace).await
    }

    /// The counters of the session since its start.
    pub fn counters(&self) -> SessionCounters {
        let engine = &self.connection.engine;
        let CallerRequests { answered, lost } = engine.caller_requests();
        SessionCounters {
            noise_bytes: engine.noise_bytes(),
            dropped_messages: engine.dropped_messages(),
            answered_requests: answered,
            lost_requests: lost,
        }
    }

    /// The current result of the handshake. The guard must not be held across an `.await`: many `arc_swap` guards at
    /// once slow down readers.
    pub(crate) fn negotiated(&self) -> Guard<Arc<NegotiatedSession>> {
        self.negotiated.load()
    }

    /// The current limits. The guard must not be held across an `.await`, like that of `negotiated`.
    pub(crate) fn limits(&self) -> Guard<Arc<Limits>> {
        self.limits.load()
    }

    /// Applies a change to the result of the handshake. `change` may run several times.
    pub(crate) fn update_negotiated(&self, change: impl Fn(&mut NegotiatedSession)) {
        self.negotiated.rcu(|it| {
            let mut changed = NegotiatedSession::clone(it);
            change(&mut changed);
            changed
        });
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }
}

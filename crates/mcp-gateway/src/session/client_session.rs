//! A session of the legacy era: an HTTP session, or the session of a stdio client.
//!
//! A session is a dialog of the host. Its leases end with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_host_model::{LogLevel, MethodName, ProtocolVersion};
use mcp_host_runtime::metrics::record_session;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::access::secret_id::new_secret_id;
use crate::metrics::SESSION_DURATION;
use crate::session::client_channel::ClientChannel;
use crate::session::client_dialog::ClientDialog;
use crate::session::event_log::EventLog;
use crate::session::features::ClientFeatures;
use crate::session::known_lists::KnownLists;
use crate::session::known_tasks::KnownTasks;
use crate::session::resource_subscriptions::ResourceSubscriptions;
use crate::session::running_requests::RunningRequests;
use crate::session::usage::{Usage, is_call};

/// A session.
#[derive(Debug)]
pub(crate) struct ClientSession {
    /// Its id, which must not be logged.
    pub(crate) id: String,
    /// The client that it belongs to.
    pub(crate) principal: Principal,
    /// The part of the catalog that it may use.
    pub(crate) scope: Arc<Scope>,
    /// The negotiated version.
    pub(crate) version: ProtocolVersion,
    /// The client's capabilities.
    pub(crate) features: Arc<ClientFeatures>,
    /// The name that the client gave itself.
    pub(crate) client_name: Option<String>,
    /// Holds its leases.
    pub(crate) dialog: Arc<ClientDialog>,
    /// The client's requests that are being handled.
    pub(crate) running: Arc<RunningRequests>,
    /// Its notification stream, and the requests to the client that wait for a response.
    pub(crate) channel: Arc<ClientChannel>,
    /// The lists that the client knows.
    pub(crate) known_lists: Mutex<KnownLists>,
    /// The resources that the client has subscribed to.
    pub(crate) subscriptions: ResourceSubscriptions,
    /// The tasks that the client knows.
    pub(crate) known_tasks: KnownTasks,
    /// Cancelled when the session ends.
    pub(crate) ended: CancellationToken,
    /// The recent events of its notification stream.
    pub(crate) event_log: EventLog,
    started: Instant,
    log_level: Mutex<Option<LogLevel>>,
    last_used: Mutex<Instant>,
    /// Whether a request did more than list.
    has_called: AtomicBool,
}

impl Drop for ClientSession {
    /// Records the duration of the session.
    fn drop(&mut self) {
        record_session(SESSION_DURATION, self.principal.transport(), self.version, self.started);
    }
}

/// The parameters of a session that `initialize` negotiates.
pub(crate) struct Handshake {
    pub(crate) version: ProtocolVersion,
    /// The client's capabilities.
    pub(crate) features: Arc<ClientFeatures>,
    /// The name that the client gave itself.
    pub(crate) client_name: Option<String>,
}

impl ClientSession {
    /// A new session.
    pub(crate) fn new(
        principal: Principal,
        scope: Arc<Scope>,
        handshake: Handshake,
        dialog: Arc<ClientDialog>,
        known_lists: KnownLists,
    ) -> ClientSession {
        ClientSession {
            id: new_secret_id(),
            principal,
            scope,
            version: handshake.version,
            features: handshake.features,
            client_name: handshake.client_name,
            channel: Arc::clone(dialog.channel()),
            dialog,
            running: Arc::default(),
            known_lists: Mutex::new(known_lists),
            subscriptions: ResourceSubscriptions::default(),
            known_tasks: KnownTasks::default(),
            ended: CancellationToken::new(),
            event_log: EventLog::default(),
            started: Instant::now(),
            log_level: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
            has_called: AtomicBool::new(false),
        }
    }

    /// Marks the session as used.
    pub(crate) fn touch(&self, now: Instant) {
        *self.last_used.lock() = now;
    }

    /// Records a request of the client.
    pub(crate) fn record_request(&self, method: &MethodName) {
        if is_call(method) {
            self.has_called.store(true, Ordering::Relaxed);
        }
    }

    /// Its usage; `None` while a request runs or its stream is open.
    pub(crate) fn idle_usage(&self) -> Option<Usage> {
        let has_stream = self.channel.stream_sender().is_some_and(|sender| !sender.is_closed());
        let is_unused = self.running.is_idle() && !has_stream;
        let has_called = self.has_called.load(Ordering::Relaxed);
        is_unused.then(|| Usage { has_called, last_used: *self.last_used.lock() })
    }

    /// The minimum level of log messages; `None` if the client set none.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        *self.log_level.lock()
    }

    /// Sets the minimum level of log messages.
    pub(crate) fn set_log_level(&self, level: LogLevel) {
        *self.log_level.lock() = Some(level);
    }

    /// Closes its notification stream, and each one that is opened later. Its requests keep running.
    pub(crate) fn close_streams(&self) {
        self.ended.cancel();
    }

    /// Ends the session: cancels its requests and closes its streams. Its leases end when nothing uses them.
    pub(crate) fn end(&self) {
        self.close_streams();
        self.running.cancel_all();
    }
}

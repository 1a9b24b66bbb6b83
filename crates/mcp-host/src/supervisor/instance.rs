//! A running instance of a server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Era, ErrorKind, LogLevel, Method, RawJson};
use mcp_host_transport::{CallError, CallOptions, ProcessIdCell, Session, SessionState, StderrLines};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::HostError;
use crate::notifications::log_levels::LogLevels;
use crate::notifications::subscriptions::{InstanceKey, Subscriptions};
use crate::state::dialog_id::DialogId;
use crate::supervisor::gate::Gate;
use crate::supervisor::machine::{DrainMode, saturating_after};
use crate::supervisor::server_error::call_error;
use crate::supervisor::task_registry::TaskRegistry;
use crate::telemetry::metrics::ConnectionGauge;

/// The timeout of a check whether the server is up.
const OUTAGE_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The minimum time that a server has to close.
const MIN_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The time limits for closing instances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CloseLimits {
    /// The time for which calls and pins may use an instance that was replaced or stopped.
    pub(crate) drain: Duration,
    /// The time that a server has to close, and that calls have after a shutdown began.
    pub(crate) grace: Duration,
}

/// The instance type of the state machine.
pub(crate) type InstanceRef = Arc<Instance>;

/// A running instance: a session with a server, and the gate of its calls.
pub(crate) struct Instance {
    /// Counts and refuses calls and pins.
    pub(crate) gate: Arc<Gate>,
    /// The session.
    pub(crate) session: Session,
    /// The server with its current limits.
    server: RwLock<Arc<ResolvedServer>>,
    /// The creation time, on both clocks.
    created: (Instant, SystemTime),
    /// Milliseconds from creation to the start or end of the last call; 0 before the first.
    last_used_ms: AtomicU64,
    process: ProcessIdCell,
    /// Counts the connection in the metrics until it is closed.
    gauge: Mutex<Option<ConnectionGauge>>,
    /// The log level that was last sent. The lock is held while another one is sent.
    current_level: tokio::sync::Mutex<Option<LogLevel>>,
    /// The dialog that leases it; `None` for a shared instance.
    dialog: Option<DialogId>,
    /// The URIs of the subscribed resources. The lock is held while they change.
    subscribed: tokio::sync::Mutex<BTreeSet<String>>,
    /// Whether the first server request was reported.
    has_reported_request: AtomicBool,
    /// Whether the server has responded to a ping.
    has_answered_ping: AtomicBool,
    /// The number of suspected outages of the session that were checked.
    checked_suspected_outages: AtomicU64,
}

/// The parts of an instance.
pub(crate) struct InstanceParts {
    pub(crate) session: Session,
    pub(crate) server: Arc<ResolvedServer>,
    pub(crate) process: ProcessIdCell,
    pub(crate) created: SystemTime,
    pub(crate) gauge: ConnectionGauge,
    pub(crate) current_level: Option<LogLevel>,
    pub(crate) dialog: Option<DialogId>,
}

impl Instance {
    /// Creates an instance without calls.
    pub(crate) fn new(parts: InstanceParts) -> Instance {
        let InstanceParts { session, server, process, created, gauge, current_level, dialog } = parts;
        Instance {
            gate: Arc::default(),
            session,
            server: RwLock::new(server),
            created: (Instant::now(), created),
            last_used_ms: AtomicU64::new(0),
            process,
            gauge: Mutex::new(Some(gauge)),
            current_level: tokio::sync::Mutex::new(current_level),
            dialog,
            subscribed: tokio::sync::Mutex::default(),
            has_reported_request: AtomicBool::new(false),
            has_answered_ping: AtomicBool::new(false),
            checked_suspected_outages: AtomicU64::new(0),
        }
    }

    /// Waits for the first server request and returns its method. Later calls wait forever. Calls for a leased instance
    /// do too, because its requests have one known owner. Cancel-safe.
    pub(crate) async fn wait_for_server_request(&self) -> Method {
        let mut first = self.session.first_server_request();
        if self.dialog.is_none()
            && let Ok(method) = first.wait_for(Option::is_some).await.map(|it| *it)
            && !self.has_reported_request.swap(true, Ordering::Relaxed)
            && let Some(method) = method
        {
            return method;
        }
        std::future::pending().await
    }

    /// Records the start or end of a call.
    pub(crate) fn touch(&self, now: Instant) {
        let after = now.saturating_duration_since(self.created.0).as_millis().max(1);
        self.last_used_ms.fetch_max(u64::try_from(after).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the beginning of the idle time; `None` while calls run or pins exist.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        (!self.gate.is_in_use()).then(|| self.created.0 + self.last_used().unwrap_or_default())
    }

    /// Returns the time from the creation to the start or end of the last call, if there was one.
    pub(crate) fn last_used(&self) -> Option<Duration> {
        Some(self.last_used_ms.load(Ordering::Relaxed)).filter(|it| *it != 0).map(Duration::from_millis)
    }

    /// Returns the creation time.
    pub(crate) fn created_at(&self) -> SystemTime {
        self.created.1
    }

    /// Returns the dialog that leases it; `None` for a shared instance.
    pub(crate) fn dialog(&self) -> Option<&DialogId> {
        self.dialog.as_ref()
    }

    /// Returns the process id of a stdio server.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// Returns the last lines of standard error of a stdio server.
    pub(crate) fn stderr(&self) -> StderrLines {
        self.process.stderr()
    }

    /// Returns the server with its current limits.
    pub(crate) fn server(&self) -> Arc<ResolvedServer> {
        Arc::clone(&self.server.read())
    }

    /// Applies the limits of `server`, which is the same server with other settings.
    pub(crate) fn set_limits(&self, server: Arc<ResolvedServer>) {
        self.session.set_limits(server.spec.limits.clone());
        *self.server.write() = server;
    }

    /// Sends the requested log level if the server supports logging and the level differs.
    pub(crate) async fn apply_log_level(&self, log_levels: &LogLevels) -> Result<(), HostError> {
        let server = self.server();
        let mut current_level = self.current_level.lock().await;
        // Read under the lock: of two concurrent calls, the later one sends the latest level.
        let level = log_levels.level(&server.spec.id);
        let Some(level) = level.filter(|it| *current_level != Some(*it)) else { return Ok(()) };
        if self.session.server().capabilities.logging {
            self.session.set_log_level(level).await.map_err(|it| call_error(&server, &it))?;
        }
        *current_level = Some(level);
        Ok(())
    }

    /// Returns whether requests of this dialog may use it. All dialogs may use a shared instance.
    pub(crate) fn is_usable_by(&self, dialog: &DialogId) -> bool {
        self.dialog.as_ref().is_none_or(|own| own == dialog)
    }

    /// Returns its key for subscriptions.
    pub(crate) fn key(&self) -> InstanceKey {
        InstanceKey { server: self.server().spec.id.clone(), dialog: self.dialog.clone() }
    }

    /// Subscribes to a resource unless it is subscribed already.
    pub(crate) async fn subscribe(&self, uri: &str) -> Result<(), CallError> {
        let mut subscribed = self.subscribed.lock().await;
        if !subscribed.contains(uri) {
            self.session.subscribe_resource(uri).await?;
            subscribed.insert(uri.to_owned());
        }
        Ok(())
    }

    /// Subscribes to the requested resources, and unsubscribes from others. Returns the newly subscribed ones, which
    /// may have changed before.
    pub(crate) async fn sync_subscriptions(&self, requested: &Subscriptions) -> Vec<String> {
        let mut subscribed = self.subscribed.lock().await;
        // Read under the lock, like log levels.
        let requested = requested.uris(&self.key());
        let mut added = Vec::new();
        for uri in requested.difference(&subscribed.clone()) {
            match self.session.subscribe_resource(uri).await {
                Ok(()) => {
                    subscribed.insert(uri.clone());
                    added.push(uri.clone());
                }
                Err(error) => {
                    tracing::warn!(%error, server = %self.server().spec.id, "the subscription failed")
                }
            }
        }
        for uri in subscribed.clone().difference(&requested) {
            subscribed.remove(uri);
            if let Err(error) = self.session.unsubscribe_resource(uri).await {
                tracing::debug!(%error, server = %self.server().spec.id, "the unsubscription failed");
            }
        }
        added
    }

    /// Waits until a request fails in a way that suggests an outage, and a check fails in such a way too. Returns the
    /// error of the check. Any response to the check means that the server is up. Cancel-safe.
    pub(crate) async fn wait_for_outage(&self) -> CallError {
        let mut suspected_outages = self.session.suspected_outages();
        loop {
            let checked = self.checked_suspected_outages.load(Ordering::Relaxed);
            let Ok(count) = suspected_outages.wait_for(|count| *count > checked).await.map(|it| *it) else {
                return std::future::pending().await;
            };
            let method = match self.session.era() {
                Era::Legacy => Method::Ping,
                Era::Modern => Method::Discover,
            };
            let options = CallOptions::with_timeout(OUTAGE_CHECK_TIMEOUT);
            match self.session.request_raw(method, None, &RawJson::empty_object(), options).await {
                Err(error) if error.suggests_outage() => return error,
                Ok(_) | Err(_) => self.checked_suspected_outages.store(count, Ordering::Relaxed),
            }
        }
    }

    /// Pings the server, and once more if there is no response. Fails with the second error. Any response is a success,
    /// except 401, 403 and 410 from a server that has answered a ping before: it no longer accepts the host. A busy
    /// instance is not pinged, because many servers do not respond during a call.
    pub(crate) async fn ping(&self, timeout: Duration) -> Result<(), HostError> {
        let options = || CallOptions::with_timeout(timeout);
        let mut outcome = Ok(());
        for _ in 0..2 {
            if self.gate.is_busy() || self.session.era() == Era::Modern {
                return Ok(());
            }
            let response =
                self.session.request_raw(Method::Ping, None, &RawJson::empty_object(), options()).await;
            outcome = match response {
                Ok(_) | Err(CallError::Rpc(_)) => {
                    self.has_answered_ping.store(true, Ordering::Relaxed);
                    Ok(())
                }
                Err(CallError::Refused(refused))
                    if refused.status().is_some_and(|status| {
                        !matches!(status, 401 | 403 | 410) || !self.has_answered_ping.load(Ordering::Relaxed)
                    }) =>
                {
                    Ok(())
                }
                Err(error) if error.kind().is_a(ErrorKind::Connection) => {
                    Err(call_error(&self.server(), &error))
                }
                Err(_) => Ok(()),
            };
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// Refuses calls, except those for which `drain` waits.
    pub(crate) fn close_gate(&self, drain: DrainMode) {
        match drain {
            DrainMode::CallsAndPins | DrainMode::CallsPinsAndTasks => self.gate.retire(),
            DrainMode::CallsUnlimitedAndTasks => self.gate.seal(),
            DrainMode::Calls | DrainMode::CallsUnlimited => self.gate.close(),
        }
    }

    /// Waits for running calls and `tasks` according to `drain`, then closes the connection. Call
    /// [`Instance::close_gate`] before. Once `shutdown` is set, the wait ends at that time.
    pub(crate) async fn drain_and_close(
        self: &Arc<Instance>,
        drain: DrainMode,
        limits: CloseLimits,
        tasks: &TaskRegistry<Instance>,
        mut shutdown: watch::Receiver<Option<Instant>>,
    ) {
        let (is_limited, waits_for_tasks) = match drain {
            DrainMode::CallsAndPins | DrainMode::Calls => (true, false),
            DrainMode::CallsPinsAndTasks => (true, true),
            DrainMode::CallsUnlimited => (false, false),
            DrainMode::CallsUnlimitedAndTasks => (false, true),
        };
        let limit = is_limited.then(|| saturating_after(Instant::now(), limits.drain));
        let mut state = self.session.state();
        let expired = async {
            tokio::time::sleep_until(limit?).await;
            Some(())
        };
        tokio::select! {
            () = self.gate.wait_drained() => {}
            Some(()) = expired => {
                let server = self.server();
                tracing::warn!(
                    server = %server.spec.id,
                    "the calls and turns that still use a replaced or stopped instance end after {:?}",
                    limits.drain
                );
            }
            // Pins delay neither a shutdown nor the end of a lost connection.
            Ok(Some(at)) = async { shutdown.wait_for(Option::is_some).await.map(|it| *it) } => {
                self.gate.close();
                let _ = tokio::time::timeout_at(at, self.gate.wait_drained()).await;
            }
            Ok(()) = async { state.wait_for(is_over).await.map(drop) } => {
                self.gate.close();
                let _ = tokio::time::timeout(limits.grace, self.gate.wait_drained()).await;
            }
        }
        self.gate.seal();
        if waits_for_tasks && tasks.has_tasks(self, Instant::now()) {
            tokio::select! {
                () = tasks.wait_until_ended(self) => {}
                Ok(()) = async { shutdown.wait_for(Option::is_some).await.map(drop) } => {}
                Ok(()) = async { state.wait_for(is_over).await.map(drop) } => {}
            }
            self.gate.close();
            let at = shutdown.borrow().unwrap_or_else(|| saturating_after(Instant::now(), limits.grace));
            let _ = tokio::time::timeout_at(at, self.gate.wait_drained()).await;
        }
        self.gate.close();
        let at = *shutdown.borrow();
        let left = at.map_or(limits.grace, |at| at.saturating_duration_since(Instant::now()));
        self.session.close(left.max(MIN_CLOSE_TIMEOUT)).await;
        self.release_gauge();
    }

    /// Returns whether pinned calls are accepted.
    pub(crate) fn can_take_pinned(&self) -> bool {
        !self.gate.is_sealed() && !self.is_over()
    }

    /// Returns whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        is_over(&self.session.state().borrow())
    }

    /// Refuses calls and stops counting the connection: the host was dropped and its transports were aborted.
    pub(crate) fn abort(&self) {
        self.gate.close();
        self.release_gauge();
    }

    fn release_gauge(&self) {
        self.gauge.lock().take();
    }
}

/// Returns whether a session in this state has ended.
fn is_over(state: &SessionState) -> bool {
    matches!(state, SessionState::Disconnected | SessionState::Error(_))
}

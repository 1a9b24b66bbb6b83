//! A running instance: its session and its gate.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Era, ErrorKind, LogLevel, Method, RawJson};
use mcp_host_transport::{CallError, CallOptions, ProcessIdCell, Session, SessionState};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::HostError;
use crate::notifications::log_levels::LogLevels;
use crate::notifications::subscriptions::{InstanceKey, Subscriptions};
use crate::state::dialog_id::DialogId;
use crate::supervisor::gate::Gate;
use crate::supervisor::held_tasks::HeldTasks;
use crate::supervisor::machine::{DrainMode, saturating_after};
use crate::supervisor::server_error::call_error;
use crate::telemetry::metrics::ConnectionGauge;

/// How long a check whether the server is up may take.
const OUTAGE_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The minimum time a server gets to close.
const MIN_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The time limits for closing instances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CloseLimits {
    /// How long calls and pins may use an instance that was replaced or stopped.
    pub(crate) drain: Duration,
    /// How long a server may take to close, and how long calls may run after a shutdown began.
    pub(crate) grace: Duration,
}

/// The instance type of the state machine.
pub(crate) type InstanceRef = Arc<Instance>;

/// A connection with its calls.
pub(crate) struct Instance {
    /// Counts calls and pins.
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
    /// Counts the open connection.
    gauge: Mutex<Option<ConnectionGauge>>,
    /// The log level last sent. The lock is held while another is sent.
    current_level: tokio::sync::Mutex<Option<LogLevel>>,
    /// The dialog that leases it.
    dialog: Option<DialogId>,
    /// The subscribed resources. The lock is held while they change.
    subscribed: tokio::sync::Mutex<BTreeSet<String>>,
    /// Whether the first server request was reported.
    has_reported_request: AtomicBool,
    /// The number of suspicions of the session that were checked.
    checked_suspicions: AtomicU64,
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
            checked_suspicions: AtomicU64::new(0),
        }
    }

    /// The method of the first server request, once. Pending for a leased instance, whose requests have one owner.
    /// Cancel-safe.
    pub(crate) async fn first_server_request(&self) -> Method {
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

    /// The idle time's start; `None` while calls run or pins exist.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        (!self.gate.is_in_use()).then(|| self.created.0 + self.last_used().unwrap_or_default())
    }

    /// The time from creation to the last call.
    pub(crate) fn last_used(&self) -> Option<Duration> {
        Some(self.last_used_ms.load(Ordering::Relaxed)).filter(|it| *it != 0).map(Duration::from_millis)
    }

    /// The creation time.
    pub(crate) fn started(&self) -> SystemTime {
        self.created.1
    }

    /// The process id.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// The server.
    pub(crate) fn server(&self) -> Arc<ResolvedServer> {
        Arc::clone(&self.server.read())
    }

    /// Applies the limits of `server`.
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

    /// Whether requests of this dialog may use it. A shared instance serves all.
    pub(crate) fn serves(&self, dialog: &DialogId) -> bool {
        self.dialog.as_ref().is_none_or(|own| own == dialog)
    }

    /// Its key for subscriptions.
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

    /// Subscribes to exactly the requested resources. Returns the new ones, which may have changed meanwhile.
    pub(crate) async fn sync_subscriptions(&self, all: &Subscriptions) -> Vec<String> {
        let mut subscribed = self.subscribed.lock().await;
        // Read under the lock, like levels.
        let wanted = all.uris(&self.key());
        let mut res = Vec::new();
        for uri in wanted.difference(&subscribed.clone()) {
            match self.session.subscribe_resource(uri).await {
                Ok(()) => {
                    subscribed.insert(uri.clone());
                    res.push(uri.clone());
                }
                Err(error) => {
                    tracing::warn!(%error, server = %self.server().spec.id, "the subscription failed")
                }
            }
        }
        for uri in subscribed.clone().difference(&wanted) {
            subscribed.remove(uri);
            if let Err(error) = self.session.unsubscribe_resource(uri).await {
                tracing::debug!(%error, server = %self.server().spec.id, "the unsubscription failed");
            }
        }
        res
    }

    /// Waits until a request fails in a way that suggests an outage, and a check fails in such a way too. Returns the
    /// error of the check. Any response to the check means that the server is up. Cancel-safe.
    pub(crate) async fn outage(&self) -> CallError {
        let mut suspicions = self.session.suspicions();
        loop {
            let checked = self.checked_suspicions.load(Ordering::Relaxed);
            let Ok(count) = suspicions.wait_for(|count| *count > checked).await.map(|it| *it) else {
                return std::future::pending().await;
            };
            let method = match self.session.era() {
                Era::Legacy => Method::Ping,
                Era::Modern => Method::Discover,
            };
            let options = CallOptions::with_timeout(OUTAGE_CHECK_TIMEOUT);
            match self.session.request_raw(method, None, &RawJson::empty_object(), options).await {
                Err(error) if error.suggests_outage() => return error,
                Ok(_) | Err(_) => self.checked_suspicions.store(count, Ordering::Relaxed),
            }
        }
    }

    /// Pings twice and returns the second error. A busy instance is not pinged, because many servers do not answer
    /// during a call. Any response counts.
    pub(crate) async fn ping(&self, within: Duration) -> Result<(), HostError> {
        let options = || CallOptions::with_timeout(within);
        let mut last = Ok(());
        for _ in 0..2 {
            if self.gate.is_busy() || self.session.era() == Era::Modern {
                return Ok(());
            }
            let answer =
                self.session.request_raw(Method::Ping, None, &RawJson::empty_object(), options()).await;
            last = match answer {
                Err(CallError::Refused(refused)) if refused.status().is_some() => Ok(()),
                Err(error) if error.kind().is_a(ErrorKind::Connection) => {
                    Err(call_error(&self.server(), &error))
                }
                Ok(_) | Err(_) => Ok(()),
            };
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// Refuses calls according to `drain`.
    pub(crate) fn close_gate(&self, drain: DrainMode) {
        match drain {
            DrainMode::CallsAndPins | DrainMode::CallsPinsAndTasks => self.gate.retire(),
            DrainMode::CallsUnlimitedAndTasks => self.gate.seal(),
            DrainMode::Calls | DrainMode::CallsUnlimited => self.gate.close(),
        }
    }

    /// Waits for running calls and `tasks` according to `drain`, then closes the connection. The gate refuses calls
    /// already. The wait ends at `shutdown` once that is set.
    pub(crate) async fn drain_and_close(
        self: &Arc<Instance>,
        drain: DrainMode,
        limits: CloseLimits,
        tasks: &HeldTasks<Instance>,
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
            // Pins neither delay a shutdown nor keep a lost connection.
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
        if waits_for_tasks && tasks.has(self, Instant::now()) {
            tokio::select! {
                () = tasks.ended(self) => {}
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

    /// Whether pinned calls are accepted.
    pub(crate) fn takes_pinned(&self) -> bool {
        !self.gate.is_sealed() && !self.is_over()
    }

    /// Whether the connection has ended.
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

/// Whether a session in this state has ended.
fn is_over(state: &SessionState) -> bool {
    matches!(state, SessionState::Disconnected | SessionState::Error(_))
}

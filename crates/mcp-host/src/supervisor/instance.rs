//! One running connection of a server: its session, and the gate before it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use mcp_config::ResolvedServer;
use mcp_model::{Era, ErrorKind, LogLevel, RawJson};
use mcp_transport::{CallError, CallOptions, ProcessIdCell, Session, SessionState};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::failure::HostError;
use crate::metrics::Open;
use crate::notifications::log_levels::Levels;
use crate::notifications::subscriptions::{Post, Subscriptions};
use crate::supervisor::connector::call_failure;
use crate::supervisor::dialog::DialogId;
use crate::supervisor::gate::Gate;
use crate::supervisor::machine::{Drain, later};

/// However long calls took to drain, a server gets this long to end by itself.
const FAREWELL: Duration = Duration::from_secs(1);

/// A connection that calls go through.
pub(crate) struct Instance {
    /// Who is inside.
    pub(crate) gate: Gate,
    /// The connection.
    pub(crate) session: Session,
    /// What it is an instance of, with the limits it has now.
    server: RwLock<Arc<ResolvedServer>>,
    /// When it was made, on both clocks.
    made: (Instant, SystemTime),
    /// When a call last began or ended, in milliseconds after that; 0 before the first.
    used: AtomicU64,
    process: ProcessIdCell,
    /// Counted as long as the connection is open.
    open: Mutex<Option<Open>>,
    /// From which level on its log messages were asked for. Held while another one is asked for.
    level: tokio::sync::Mutex<Option<LogLevel>>,
    /// The dialog that it is leased by.
    dialog: Option<DialogId>,
    /// The resources that it was asked to tell of, likewise held.
    subscribed: tokio::sync::Mutex<BTreeSet<String>>,
}

/// What a connection is made of.
pub(crate) struct Parts {
    pub(crate) session: Session,
    pub(crate) server: Arc<ResolvedServer>,
    pub(crate) process: ProcessIdCell,
    pub(crate) made: SystemTime,
    pub(crate) open: Open,
    pub(crate) level: Option<LogLevel>,
    pub(crate) dialog: Option<DialogId>,
}

impl Instance {
    /// A connection that nobody uses yet.
    pub(crate) fn new(parts: Parts) -> Instance {
        let Parts { session, server, process, made, open, level, dialog } = parts;
        let made = (Instant::now(), made);
        let (gate, used) = (Gate::default(), AtomicU64::new(0));
        let open = Mutex::new(Some(open));
        let level = tokio::sync::Mutex::new(level);
        let (server, subscribed) = (RwLock::new(server), tokio::sync::Mutex::default());
        Instance { gate, session, server, made, used, process, open, level, dialog, subscribed }
    }

    /// A call begins or ends at `now`.
    pub(crate) fn touch(&self, now: Instant) {
        let after = now.saturating_duration_since(self.made.0).as_millis().max(1);
        self.used.fetch_max(u64::try_from(after).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Since when nobody uses it; `None` while somebody does, or a turn counts on it.
    pub(crate) fn unused(&self) -> Option<Instant> {
        (!self.gate.is_counted_on()).then(|| self.made.0 + self.last_call().unwrap_or_default())
    }

    /// When a call last began or ended, counted from when it was made.
    pub(crate) fn last_call(&self) -> Option<Duration> {
        Some(self.used.load(Ordering::Relaxed)).filter(|it| *it != 0).map(Duration::from_millis)
    }

    /// When it was made.
    pub(crate) fn started(&self) -> SystemTime {
        self.made.1
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// What it is an instance of.
    pub(crate) fn server(&self) -> Arc<ResolvedServer> {
        Arc::clone(&self.server.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the limits of `server` from now on.
    pub(crate) fn limit(&self, server: Arc<ResolvedServer>) {
        self.session.set_limits(server.spec.limits.clone());
        *self.server.write().unwrap_or_else(PoisonError::into_inner) = server;
    }

    /// Asks for log messages from the level on that is wanted of it now, if it sends any and was asked for another one.
    pub(crate) async fn follow_level(&self, levels: &Levels) -> Result<(), HostError> {
        let server = self.server();
        let mut level = self.level.lock().await;
        // Looked at behind the lock: of two who ask, the later one asks for what was wanted last.
        let wanted = levels.of(&server.spec.id);
        let Some(wanted) = wanted.filter(|it| *level != Some(*it)) else { return Ok(()) };
        if self.session.server().capabilities.logging {
            let asked = self.session.set_log_level(wanted).await;
            asked.map_err(|it| call_failure(&server, &it))?;
        }
        *level = Some(wanted);
        Ok(())
    }

    /// What it is an instance for.
    pub(crate) fn post(&self) -> Post {
        Post { server: self.server().spec.id.clone(), dialog: self.dialog.clone() }
    }

    /// Subscribes to a resource, unless it has.
    pub(crate) async fn subscribe(&self, uri: &str) -> Result<(), CallError> {
        let mut subscribed = self.subscribed.lock().await;
        if !subscribed.contains(uri) {
            self.session.subscribe_resource(uri).await?;
            subscribed.insert(uri.to_owned());
        }
        Ok(())
    }

    /// Subscribes to what is wanted of it and to nothing else. Gives what it has begun to tell of, which may have changed
    /// since it was last told.
    pub(crate) async fn follow_subscriptions(&self, all: &Subscriptions) -> Vec<String> {
        let mut subscribed = self.subscribed.lock().await;
        // Looked at behind the lock, as levels are.
        let wanted = all.of(&self.post());
        let mut res = Vec::new();
        for uri in wanted.difference(&subscribed.clone()) {
            match self.session.subscribe_resource(uri).await {
                Ok(()) => {
                    subscribed.insert(uri.clone());
                    res.push(uri.clone());
                }
                Err(error) => tracing::warn!(%error, server = %self.server().spec.id, "not subscribed"),
            }
        }
        for uri in subscribed.clone().difference(&wanted) {
            subscribed.remove(uri);
            if let Err(error) = self.session.unsubscribe_resource(uri).await {
                tracing::debug!(%error, server = %self.server().spec.id, "not unsubscribed");
            }
        }
        res
    }

    /// Asks twice whether it lives, and gives the second failure. Whoever is busy with a call is not asked: many a
    /// server answers nothing meanwhile. An answer of any kind is a sign of life.
    pub(crate) async fn probe(&self, within: Duration) -> Result<(), HostError> {
        let options = || CallOptions { timeout: Some(within), ..CallOptions::default() };
        let mut last = Ok(());
        for _ in 0..2 {
            if self.gate.is_busy() || self.session.era() == Era::Modern {
                return Ok(());
            }
            let answer = self.session.request_raw("ping", None, &RawJson::empty_object(), options()).await;
            last = match answer {
                Err(CallError::Refused(fault)) if fault.status.is_some() => Ok(()),
                Err(error) if error.kind().is_a(ErrorKind::Connection) => {
                    Err(call_failure(&self.server(), &error))
                }
                Ok(_) | Err(_) => Ok(()),
            };
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// Lets nobody in any more but who may still come in while it drains.
    pub(crate) fn shut(&self, drain: Drain) {
        match drain {
            Drain::Swap => self.gate.retire(),
            Drain::Shut | Drain::Release => self.gate.seal(),
        }
    }

    /// Waits until those inside are out, at most for `grace` unless they are to be waited for, then closes the
    /// connection; what is still inside then is told so. It is shut by whoever decided this.
    /// However long they may take, they have no longer than until `end` once that is told.
    pub(crate) async fn drain_and_close(
        &self,
        drain: Drain,
        grace: Duration,
        mut end: watch::Receiver<Option<Instant>>,
    ) {
        let deadline = later(Instant::now(), grace);
        match drain {
            // Running out of time is one of the two ways this ends; either way the connection is closed.
            Drain::Swap | Drain::Shut => {
                let _ = tokio::time::timeout_at(deadline, self.gate.emptied()).await;
            }
            Drain::Release => {
                let ended = async {
                    match end.wait_for(Option::is_some).await.map(|it| *it) {
                        Ok(Some(at)) => tokio::time::sleep_until(at).await,
                        // Without a committer nobody ends this but whoever drops it.
                        Ok(None) | Err(_) => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = self.gate.emptied() => {}
                    () = ended => {}
                }
            }
        }
        self.gate.seal();
        let left = deadline.saturating_duration_since(Instant::now());
        self.session.close(left.max(FAREWELL)).await;
        self.count_out();
    }

    /// Can a call that has pinned it still go to it?
    pub(crate) fn takes_pinned(&self) -> bool {
        !self.gate.is_sealed() && !self.is_over()
    }

    /// Is its connection over?
    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.session.state().borrow(), SessionState::Disconnected | SessionState::Error(_))
    }

    /// Nobody comes in any more, and it is no longer counted: its host is gone, and its wire was cut.
    pub(crate) fn cut(&self) {
        self.gate.seal();
        self.count_out();
    }

    fn count_out(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

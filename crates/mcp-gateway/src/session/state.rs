//! One client of the era with sessions, from `initialize` to its end: over HTTP by its id, on a pipe as long as the pipe.
//!
//! A session is a dialog of the host: what it leases is its own, and goes with it.

use std::sync::{Arc, Mutex, PoisonError};

use mcp_host::Dialog;
use mcp_model::{LogLevel, ProtocolVersion, RawJson};
use mcp_transport::CallerId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::notifications::resource_subscriptions::Subscribed;
use crate::session::caller::Able;
use crate::session::event_log::Kept;
use crate::session::known_lists::Told;
use crate::session::outbound_queue::Outlet;
use crate::session::running_requests::Running;
use crate::session::server_requests::Asked;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its id, which nobody guesses; also the name of its dialog.
    pub(crate) id: String,
    /// Whose it is: nobody else may use it.
    pub(crate) principal: Principal,
    /// What it sees.
    pub(crate) scope: Arc<Scope>,
    /// What was agreed upon.
    pub(crate) version: ProtocolVersion,
    /// What the client can do.
    pub(crate) able: Arc<Able>,
    /// Its leases.
    pub(crate) dialog: Arc<Dialog>,
    /// Its requests that run.
    pub(crate) running: Arc<Running>,
    /// What it is asked.
    pub(crate) asked: Asked,
    /// What it knows of the lists.
    pub(crate) told: Mutex<Told>,
    /// The resources of which it wants to hear when they change.
    pub(crate) subscriptions: Subscribed,
    /// Whose its calls are.
    pub(crate) owner: CallerId,
    /// Cancelled with its end.
    pub(crate) over: CancellationToken,
    /// What is said on its own stream.
    pub(crate) kept: Kept,
    /// Where it hears what belongs to no request.
    general: Mutex<Option<(Outlet, CancellationToken)>>,
    log_level: Mutex<Option<LogLevel>>,
    last_used: Mutex<Instant>,
}

/// What a session begins with.
pub(crate) struct Beginning {
    pub(crate) id: String,
    pub(crate) principal: Principal,
    pub(crate) scope: Arc<Scope>,
    pub(crate) version: ProtocolVersion,
    pub(crate) capabilities: RawJson,
    pub(crate) dialog: Arc<Dialog>,
    pub(crate) told: Told,
}

impl Session {
    /// A session that begins now.
    pub(crate) fn new(beginning: Beginning, now: Instant) -> Session {
        let Beginning { id, principal, scope, version, capabilities, dialog, told } = beginning;
        Session {
            id,
            principal,
            scope,
            version,
            able: Able::of(capabilities),
            dialog,
            running: Arc::default(),
            asked: Asked::default(),
            told: Mutex::new(told),
            subscriptions: Subscribed::default(),
            owner: CallerId::unique(),
            over: CancellationToken::new(),
            kept: Kept::default(),
            general: Mutex::default(),
            log_level: Mutex::default(),
            last_used: Mutex::new(now),
        }
    }

    /// It is in use.
    pub(crate) fn touch(&self, now: Instant) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Since when it is not used; `None` while a request runs or somebody listens.
    pub(crate) fn unused(&self) -> Option<Instant> {
        let listens = self.general().is_some_and(|it| !it.is_closed());
        let idle = self.running.is_idle() && !listens;
        idle.then(|| *self.last_used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where it hears what belongs to no request, if it listens.
    pub(crate) fn general(&self) -> Option<Outlet> {
        let general = self.general.lock().unwrap_or_else(PoisonError::into_inner);
        general.as_ref().map(|it| it.0.clone())
    }

    /// It listens here from now on, and no longer where it did before. What is given is cancelled when it listens elsewhere.
    pub(crate) fn listens(&self, outlet: Outlet) -> CancellationToken {
        let replaced = CancellationToken::new();
        let here = Some((outlet, replaced.clone()));
        let before =
            std::mem::replace(&mut *self.general.lock().unwrap_or_else(PoisonError::into_inner), here);
        if let Some((_, before)) = before {
            before.cancel();
        }
        replaced
    }

    /// It does not listen here any more.
    pub(crate) fn listens_no_more(&self, outlet: &Outlet) {
        let mut general = self.general.lock().unwrap_or_else(PoisonError::into_inner);
        if general.as_ref().is_some_and(|it| it.0.is_same(outlet)) {
            *general = None;
        }
    }

    /// From which level on it wants log messages; `None` where it never said.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It wants log messages from this level on.
    pub(crate) fn set_log_level(&self, level: LogLevel) {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// Ends it: its requests are taken back, its streams end. Its leases go with the last who holds it.
    pub(crate) fn end(&self) {
        self.over.cancel();
        self.running.take_all_back();
    }
}

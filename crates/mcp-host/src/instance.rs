//! One running connection of a server: its session, and the gate before it.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::{Era, Kind, RawJson};
use mcp_transport::{CallError, CallOptions, Session};
use tokio::time::Instant;

use crate::Failure;
use crate::connector::call_failure;
use crate::gate::Gate;

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
}

impl Instance {
    /// A connection that nobody uses yet.
    pub(crate) fn new(session: Session, server: Arc<ResolvedServer>) -> Instance {
        Instance { gate: Gate::default(), session, server: RwLock::new(server) }
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

    /// Asks twice whether it lives, and gives the second failure. Whoever is busy with a call is not asked: many a
    /// server answers nothing meanwhile. An answer of any kind is a sign of life.
    pub(crate) async fn probe(&self, within: Duration) -> Result<(), Failure> {
        let options = || CallOptions { deadline: Some(within), ..CallOptions::default() };
        let mut last = Ok(());
        for _ in 0..2 {
            if self.gate.is_busy() || self.session.era() == Era::Modern {
                return Ok(());
            }
            let answer = self.session.request_raw("ping", None, &RawJson::empty_object(), options()).await;
            last = match answer {
                Err(CallError::Refused(fault)) if fault.status.is_some() => Ok(()),
                Err(error) if error.kind().is_a(Kind::Connection) => {
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

    /// Waits until the calls inside are over, at most for `grace`, then closes the connection; what is still inside
    /// then is told so. The gate is retired by whoever decided this.
    pub(crate) async fn drain_and_close(&self, grace: Duration) {
        let deadline = Instant::now() + grace;
        // Running out of time is one of the two ways this ends; either way the connection is closed.
        let _ = tokio::time::timeout_at(deadline, self.gate.emptied()).await;
        let left = deadline.saturating_duration_since(Instant::now());
        self.session.close(left.max(FAREWELL)).await;
    }
}

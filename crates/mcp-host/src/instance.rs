//! One running connection of a server: its session, and the gate before it.

use std::time::Duration;

use mcp_transport::Session;
use tokio::time::Instant;

use crate::gate::Gate;

/// However long calls took to drain, a server gets this long to end by itself.
const FAREWELL: Duration = Duration::from_secs(1);

/// A connection that calls go through.
pub(crate) struct Instance {
    /// Who is inside.
    pub(crate) gate: Gate,
    /// The connection.
    pub(crate) session: Session,
}

impl Instance {
    /// A connection that nobody uses yet.
    pub(crate) fn new(session: Session) -> Instance {
        Instance { gate: Gate::default(), session }
    }

    /// Has the connection ended?
    pub(crate) async fn is_over(&self) -> bool {
        tokio::select! {
            biased;
            _ = self.session.closed() => true,
            () = std::future::ready(()) => false,
        }
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

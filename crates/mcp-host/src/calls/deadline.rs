//! By when something that is asked for must be over, of all that it takes: the lease's start, and the answer.
//!
//! One moment counts for both, so that no part of it gets a deadline of its own.

use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::ErrorKind;
use mcp_transport::CallOptions;
use tokio::time::Instant;

use crate::failure::HostError;
use crate::supervisor::connector::about;
use crate::supervisor::machine::later;

/// How much longer than its deadline a call may take in all. The session keeps the deadline itself and says more
/// about it; this bound is for what it cannot see.
const OVERTIME: Duration = Duration::from_secs(1);

/// The bound around a call that its own deadline should have ended: what the caller may take for himself is not in that.
pub(super) fn outer(deadline: Duration, options: &CallOptions) -> Duration {
    let patience = options.caller.as_ref().map_or(Duration::ZERO, |it| it.max_deadline_pause);
    deadline.saturating_add(patience).saturating_add(OVERTIME)
}

/// A deadline that its caller gave, if any, and when it began to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    begun: Instant,
    given: Option<Duration>,
}

impl Due {
    /// It begins to run at `begun`.
    pub(super) fn begin(begun: Instant, given: Option<Duration>) -> Due {
        Due { begun, given }
    }

    /// What comes before the answer, or `None` when it is not there in time.
    pub(super) async fn within<T>(self, future: impl Future<Output = T>) -> Option<T> {
        match self.given {
            Some(given) => tokio::time::timeout_at(later(self.begun, given), future).await.ok(),
            None => Some(future.await),
        }
    }

    /// How long the answer may take, in whole milliseconds; `limit` where nobody gave a deadline.
    pub(super) fn rest(self, limit: Duration) -> Duration {
        let Some(given) = self.given else { return limit };
        let spent =
            Duration::from_millis(u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX));
        given.saturating_sub(spent)
    }

    /// What is told when it was over before there was anybody to ask.
    pub(super) fn missed(self, server: &ResolvedServer) -> HostError {
        let given = self.given.unwrap_or_default().as_secs_f64();
        let what = format!("no answer within {given} s: its instance for the caller was still being started");
        about(server, ErrorKind::Timeout, what)
    }
}

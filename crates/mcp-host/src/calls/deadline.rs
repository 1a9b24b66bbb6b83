//! The deadline of a call. It includes the start of a leased instance and the request.
//!
//! The session receives the remaining time and enforces it.

use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::ErrorKind;
use mcp_transport::CallOptions;
use tokio::time::Instant;

use crate::error::HostError;
use crate::supervisor::connector::server_error;
use crate::supervisor::machine::saturating_after;

/// The margin that a call may take beyond its deadline. The session enforces the deadline and returns a more
/// detailed error. The host's own limit is a fallback for waits outside the session.
const DEADLINE_MARGIN: Duration = Duration::from_secs(1);

/// Returns the host's own time limit of a request, for the case that the session does not end it at its deadline.
/// It includes the time that the caller's own handlers may take.
pub(super) fn outer(deadline: Duration, options: &CallOptions) -> Duration {
    let patience = options.caller.as_ref().map_or(Duration::ZERO, |it| it.max_deadline_pause);
    deadline.saturating_add(patience).saturating_add(DEADLINE_MARGIN)
}

/// The start and the optional deadline of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallDeadline {
    started: Instant,
    given: Option<Duration>,
}

impl CallDeadline {
    /// Creates the deadline of a call that began at `started`.
    pub(super) fn begin(started: Instant, given: Option<Duration>) -> CallDeadline {
        CallDeadline { started, given }
    }

    /// Waits for a step before the request; `None` if the deadline passes.
    pub(super) async fn wait<T>(self, future: impl Future<Output = T>) -> Option<T> {
        match self.given {
            Some(given) => tokio::time::timeout_at(saturating_after(self.started, given), future).await.ok(),
            None => Some(future.await),
        }
    }

    /// The remaining time for the request, with the elapsed time in whole milliseconds; `limit` without a
    /// deadline.
    pub(super) fn remaining(self, limit: Duration) -> Duration {
        let Some(given) = self.given else { return limit };
        let spent =
            Duration::from_millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX));
        given.saturating_sub(spent)
    }

    /// The error for a deadline that passed before the instance had started.
    pub(super) fn exceeded(self, server: &ResolvedServer) -> HostError {
        let given = self.given.unwrap_or_default().as_secs_f64();
        let what = format!("no answer within {given} s: its instance for the caller was still being started");
        server_error(server, ErrorKind::Timeout, what)
    }
}

/// The error of a request without a response within `timeout`.
pub(super) fn timeout_error(server: &ResolvedServer, timeout: Duration) -> HostError {
    server_error(server, ErrorKind::Timeout, format!("no answer within {} s", timeout.as_secs_f64()))
}

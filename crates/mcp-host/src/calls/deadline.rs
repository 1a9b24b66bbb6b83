//! The deadline of a call. It includes the start of a leased instance and the request.
//!
//! The session receives the remaining time, enforces it, and returns a detailed error. The host enforces the deadline
//! itself only while a call waits for something else.

use std::pin::pin;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ErrorKind, Task};
use mcp_host_transport::{CallError, CallOptions, CallResponse, RetryPolicy, Session};
use tokio::time::Instant;

use crate::calls::raw_result::RequestFailure;
use crate::calls::result_format::ResultFormat;
use crate::error::HostError;
use crate::supervisor::machine::saturating_after;
use crate::supervisor::server_error::{call_error, server_error};

/// The time after the deadline at which the host ends a request that its session did not end.
const DEADLINE_MARGIN: Duration = Duration::from_secs(1);

/// The deadline of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallDeadline {
    started: Instant,
    /// The time limit of the call; `None`: the limits of its server apply.
    limit: Option<Duration>,
}

impl CallDeadline {
    /// Creates the deadline of a call that began at `started`.
    pub(super) fn new(started: Instant, limit: Option<Duration>) -> CallDeadline {
        CallDeadline { started, limit }
    }

    /// Returns this deadline, but at most `limit` from now.
    pub(super) fn capped(self, limit: Duration) -> CallDeadline {
        CallDeadline { started: Instant::now(), limit: Some(self.remaining(limit).min(limit)) }
    }

    /// Returns the remaining time; `None` if the call has no time limit of its own.
    pub(super) fn time_left(self) -> Option<Duration> {
        self.limit.map(|it| self.remaining(it))
    }

    /// Returns whether no time remains.
    pub(super) fn is_over(self) -> bool {
        self.remaining(Duration::MAX).is_zero()
    }

    /// Waits for `instance`, a leased instance of a server, until the deadline.
    pub(super) async fn wait_for_instance<T>(
        self,
        server: &ResolvedServer,
        instance: impl Future<Output = T>,
    ) -> Result<T, HostError> {
        let Some(limit) = self.limit else { return Ok(instance.await) };
        tokio::time::timeout_at(saturating_after(self.started, limit), instance).await.map_err(|_| {
            let limit = limit.as_secs_f64();
            let message =
                format!("no response within {limit} s: its instance for the caller was still being started");
            server_error(server, ErrorKind::Timeout, message)
        })
    }

    /// Sends a request with the time limits of the call and of its server. The time in which the caller's own handlers
    /// respond to server requests does not count.
    pub(super) async fn send<T, F: Future<Output = Result<T, CallError>>>(
        self,
        server: &ResolvedServer,
        mut options: CallOptions,
        send: impl FnOnce(CallOptions) -> F,
    ) -> Result<T, RequestFailure> {
        let limits = &server.spec.limits;
        let timeout = self.remaining(limits.request);
        let pause = options.context.max_deadline_pause();
        let is_repeatable = options.retry != RetryPolicy::Never;
        options.timeout = Some(timeout);
        options.idle_timeout = limits.idle;
        // Pinned in place, because moving a large future copies it.
        let response = pin!(send(options));
        let host_timeout = timeout.saturating_add(pause).saturating_add(DEADLINE_MARGIN);
        match tokio::time::timeout(host_timeout, response).await {
            Ok(Err(error @ CallError::Closed(_))) if !is_repeatable => {
                let mut error = call_error(server, &error);
                error.message.push_str("; it is not known whether the call ran");
                Err(error.into())
            }
            Ok(outcome) => outcome.map_err(|it| {
                let mut failure = RequestFailure::new(call_error(server, &it), &it);
                // The server ended while the request was sent, which may be repeated.
                failure.may_begin_again |= matches!(&it, CallError::Closed(end) if end.is_clean_exit());
                failure
            }),
            Err(_) => Err(timeout_error(server, timeout).into()),
        }
    }

    /// Waits for the result of a task. If the call has no time limit, that of the session applies.
    pub(super) async fn follow_task<T: ResultFormat>(
        self,
        server: &ResolvedServer,
        session: &Session,
        task: &Task,
        mut options: CallOptions,
    ) -> Result<CallResponse<T>, RequestFailure> {
        let timeout = self.limit.map(|it| self.remaining(it));
        options.timeout = timeout;
        let result = session.follow_task(task, &options).await.and_then(|it| it.try_map(T::from_task));
        result.map_err(|it| RequestFailure::new(call_error(server, &it), &it))
    }

    /// Applies the deadline to a request that has no time limit of its own in the session.
    pub(super) async fn apply<T>(
        self,
        server: &ResolvedServer,
        response: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, RequestFailure> {
        let timeout = self.remaining(server.spec.limits.request);
        match tokio::time::timeout(timeout, response).await {
            Ok(outcome) => outcome.map_err(|it| RequestFailure::new(call_error(server, &it), &it)),
            Err(_) => Err(timeout_error(server, timeout).into()),
        }
    }

    /// Returns the remaining time in whole milliseconds, or `server_limit` if the call has no limit.
    pub(super) fn remaining(self, server_limit: Duration) -> Duration {
        let Some(limit) = self.limit else { return server_limit };
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        limit.saturating_sub(Duration::from_millis(elapsed))
    }
}

/// Returns the error of a request without a response.
fn timeout_error(server: &ResolvedServer, timeout: Duration) -> HostError {
    server_error(server, ErrorKind::Timeout, format!("no response within {} s", timeout.as_secs_f64()))
}

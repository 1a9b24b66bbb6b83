//! Recognizes a lost session that the server does not report as such.
//!
//! The specification has one response to an unknown session: 404. Servers also refuse it as a missing login, as an
//! invalid request, or with a JSON-RPC error. What preceded decides, not the words of an error: the server has
//! responded in this session, now a ping fails in the same way, and a new handshake succeeds. An error that remains in
//! the new session is not one of the session, and does not count again.

use std::time::Duration;

use mcp_host_model::{Era, Method};
use tokio::time::Instant;

use crate::error::request_error::RequestError;
use crate::error::{CallError, ConnectError, Expiry};
use crate::rpc::engine::CallSettings;
use crate::rpc::frame;
use crate::rpc::outcome::RpcOutcome;
use crate::session::server_error::{read_error, redact_error};
use crate::session::session_trust::SuspectedLoss;
use crate::session::state::Session;
use crate::transport::{Epoch, MessageHead, OutboundMessage, StreamError};

/// How long the ping that checks a session may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

impl Session {
    /// Opens a new session if `error`, of a request in the session of `epoch`, shows that the server lost it; the
    /// request can be repeated then, because no handler saw it. Returns what suggested the loss, or the error to
    /// report.
    pub(crate) async fn recover_session(
        &self,
        error: CallError,
        epoch: Epoch,
        deadline: Instant,
    ) -> Result<SuspectedLoss, CallError> {
        let Some(loss) = SuspectedLoss::from_error(&error) else { return Err(error) };
        if self.era() == Era::Modern
            || !self.dial.can_lose_session()
            || !self.trust.may_be_related(&loss)
            || !self.check_session(&loss, epoch, deadline).await
        {
            return Err(error);
        }
        match tokio::time::timeout_at(deadline, self.reopen(epoch)).await {
            Ok(Ok(())) => Ok(loss),
            Ok(Err(failure)) => Err(match (error, &*failure) {
                (CallError::Refused(_), ConnectError::Refused(login @ RequestError::NotAuthorized(_))) => {
                    CallError::Unreachable(login.clone())
                }
                (CallError::Refused(refusal), _) => CallError::Unreachable(refusal),
                (_, _) => CallError::Reopen(failure),
            }),
            Err(_) => Err(error),
        }
    }

    /// Opens a new session in place of that of `epoch`, before the deadline of a request with this limit.
    pub(crate) async fn reopen_before(
        &self,
        epoch: Epoch,
        deadline: Instant,
        limit: Duration,
    ) -> Result<(), CallError> {
        match tokio::time::timeout_at(deadline, self.reopen(epoch)).await {
            Ok(reopened) => reopened.map_err(CallError::Reopen),
            Err(_) => Err(CallError::TimedOut(Expiry::Absolute(limit))),
        }
    }

    /// Pings the server in the session of `epoch`. Returns whether that fails as the request did.
    async fn check_session(&self, loss: &SuspectedLoss, epoch: Epoch, deadline: Instant) -> bool {
        let version = self.version();
        let message = |id| OutboundMessage {
            epoch,
            head: MessageHead {
                in_established_session: true,
                ..MessageHead::new(Some(id), Method::Ping, Some(version))
            },
            body: frame::request(id, Method::Ping.as_str(), "", ""),
        };
        let timeout = CHECK_TIMEOUT.min(deadline.saturating_duration_since(Instant::now()));
        let settings = CallSettings { timeout: Some(timeout), ..CallSettings::default() };
        let error = match self.connection.engine.call(settings, message).await.1 {
            RpcOutcome::Response { frame, is_error: true, payload_start } => {
                CallError::Rpc(redact_error(read_error(&frame[payload_start..]), self.dial.as_ref()))
            }
            RpcOutcome::StreamFailed(StreamError::NotExecuted(_)) => return true,
            RpcOutcome::StreamFailed(StreamError::Refused(error)) => CallError::Refused(error),
            RpcOutcome::StreamFailed(StreamError::Lost(error)) => CallError::ResponseLost(error),
            RpcOutcome::Response { is_error: false, .. }
            | RpcOutcome::StreamFailed(StreamError::Unreachable(_) | StreamError::TooLarge(_))
            | RpcOutcome::Expired(_)
            | RpcOutcome::Closed(_) => return false,
        };
        SuspectedLoss::from_error(&error).is_some_and(|ping| loss.matches(&ping))
    }
}

//! Recognizes a lost session that the server does not report as such.
//!
//! The specification has one response to an unknown session: 404. Servers also refuse it as a missing login, as an
//! invalid request, or with a JSON-RPC error. What preceded decides, not the words of an error: the server has responded
//! in this session, now a ping fails in the same way, and a new handshake succeeds. An error that remains in the new
//! session is not one of the session, and does not count again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcp_host_model::{Era, Method, code};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::request_error::{AccessRefusal, RequestError};
use crate::error::session_words::mentions_session;
use crate::error::{CallError, ConnectError, Expiry};
use crate::rpc::engine::CallSettings;
use crate::rpc::frame;
use crate::rpc::outcome::RpcOutcome;
use crate::session::server_error::{read_error, redact_error};
use crate::session::state::Session;
use crate::transport::{Epoch, MessageHead, OutboundMessage, StreamError};

/// How long the ping that checks a session may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of errors that are remembered as no errors of the session. With more, no error counts as one.
const MAX_UNRELATED_ERRORS: usize = 8;

/// What is known about the sessions of a connection.
#[derive(Default)]
pub(crate) struct SessionTrust {
    /// One more than the newest epoch in which the server has responded to a request; 0 before.
    established: AtomicU32,
    /// The texts of errors that remained in a new session.
    unrelated_errors: Mutex<Vec<String>>,
}

impl SessionTrust {
    /// Records that the server has responded to a request in the session of `epoch`.
    pub(crate) fn establish(&self, epoch: Epoch) {
        if !self.is_established(epoch) {
            self.established.fetch_max(epoch.0.saturating_add(1), Ordering::Relaxed);
        }
    }

    /// Whether the server has responded to a request in the session of `epoch` or in a later one.
    pub(crate) fn is_established(&self, epoch: Epoch) -> bool {
        self.established.load(Ordering::Relaxed) > epoch.0
    }

    /// Records an error that remained in a new session.
    pub(crate) fn add_unrelated(&self, error: String) {
        let mut errors = self.unrelated_errors.lock();
        if errors.len() < MAX_UNRELATED_ERRORS && !errors.contains(&error) {
            errors.push(error);
        }
    }

    fn may_be_related(&self, error: &CallError) -> bool {
        let errors = self.unrelated_errors.lock();
        errors.len() < MAX_UNRELATED_ERRORS && !errors.contains(&error.to_string())
    }
}

/// A failure that may be the loss of a session, and is compared with that of a ping.
struct SuspectedLoss {
    status: Option<u16>,
    code: Option<i64>,
    message: String,
}

impl SuspectedLoss {
    /// The suspicion that an error raises, if any. A request for authorization is a matter of login unless its text is
    /// about a session.
    fn from_error(error: &CallError) -> Option<SuspectedLoss> {
        match error {
            CallError::Rpc(error) => {
                let is_suspect = error.code == code::INVALID_REQUEST
                    || code::is_server_error(error.code)
                    || mentions_session(&error.message);
                let message = error.message.clone();
                is_suspect.then_some(SuspectedLoss { status: None, code: Some(error.code), message })
            }
            CallError::Refused(error) => {
                SuspectedLoss::from_refusal(error).filter(|loss| matches!(loss.status, Some(400..=403 | 410)))
            }
            CallError::ResponseLost(error) | CallError::OutcomeUnknown(error) => {
                SuspectedLoss::from_refusal(error)
                    .filter(|loss| loss.code.is_some() && mentions_session(&loss.message))
            }
            _ => None,
        }
    }

    fn from_refusal(error: &RequestError) -> Option<SuspectedLoss> {
        let RequestError::Response(response) = error else { return None };
        let rpc_error = response.error.as_ref();
        let message = rpc_error.map_or(&response.text, |error| &error.message).clone();
        let is_login =
            matches!(&response.access, Some(AccessRefusal::Challenge(schemes)) if !schemes.is_empty());
        let code = rpc_error.map(|error| error.code);
        (!is_login || mentions_session(&message)).then_some(SuspectedLoss {
            status: Some(response.status),
            code,
            message,
        })
    }

    /// Whether a ping that failed with `ping` failed in the same way.
    fn matches(&self, ping: &SuspectedLoss) -> bool {
        let is_same_text = self.message == ping.message
            || (mentions_session(&self.message) && mentions_session(&ping.message));
        self.status == ping.status && self.code == ping.code && is_same_text
    }
}

impl Session {
    /// Opens a new session if `error`, of a request in the session of `epoch`, shows that the server lost it; the
    /// request can be repeated then, because no handler saw it. Returns the text of the error, or the error to report.
    pub(crate) async fn recover_session(
        &self,
        error: CallError,
        epoch: Epoch,
        deadline: Instant,
    ) -> Result<String, CallError> {
        let Some(loss) = SuspectedLoss::from_error(&error) else { return Err(error) };
        if self.era() == Era::Modern
            || !self.dial.can_lose_session()
            || !self.trust.may_be_related(&error)
            || !self.check_session(&loss, epoch, deadline).await
        {
            return Err(error);
        }
        match tokio::time::timeout_at(deadline, self.reopen(epoch)).await {
            Ok(Ok(())) => Ok(error.to_string()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::request_error::ErrorResponse;
    use mcp_host_model::RpcError;

    #[track_caller]
    fn check(error: CallError, want: bool) {
        assert_eq!(SuspectedLoss::from_error(&error).is_some(), want, "{error}");
    }

    fn refused(status: u16, schemes: Option<&[&str]>, text: &str) -> CallError {
        let schemes = schemes.map(|schemes| schemes.iter().map(|scheme| (*scheme).to_owned()).collect());
        let mut response = ErrorResponse::new(status);
        response.access = schemes.map(AccessRefusal::Challenge);
        response.text = text.to_owned();
        CallError::Refused(response.into())
    }

    // RPT-040
    #[test]
    fn refusal_of_a_request_raises_a_suspicion_unless_it_asks_for_a_login() {
        for status in [400, 401, 403, 410] {
            check(refused(status, None, ""), true);
        }
        check(refused(401, Some(&[]), "Unauthorized"), true);
        check(refused(401, Some(&["Bearer"]), "Unauthorized"), false);
        check(refused(401, Some(&["Bearer"]), "Session not found"), true);
        for status in [405, 429, 422] {
            check(refused(status, None, "Session not found"), false);
        }
    }

    // RPT-041
    #[test]
    fn error_response_raises_a_suspicion_by_its_code_or_its_words() {
        let rpc = |code, message: &str| CallError::Rpc(RpcError::new(code, message));
        check(rpc(code::SERVER_ERROR, "no"), true);
        check(rpc(code::RATE_LIMITED, "Session not found"), true);
        check(rpc(code::INVALID_REQUEST, "no"), true);
        check(rpc(code::INTERNAL_ERROR, "Session not found"), true);
        check(rpc(code::INTERNAL_ERROR, "the tool failed"), false);
        check(rpc(code::INVALID_PARAMS, "`a` is required"), false);
        check(rpc(code::METHOD_NOT_FOUND, "no such method"), false);
    }

    #[test]
    fn error_that_remained_in_a_new_session_does_not_count_again() {
        let trust = SessionTrust::default();
        let error = |text: &str| CallError::Rpc(RpcError::new(code::SERVER_ERROR, text));
        assert!(trust.may_be_related(&error("busy")));
        trust.add_unrelated(error("busy").to_string());
        assert!(!trust.may_be_related(&error("busy")));
        assert!(trust.may_be_related(&error("other")));
        (0..100).for_each(|number| trust.add_unrelated(number.to_string()));
        assert!(!trust.may_be_related(&error("other")));
    }

    #[test]
    fn later_session_is_not_established_by_an_earlier_one() {
        let trust = SessionTrust::default();
        assert!(!trust.is_established(Epoch(0)));
        trust.establish(Epoch(0));
        assert!(trust.is_established(Epoch(0)) && !trust.is_established(Epoch(1)));
    }
}

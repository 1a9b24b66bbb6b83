//! What is known about the sessions of a connection: whether the server has responded in one, and which errors suggest
//! that it lost one.
//!
//! Pure: the session checks a suspicion (`requests/session_loss`).

use std::sync::atomic::{AtomicU32, Ordering};

use mcp_host_model::code;
use parking_lot::Mutex;

use crate::error::CallError;
use crate::error::request_error::{AccessRefusal, RequestError};
use crate::error::session_words::mentions_session;
use crate::transport::Epoch;

/// Maximum number of errors that are remembered as no errors of the session. With more, no error counts as one.
const MAX_UNRELATED_ERRORS: usize = 8;

/// What is known about the sessions of a connection.
#[derive(Default)]
pub(crate) struct SessionTrust {
    /// One more than the newest epoch in which the server has responded to a request; 0 before.
    established: AtomicU32,
    /// Errors that remained in a new session.
    unrelated_errors: Mutex<Vec<SuspectedLoss>>,
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
    pub(crate) fn add_unrelated(&self, error: SuspectedLoss) {
        let mut errors = self.unrelated_errors.lock();
        if errors.len() < MAX_UNRELATED_ERRORS && !errors.contains(&error) {
            errors.push(error);
        }
    }

    /// Whether an error has not remained in a new session so far.
    pub(crate) fn may_be_related(&self, error: &SuspectedLoss) -> bool {
        let errors = self.unrelated_errors.lock();
        errors.len() < MAX_UNRELATED_ERRORS && !errors.contains(error)
    }
}

/// A failure that may be the loss of a session, and is compared with that of a ping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SuspectedLoss {
    /// The HTTP status; `None` for a response.
    status: Option<u16>,
    /// The code of the JSON-RPC error.
    code: Option<i64>,
    /// The message of the error, or the text of the body.
    message: String,
}

impl SuspectedLoss {
    /// The suspicion that an error raises, if any. A request for authorization is a matter of login unless its text is
    /// about a session.
    pub(crate) fn from_error(error: &CallError) -> Option<SuspectedLoss> {
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
    pub(crate) fn matches(&self, ping: &SuspectedLoss) -> bool {
        let is_same_text = self.message == ping.message
            || (mentions_session(&self.message) && mentions_session(&ping.message));
        self.status == ping.status && self.code == ping.code && is_same_text
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
        let error = |text: &str| {
            SuspectedLoss::from_error(&CallError::Rpc(RpcError::new(code::SERVER_ERROR, text))).unwrap()
        };
        assert!(trust.may_be_related(&error("busy")));
        trust.add_unrelated(error("busy"));
        assert!(!trust.may_be_related(&error("busy")));
        assert!(trust.may_be_related(&error("other")));
        (0..100).for_each(|number| trust.add_unrelated(error(&number.to_string())));
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

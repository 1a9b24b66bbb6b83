//! Time limits, and the words for what comes of a fault.

use std::time::Duration;

use mcp_model::Limits;
use mcp_tests::faults::{At, Era};
use mcp_transport::{CallError, ConnectError, Disconnect, DisconnectReason, Eras};

/// What is waited for in vain.
const SHORT: Duration = Duration::from_millis(1500);

/// What comes by itself, also on a machine that has much else to do.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// After this it hangs: longer than all that is allowed in one cell.
pub(crate) const HANGS: Duration = Duration::from_secs(150);

/// How long is waited, by what is expected: in a row only what would never come is not waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For the beginning.
    pub(crate) start: Duration,
    /// For the faulty request.
    pub(crate) request: Duration,
    /// For the next one.
    pub(crate) next: Duration,
}

impl Patience {
    pub(crate) fn of(want: &str, at: At) -> Patience {
        let begins = matches!(at, At::Start | At::Open);
        let is_late =
            |it: &str| ["silent", "timed out", "MCPTimeoutError"].iter().any(|word| it.contains(word));
        let time = |is_short: bool| if is_short { SHORT } else { LONG };
        let (first, next) = want.split_once(" | ").unwrap_or((want, ""));
        Patience {
            start: time(begins && is_late(first)),
            request: time(!begins && is_late(first)),
            next: time(is_late(next)),
        }
    }

    /// How many things are waited for in vain.
    pub(crate) fn in_vain(self) -> usize {
        [self.start, self.request, self.next].into_iter().filter(|it| *it == SHORT).count()
    }

    /// The limits of the faulty server. Who does not read is given up by the wire after the call is: both go by one limit.
    pub(crate) fn limits(self, request: Duration) -> Limits {
        Limits {
            request,
            connect: LONG,
            startup: self.start,
            message_bytes: 1 << 20,
            result_bytes: 1 << 20,
            list_pages: 20,
            ..Limits::default()
        }
    }
}

/// Is this what the table says?
pub(crate) fn fits(want: &str, got: &str) -> bool {
    let (want, got): (Vec<&str>, Vec<&str>) = (want.split(" | ").collect(), got.split(" | ").collect());
    want.len() == got.len() && want.iter().zip(got).all(|(want, got)| is_one_of(want, got))
}

/// Is it one of those with `or` between them?
pub(crate) fn is_one_of(want: &str, got: &str) -> bool {
    want.split(" or ").any(|it| it == got)
}

/// The era as a session is told.
pub(crate) fn eras(era: Era) -> Eras {
    match era {
        Era::Legacy => Eras::Legacy,
        Era::Modern => Eras::Modern,
    }
}

/// Text as it is shown.
pub(crate) fn shown(text: &str) -> String {
    if text.len() > 60 { format!("{} bytes", text.len()) } else { text.to_owned() }
}

/// What a call has brought.
pub(crate) fn told(outcome: Result<String, CallError>) -> String {
    match outcome {
        Ok(text) => shown(&text),
        Err(CallError::Closed(ended)) => format!("lost: {}", reason(&ended)),
        Err(CallError::NotSent(ended)) => format!("not sent: {}", reason(&ended)),
        Err(CallError::TimedOut(_)) => "timed out".to_owned(),
        Err(CallError::Rpc(error)) => format!("error {}", error.code),
        Err(CallError::InvalidResponse(_)) => "unreadable".to_owned(),
        Err(CallError::OutcomeUnknown(_)) => "outcome unknown".to_owned(),
        Err(CallError::ResponseLost(_)) => "answer lost".to_owned(),
        Err(CallError::Refused(_)) => "refused".to_owned(),
        Err(CallError::ResponseTooLarge(_)) => "too large".to_owned(),
        Err(CallError::ListTooLarge(_)) => "too much".to_owned(),
        Err(CallError::Reopen(_)) => "not reopened".to_owned(),
        Err(other) => format!("{other:?}"),
    }
}

/// Why there is no session.
pub(crate) fn unconnected(error: &ConnectError) -> String {
    let why = match error {
        ConnectError::Disconnected(ended) => reason(ended),
        ConnectError::TimedOut { .. } => "timed out".to_owned(),
        ConnectError::Silent { .. } => "silent".to_owned(),
        ConnectError::Refused(_) => "refused".to_owned(),
        ConnectError::Rejected { .. } => "rejected".to_owned(),
        ConnectError::InvalidResponse(_) => "unreadable".to_owned(),
        other => format!("{other:?}"),
    };
    format!("no session: {why}")
}

fn reason(ended: &Disconnect) -> String {
    match &ended.reason {
        DisconnectReason::Stopped => "stopped".to_owned(),
        DisconnectReason::PeerClosed => "closed".to_owned(),
        DisconnectReason::Broken(_) => "broken".to_owned(),
        DisconnectReason::Stalled(_) => "stalled".to_owned(),
        DisconnectReason::NotStarted(_) => "not started".to_owned(),
        other => format!("{other:?}"),
    }
}

//! Time limits, and descriptions of outcomes.

use std::time::Duration;

use mcp_host_model::Limits;
use mcp_host_transport::{CallError, ConnectError, Disconnect, DisconnectReason, Eras};
use mcp_tests::faults::{At, Era};

/// The time limit of an outcome that is expected to time out.
const SHORT_LIMIT: Duration = Duration::from_millis(1500);

/// The time limit of other outcomes, for busy machines.
pub(crate) const LONG_LIMIT: Duration = Duration::from_secs(60);

/// The time limit of a whole cell.
pub(crate) const CELL_LIMIT: Duration = Duration::from_secs(150);

/// The time limits by expected outcome: only expected timeouts have short limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimits {
    /// For the start.
    pub(crate) start: Duration,
    /// For the faulty request.
    pub(crate) request: Duration,
    /// For the next request.
    pub(crate) next: Duration,
}

impl TimeLimits {
    /// The limits for an expected outcome of a fault at this point.
    pub(crate) fn for_outcome(want: &str, at: At) -> TimeLimits {
        let is_at_start = matches!(at, At::Start | At::Open);
        let is_late =
            |line: &str| ["silent", "timed out", "MCPTimeoutError"].iter().any(|word| line.contains(word));
        let time = |is_short: bool| if is_short { SHORT_LIMIT } else { LONG_LIMIT };
        let (first, next) = want.split_once(" | ").unwrap_or((want, ""));
        TimeLimits {
            start: time(is_at_start && is_late(first)),
            request: time(!is_at_start && is_late(first)),
            next: time(is_late(next)),
        }
    }

    /// The number of expected timeouts.
    pub(crate) fn expected_timeouts(self) -> usize {
        [self.start, self.request, self.next].into_iter().filter(|it| *it == SHORT_LIMIT).count()
    }

    /// The limits of the faulty server. Call and write timeouts are equal, because the transport gives up a stalled
    /// peer after the call.
    pub(crate) fn limits(self, request: Duration) -> Limits {
        let mut limits = Limits::default();
        limits.request = request;
        limits.connect = LONG_LIMIT;
        limits.startup = self.start;
        limits.message_bytes = 1 << 20;
        limits.result_bytes = 1 << 20;
        limits.list_pages = 20;
        limits
    }
}

/// Whether the outcome matches the table.
pub(crate) fn matches_outcome(want: &str, got: &str) -> bool {
    let (want, got): (Vec<&str>, Vec<&str>) = (want.split(" | ").collect(), got.split(" | ").collect());
    want.len() == got.len() && want.iter().zip(got).all(|(want, got)| is_one_of(want, got))
}

/// Whether the outcome is one of those separated by `or`.
pub(crate) fn is_one_of(want: &str, got: &str) -> bool {
    want.split(" or ").any(|it| it == got)
}

/// The era option of a session.
pub(crate) fn eras(era: Era) -> Eras {
    match era {
        Era::Legacy => Eras::Legacy,
        Era::Modern => Eras::Modern,
    }
}

/// The text, or its length if it is long.
pub(crate) fn shorten(text: &str) -> String {
    if text.len() > 60 { format!("{} bytes", text.len()) } else { text.to_owned() }
}

/// The outcome of a call.
pub(crate) fn call_outcome(result: Result<String, CallError>) -> String {
    match result {
        Ok(text) => shorten(&text),
        Err(CallError::Closed(ended)) => format!("lost: {}", disconnect_reason(&ended)),
        Err(CallError::NotSent(ended)) => format!("not sent: {}", disconnect_reason(&ended)),
        Err(CallError::TimedOut(_) | CallError::TimedOutUnmatched { .. }) => "timed out".to_owned(),
        Err(CallError::Rpc(error)) => format!("error {}", error.code),
        Err(CallError::InvalidResponse(_) | CallError::NotUtf8 { .. }) => "unreadable".to_owned(),
        Err(CallError::OutcomeUnknown(_)) => "outcome unknown".to_owned(),
        Err(CallError::ResponseLost(_)) => "answer lost".to_owned(),
        Err(CallError::Unreachable(_) | CallError::Refused(_)) => "refused".to_owned(),
        Err(CallError::ResponseTooLarge(_)) => "too large".to_owned(),
        Err(CallError::Reopen(_)) => "not reopened".to_owned(),
        Err(other) => format!("{other:?}"),
    }
}

/// Why a session could not connect.
pub(crate) fn connect_outcome(error: &ConnectError) -> String {
    let reason = match error {
        ConnectError::Disconnected(ended) => disconnect_reason(ended),
        ConnectError::TimedOut { .. } => "timed out".to_owned(),
        ConnectError::Silent { .. } => "silent".to_owned(),
        ConnectError::Refused(_) => "refused".to_owned(),
        ConnectError::Rejected { .. } => "rejected".to_owned(),
        ConnectError::InvalidResponse(_) => "unreadable".to_owned(),
        other => format!("{other:?}"),
    };
    format!("no session: {reason}")
}

/// Why a connection ended, in one or two words.
fn disconnect_reason(ended: &Disconnect) -> String {
    match &ended.reason {
        DisconnectReason::Stopped => "stopped".to_owned(),
        DisconnectReason::PeerClosed => "closed".to_owned(),
        DisconnectReason::Broken(_) => "broken".to_owned(),
        DisconnectReason::Stalled(_) => "stalled".to_owned(),
        DisconnectReason::NotStarted(_) => "not started".to_owned(),
        other => format!("{other:?}"),
    }
}

//! Finds the owner of a server request or notification: the caller whose call it belongs to.
//!
//! On a transport with a response stream for each request the stream identifies the call. On a shared stream the
//! owner is known only while all calls belong to one caller: those in flight, and those that were cancelled or
//! timed out while the server may still work on them. The wrong caller would receive another client's data, so an
//! ambiguous request has no owner.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::rpc::caller::{Caller, CallerId};
use crate::rpc::outcome::RpcOutcome;
use crate::transport::{RequestId, StreamError};

/// How long a cancelled call counts, because the server may still work on it. A late response ends this time.
const CANCELLED_RETENTION: Duration = Duration::from_secs(15 * 60);

/// How long a call counts after its response, because a message that the server sent before the response may still
/// arrive on the notification stream.
const RESPONSE_RETENTION: Duration = Duration::from_secs(30);

/// Maximum number of cancelled calls that are remembered individually.
const MAX_CANCELLED: usize = 256;

/// The owner of a call: it receives the server requests that belong to the call.
#[derive(Debug, Clone, Default)]
pub(crate) enum CallOwner {
    /// None: this is an internal request of the session, for which the server must not send requests.
    #[default]
    None,
    /// The session.
    Session,
    /// This caller.
    Caller(Arc<Caller>),
}

/// The owner of a message from the server.
#[derive(Debug, Clone)]
pub(crate) enum MessageOwner {
    /// The session: the message belongs to no caller's call.
    Session,
    /// This caller.
    Caller(Arc<Caller>),
    /// One of several owners; it is not known which.
    Ambiguous,
    /// A caller whose calls have all ended.
    Finished,
}

impl MessageOwner {
    /// The caller, if there is one.
    pub(crate) fn caller(&self) -> Option<&Arc<Caller>> {
        match self {
            MessageOwner::Caller(caller) => Some(caller),
            MessageOwner::Session | MessageOwner::Ambiguous | MessageOwner::Finished => None,
        }
    }
}

impl CallOwner {
    /// How long open server requests may pause the caller's deadline.
    pub(crate) fn max_deadline_pause(&self) -> Duration {
        match self {
            CallOwner::Caller(caller) => caller.max_deadline_pause,
            CallOwner::None | CallOwner::Session => Duration::ZERO,
        }
    }

    /// The owner as a comparable key; `None` for an internal request.
    fn key(&self) -> Option<OwnerKey> {
        match self {
            CallOwner::None => None,
            CallOwner::Session => Some(OwnerKey::Session),
            CallOwner::Caller(caller) => Some(OwnerKey::CallerId(caller.id)),
        }
    }
}

/// A [`CallOwner`] that can be compared and copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum OwnerKey {
    Session,
    CallerId(CallerId),
}

/// How messages on a shared stream are ordered relative to responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamOrdering {
    /// Responses arrive on the same stream, in order.
    Ordered,
    /// Responses arrive on other streams, so a message may be late.
    Unordered,
}

/// Calls that ended recently, as far as the server may still send requests for them.
#[derive(Debug, Default)]
pub(crate) struct RecentCalls {
    cancelled: Vec<CancelledCall>,
    /// The time until which `cancelled` may be incomplete, because more than [`MAX_CANCELLED`] calls were cancelled.
    overflow_until: Option<Instant>,
    /// The caller that received the last response, and the time until which it counts.
    last_response: Option<(CallerId, Instant)>,
    /// The time until which the last response of another caller counts. Until then the owner is ambiguous on an
    /// unordered stream.
    other_response_until: Option<Instant>,
}

/// A cancelled call that the server may still work on until a time.
#[derive(Debug)]
struct CancelledCall {
    id: RequestId,
    owner: OwnerKey,
    until: Instant,
}

impl RecentCalls {
    /// Records a cancelled call.
    pub(crate) fn record_cancelled(&mut self, id: RequestId, owner: &CallOwner, now: Instant) {
        let Some(owner) = owner.key() else { return };
        let until = now + CANCELLED_RETENTION;
        self.cancelled.retain(|call| call.until > now);
        if self.cancelled.len() >= MAX_CANCELLED {
            self.overflow_until = Some(until);
            return;
        }
        self.cancelled.push(CancelledCall { id, owner, until });
    }

    /// Records a response for a caller's call.
    pub(crate) fn record_response(&mut self, caller: CallerId, now: Instant) {
        if let Some((last_caller, until)) = self.last_response
            && last_caller != caller
        {
            self.other_response_until = Some(until);
        }
        self.last_response = Some((caller, now + RESPONSE_RETENTION));
    }

    /// Records the outcome of a call.
    pub(crate) fn record_outcome(&mut self, id: RequestId, owner: &CallOwner, outcome: &RpcOutcome) {
        match outcome {
            RpcOutcome::Response { .. } | RpcOutcome::StreamFailed(StreamError::TooLarge(_)) => {
                if let CallOwner::Caller(caller) = owner {
                    self.record_response(caller.id, Instant::now());
                }
            }
            // The server may still work on the call.
            RpcOutcome::StreamFailed(StreamError::Lost(_)) | RpcOutcome::Expired(_) => {
                self.record_cancelled(id, owner, Instant::now());
            }
            // The server does not work on the call, or the connection has ended.
            RpcOutcome::StreamFailed(
                StreamError::NotExecuted(_) | StreamError::Unreachable(_) | StreamError::Refused(_),
            )
            | RpcOutcome::Closed(_) => {}
        }
    }

    /// Records a late response: the server no longer works on the call.
    pub(crate) fn record_late_response(&mut self, id: RequestId) {
        self.cancelled.retain(|call| call.id != id);
    }

    /// Finds the owner of a message on a shared stream. `in_flight` are the owners of the calls in flight, the latest
    /// call last. Of several callers with the same id, the latest is returned.
    pub(crate) fn owner<'a>(
        &self,
        in_flight: impl Iterator<Item = &'a CallOwner>,
        ordering: StreamOrdering,
        now: Instant,
    ) -> MessageOwner {
        let is_pending = |until: Instant| until > now;
        let is_unordered = ordering == StreamOrdering::Unordered;
        if self.overflow_until.is_some_and(is_pending)
            || is_unordered && self.other_response_until.is_some_and(is_pending)
        {
            return MessageOwner::Ambiguous;
        }
        let mut key = None;
        let mut latest_in_flight = None;
        for owner in in_flight {
            let Some(owner_key) = owner.key() else { continue };
            if key.is_some_and(|it| it != owner_key) {
                return MessageOwner::Ambiguous;
            }
            (key, latest_in_flight) = (Some(owner_key), Some(owner));
        }
        let cancelled = self.cancelled.iter().filter(|call| is_pending(call.until)).map(|call| call.owner);
        let last_response = self.last_response.filter(|(_, until)| is_unordered && is_pending(*until));
        for recent_key in cancelled.chain(last_response.map(|(caller, _)| OwnerKey::CallerId(caller))) {
            if key.is_some_and(|it| it != recent_key) {
                return MessageOwner::Ambiguous;
            }
            key = Some(recent_key);
        }
        match (latest_in_flight, key) {
            (Some(CallOwner::Caller(caller)), _) => MessageOwner::Caller(Arc::clone(caller)),
            (None, Some(OwnerKey::CallerId(_))) => MessageOwner::Finished,
            (Some(CallOwner::None | CallOwner::Session) | None, _) => MessageOwner::Session,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::rpc::handlers::Handlers;

    /// Runs steps and checks the owners that were found. A call starts (`+a1`: caller `a`, number 1; `+-2`: the
    /// session; `+.3`: internal), gets a response (`=1`), is cancelled (`x1`), or gets a late response (`~1`). Time
    /// passes (`7s`). An owner is looked up on an ordered stream (`?`) or an unordered one (`|`).
    #[track_caller]
    fn check(steps: &str, want: &str) {
        let owners: HashMap<char, CallerId> = "abc".chars().map(|it| (it, CallerId::unique())).collect();
        let owner = |name: char| match name {
            '.' => CallOwner::None,
            '-' => CallOwner::Session,
            name => CallOwner::Caller(Arc::new(Caller::new(owners[&name], Handlers::default()))),
        };
        let mut now = Instant::now();
        let mut recent = RecentCalls::default();
        let mut in_flight: Vec<(RequestId, CallOwner)> = Vec::new();
        let mut owners_found = Vec::new();
        for step in steps.split_whitespace() {
            if let Some(seconds) = step.strip_suffix('s') {
                now += Duration::from_secs(seconds.parse().unwrap());
                continue;
            }
            let number = step[1..].trim_start_matches(|it: char| !it.is_ascii_digit()).parse().unwrap_or(0);
            let at = in_flight.iter().position(|it| it.0 == number);
            match step.as_bytes()[0] {
                b'+' => in_flight.push((number, owner(step.chars().nth(1).unwrap()))),
                b'=' => {
                    if let (_, CallOwner::Caller(caller)) = in_flight.remove(at.unwrap()) {
                        recent.record_response(caller.id, now);
                    }
                }
                b'x' => {
                    let (id, owner) = in_flight.remove(at.unwrap());
                    recent.record_cancelled(id, &owner, now);
                }
                b'~' => recent.record_late_response(number),
                lookup => {
                    let ordering =
                        if lookup == b'?' { StreamOrdering::Ordered } else { StreamOrdering::Unordered };
                    let name = |it: CallerId| *owners.iter().find(|(_, other)| **other == it).unwrap().0;
                    owners_found.push(match recent.owner(in_flight.iter().map(|it| &it.1), ordering, now) {
                        MessageOwner::Session => "session".to_owned(),
                        MessageOwner::Caller(caller) => name(caller.id).to_string(),
                        MessageOwner::Ambiguous => "several".to_owned(),
                        MessageOwner::Finished => "over".to_owned(),
                    });
                }
            }
        }
        assert_eq!(owners_found.join(" "), want, "{steps}");
    }

    #[test]
    fn owner_is_known_while_all_calls_have_one_owner() {
        check("? |", "session session");
        check("+a1 ? | +a2 ?", "a a a");
        check("+a1 +b2 ? | =2 ? |", "several several a several");
        check("+.1 ? +a2 ? =2 ?", "session a session");
        check("+-1 ? +a2 ? =1 ?", "session several a");
    }

    #[test]
    fn cancelled_call_still_counts() {
        check("+a1 x1 ? +b2 ? ~1 ?", "over several b");
        check("+a1 x1 +a2 ? 899s ? +b3 ? =2 2s ?", "a a several b");
        check("+-1 x1 ? +a2 ? ~1 ?", "session several a");
        check("+a1 +b2 x1 =2 ?", "over");
    }

    #[test]
    fn recent_response_counts_on_an_unordered_stream() {
        check("+a1 =1 ? | +b2 ? | 31s | ?", "session over b several b b");
        check("+a1 =1 +a2 |", "a");
        check("+a1 =1 20s +b2 =2 9s | 2s | 20s |", "several over session");
        check("+a1 =1 20s +b2 =2 5s +a3 =3 6s | 20s |", "several over");
        check("+a1 =1 +b2 =2 +b3 =3 20s +b4 =4 11s | +b5 | +a6 |", "over b several");
    }

    #[test]
    fn responses_of_many_callers_do_not_affect_an_ordered_stream() {
        let now = Instant::now();
        let owner = CallOwner::Caller(Arc::new(Caller::new(CallerId::unique(), Handlers::default())));
        let mut recent = RecentCalls::default();
        (0..1000).for_each(|_| recent.record_response(CallerId::unique(), now));
        let owner_at = |ordering, now| recent.owner([&owner].into_iter(), ordering, now);
        assert!(matches!(owner_at(StreamOrdering::Ordered, now), MessageOwner::Caller(_)));
        assert!(matches!(owner_at(StreamOrdering::Unordered, now), MessageOwner::Ambiguous));
        assert!(matches!(
            owner_at(StreamOrdering::Unordered, now + RESPONSE_RETENTION),
            MessageOwner::Caller(_)
        ));
    }

    #[test]
    fn too_many_cancelled_calls_make_the_owner_ambiguous() {
        let now = Instant::now();
        let owner = CallOwner::Caller(Arc::new(Caller::new(CallerId::unique(), Handlers::default())));
        let mut recent = RecentCalls::default();
        (0..1000).for_each(|id| recent.record_cancelled(id, &owner, now));
        assert_eq!(recent.cancelled.len(), MAX_CANCELLED);
        let owner_at = |it: &RecentCalls, now| it.owner([&owner].into_iter(), StreamOrdering::Ordered, now);
        assert!(matches!(owner_at(&recent, now), MessageOwner::Ambiguous));
        assert!(matches!(owner_at(&recent, now + CANCELLED_RETENTION), MessageOwner::Caller(_)));
    }
}

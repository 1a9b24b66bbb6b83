//! Finds the owner of a server request or notification: the caller whose call it belongs to. Reads no clock: the
//! current time is an argument.
//!
//! On a transport with a response stream for each request the stream identifies the call. On a shared stream the
//! owner is known only while all calls belong to one caller: those in flight, and those that were cancelled or
//! timed out while the server may still work on them. A request that is sent to the wrong caller would show it
//! another client's data, so an ambiguous request has no owner.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::rpc::caller::{Caller, CallerId};
use crate::rpc::outcome::RpcOutcome;
use crate::transport::{RequestId, StreamError};

/// How long the server may still work on a cancelled call, unless a late response shows that it does not.
const CANCELLED_RETENTION: Duration = Duration::from_secs(15 * 60);

/// How long a message on the notification stream may be delayed behind the response on another stream.
const RESPONSE_RETENTION: Duration = Duration::from_secs(30);

/// Maximum number of cancelled calls that are remembered individually.
const MAX_CANCELLED: usize = 256;

/// The owner of a call, as far as its sender knows it.
#[derive(Debug, Clone, Default)]
pub(crate) enum OwnerHint {
    /// No owner: an internal request of the session, for which the server must not send requests.
    #[default]
    None,
    /// The session.
    Session,
    /// This caller.
    Caller(Arc<Caller>),
}

/// The owner of a message from the server.
#[derive(Debug, Clone)]
pub(crate) enum RequestOwner {
    /// The session: no caller's call can have caused it.
    Session,
    /// This caller.
    Caller(Arc<Caller>),
    /// One of several callers; it is not known which.
    Ambiguous,
    /// A call that has ended.
    Finished,
}

impl RequestOwner {
    /// The caller, if there is one.
    pub(crate) fn caller(&self) -> Option<&Arc<Caller>> {
        match self {
            RequestOwner::Caller(caller) => Some(caller),
            RequestOwner::Session | RequestOwner::Ambiguous | RequestOwner::Finished => None,
        }
    }
}

impl OwnerHint {
    /// How long open server requests may pause the caller's deadline.
    pub(crate) fn max_deadline_pause(&self) -> Duration {
        match self {
            OwnerHint::Caller(caller) => caller.max_deadline_pause,
            OwnerHint::None | OwnerHint::Session => Duration::ZERO,
        }
    }

    /// The owner as a key; `None` for an internal request.
    fn key(&self) -> Option<OwnerKey> {
        match self {
            OwnerHint::None => None,
            OwnerHint::Session => Some(OwnerKey::Session),
            OwnerHint::Caller(caller) => Some(OwnerKey::CallerId(caller.id)),
        }
    }
}

/// A possible owner of a server request.
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
    /// Cancelled calls, each with its owner and until when it counts.
    cancelled: Vec<(RequestId, OwnerKey, Instant)>,
    /// Until when calls may be missing here, because more than `MAX_CANCELLED` were cancelled.
    overflow_until: Option<Instant>,
    /// The caller of the last response, and until when it counts.
    last_response: Option<(CallerId, Instant)>,
    /// Until when the last response of another caller counts. Before that time the owner is ambiguous.
    earlier_response_until: Option<Instant>,
}

impl RecentCalls {
    /// Records a cancelled call.
    pub(crate) fn record_cancelled(&mut self, id: RequestId, hint: &OwnerHint, now: Instant) {
        let Some(key) = hint.key() else { return };
        let until = now + CANCELLED_RETENTION;
        self.cancelled.retain(|it| it.2 > now);
        if self.cancelled.len() >= MAX_CANCELLED {
            self.overflow_until = Some(until);
            return;
        }
        self.cancelled.push((id, key, until));
    }

    /// Records a response for a caller's call.
    pub(crate) fn record_response(&mut self, owner: CallerId, now: Instant) {
        if let Some((_, until)) = self.last_response.filter(|it| it.0 != owner) {
            self.earlier_response_until = Some(until);
        }
        self.last_response = Some((owner, now + RESPONSE_RETENTION));
    }

    /// Records the outcome of a call.
    pub(crate) fn record_outcome(&mut self, id: RequestId, hint: &OwnerHint, outcome: &RpcOutcome) {
        match outcome {
            RpcOutcome::Response { .. } | RpcOutcome::StreamFailed(StreamError::TooLarge(_)) => {
                if let OwnerHint::Caller(caller) = hint {
                    self.record_response(caller.id, Instant::now());
                }
            }
            // The server may still work on it.
            RpcOutcome::StreamFailed(StreamError::Lost(_)) | RpcOutcome::Expired(_) => {
                self.record_cancelled(id, hint, Instant::now());
            }
            // The server does not work on it, or the connection has ended.
            RpcOutcome::StreamFailed(
                StreamError::NotExecuted(_) | StreamError::Unreachable(_) | StreamError::Refused(_),
            )
            | RpcOutcome::Closed(_) => {}
        }
    }

    /// Records a late response: the server no longer works on the call.
    pub(crate) fn record_late_response(&mut self, id: RequestId) {
        self.cancelled.retain(|it| it.0 != id);
    }

    /// The owner of a message on a shared stream, given the owners of the calls in flight, the latest last.
    pub(crate) fn owner<'a>(
        &self,
        in_flight: impl Iterator<Item = &'a OwnerHint>,
        ordering: StreamOrdering,
        now: Instant,
    ) -> RequestOwner {
        let counts = |until: Instant| until > now;
        let is_unordered = ordering == StreamOrdering::Unordered;
        if self.overflow_until.is_some_and(counts)
            || is_unordered && self.earlier_response_until.is_some_and(counts)
        {
            return RequestOwner::Ambiguous;
        }
        let mut key = None;
        let mut latest = None;
        for hint in in_flight {
            let Some(next) = hint.key() else { continue };
            if key.is_some_and(|it| it != next) {
                return RequestOwner::Ambiguous;
            }
            (key, latest) = (Some(next), Some(hint));
        }
        let cancelled = self.cancelled.iter().filter(|it| counts(it.2)).map(|it| it.1);
        let last_response = self.last_response.filter(|it| is_unordered && counts(it.1));
        for recent in cancelled.chain(last_response.map(|it| OwnerKey::CallerId(it.0))) {
            if key.is_some_and(|it| it != recent) {
                return RequestOwner::Ambiguous;
            }
            key = Some(recent);
        }
        match (latest, key) {
            (Some(OwnerHint::Caller(caller)), _) => RequestOwner::Caller(Arc::clone(caller)),
            (None, Some(OwnerKey::CallerId(_))) => RequestOwner::Finished,
            (Some(OwnerHint::None | OwnerHint::Session) | None, _) => RequestOwner::Session,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::rpc::handlers::Handlers;

    /// Calls start (`+a1`: caller `a`, number 1; `+-2`: the session; `+.3`: internal), get a response (`=1`), are
    /// cancelled (`x1`) or get a late response (`~1`); time passes (`7s`); the owner is looked up on an ordered stream
    /// (`?`) or an unordered one (`|`).
    #[track_caller]
    fn check(steps: &str, want: &str) {
        let owners: HashMap<char, CallerId> = "abc".chars().map(|it| (it, CallerId::unique())).collect();
        let hint = |it: char| match it {
            '.' => OwnerHint::None,
            '-' => OwnerHint::Session,
            it => OwnerHint::Caller(Arc::new(Caller::new(owners[&it], Handlers::default()))),
        };
        let mut now = Instant::now();
        let mut recent = RecentCalls::default();
        let mut in_flight: Vec<(RequestId, OwnerHint)> = Vec::new();
        let mut owners_found = Vec::new();
        for step in steps.split_whitespace() {
            if let Some(seconds) = step.strip_suffix('s') {
                now += Duration::from_secs(seconds.parse().unwrap());
                continue;
            }
            let number = step[1..].trim_start_matches(|it: char| !it.is_ascii_digit()).parse().unwrap_or(0);
            let at = in_flight.iter().position(|it| it.0 == number);
            match step.as_bytes()[0] {
                b'+' => in_flight.push((number, hint(step.chars().nth(1).unwrap()))),
                b'=' => {
                    if let (_, OwnerHint::Caller(caller)) = in_flight.remove(at.unwrap()) {
                        recent.record_response(caller.id, now);
                    }
                }
                b'x' => {
                    let (id, hint) = in_flight.remove(at.unwrap());
                    recent.record_cancelled(id, &hint, now);
                }
                b'~' => recent.record_late_response(number),
                lookup => {
                    let ordering =
                        if lookup == b'?' { StreamOrdering::Ordered } else { StreamOrdering::Unordered };
                    let name = |it: CallerId| *owners.iter().find(|(_, other)| **other == it).unwrap().0;
                    owners_found.push(match recent.owner(in_flight.iter().map(|it| &it.1), ordering, now) {
                        RequestOwner::Session => "session".to_owned(),
                        RequestOwner::Caller(caller) => name(caller.id).to_string(),
                        RequestOwner::Ambiguous => "several".to_owned(),
                        RequestOwner::Finished => "over".to_owned(),
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

    /// Each stateless client is a new caller.
    #[test]
    fn many_responses_do_not_affect_an_ordered_stream() {
        let (now, owner) = (Instant::now(), CallerId::unique());
        let hint = OwnerHint::Caller(Arc::new(Caller::new(owner, Handlers::default())));
        let mut recent = RecentCalls::default();
        (0..1000).for_each(|_| recent.record_response(CallerId::unique(), now));
        let owner_at = |ordering, now| recent.owner([&hint].into_iter(), ordering, now);
        assert!(matches!(owner_at(StreamOrdering::Ordered, now), RequestOwner::Caller(_)));
        assert!(matches!(owner_at(StreamOrdering::Unordered, now), RequestOwner::Ambiguous));
        assert!(matches!(
            owner_at(StreamOrdering::Unordered, now + RESPONSE_RETENTION),
            RequestOwner::Caller(_)
        ));
    }

    #[test]
    fn too_many_cancelled_calls_make_the_owner_ambiguous() {
        let (now, owner) = (Instant::now(), CallerId::unique());
        let hint = OwnerHint::Caller(Arc::new(Caller::new(owner, Handlers::default())));
        let mut recent = RecentCalls::default();
        (0..1000).for_each(|id| recent.record_cancelled(id, &hint, now));
        assert_eq!(recent.cancelled.len(), MAX_CANCELLED);
        let owner_at = |it: &RecentCalls, now| it.owner([&hint].into_iter(), StreamOrdering::Ordered, now);
        assert!(matches!(owner_at(&recent, now), RequestOwner::Ambiguous));
        assert!(matches!(owner_at(&recent, now + CANCELLED_RETENTION), RequestOwner::Caller(_)));
    }
}

//! Whose call it is that a peer asks or says something about: pure, the clock is an argument.
//!
//! A wire with a stream for each request says it by itself. Where everything shares one, it is known only as long as all
//! calls are of one owner: those in flight, and those that were given up while the peer may still work on them. A question
//! that reached somebody else would show him another client's business, so what is not known is nobody's.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::rpc::pending::Outcome;
use crate::session::{Caller, CallerId};
use crate::transport::{RequestId, StreamError};

/// How long a call that was given up counts as one that the peer may ask about. One that is answered late counts no longer.
const GIVEN_UP: Duration = Duration::from_secs(15 * 60);

/// How long a call that was answered counts on a stream beside that of its answer: one may overtake the other.
const SETTLED: Duration = Duration::from_secs(30);

/// How many calls that were given up are remembered one by one.
const MOST: usize = 256;

/// Who has a stake in a request.
#[derive(Debug, Clone, Default)]
pub(crate) enum Stake {
    /// Nobody: it is of the session's own, and the peer asks nothing because of it.
    #[default]
    None,
    /// Whoever has the session.
    Session,
    /// This caller.
    Caller(Arc<Caller>),
}

/// Whose call something is about.
#[derive(Debug, Clone)]
pub(crate) enum Whose {
    /// That of whoever has the session, or no call at all.
    Session,
    /// This caller's.
    Caller(Arc<Caller>),
    /// One of several callers'; it is not known whose.
    Several,
    /// One that is over.
    Over,
}

impl Whose {
    /// The caller, where it is one's.
    pub(crate) fn caller(&self) -> Option<&Arc<Caller>> {
        match self {
            Whose::Caller(caller) => Some(caller),
            Whose::Session | Whose::Several | Whose::Over => None,
        }
    }
}

impl Stake {
    /// How long its caller may take for what he is asked.
    pub(crate) fn patience(&self) -> Duration {
        match self {
            Stake::Caller(caller) => caller.max_deadline_pause,
            Stake::None | Stake::Session => Duration::ZERO,
        }
    }

    /// Whose it is; nobody's is `None`.
    fn owner(&self) -> Option<Party> {
        match self {
            Stake::None => None,
            Stake::Session => Some(Party::Session),
            Stake::Caller(caller) => Some(Party::CallerId(caller.id)),
        }
    }
}

/// Somebody a question may be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Party {
    Session,
    CallerId(CallerId),
}

/// What everything comes by that is no answer's own stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Common {
    /// The one that answers come by, too: nothing is overtaken.
    Ordered,
    /// One beside theirs.
    Beside,
}

/// Calls that are over, as far as the peer may still ask about them.
#[derive(Debug, Default)]
pub(crate) struct Former {
    given_up: Vec<(RequestId, Party, Instant)>,
    /// Until when there are more of them than are remembered.
    crowded: Option<Instant>,
    /// Whose call was answered last, and until when it counts.
    settled: Option<(CallerId, Instant)>,
    /// Until when the last one counts that was another's. With it there are several, however many there are.
    settled_before: Option<Instant>,
}

impl Former {
    /// A call was given up.
    pub(crate) fn give_up(&mut self, id: RequestId, stake: &Stake, now: Instant) {
        let Some(party) = stake.owner() else { return };
        let until = now + GIVEN_UP;
        self.given_up.retain(|it| it.2 > now);
        if self.given_up.len() >= MOST {
            self.crowded = Some(until);
            return;
        }
        self.given_up.push((id, party, until));
    }

    /// A caller's call was answered.
    pub(crate) fn settle(&mut self, owner: CallerId, now: Instant) {
        if let Some((_, until)) = self.settled.filter(|it| it.0 != owner) {
            self.settled_before = Some(until);
        }
        self.settled = Some((owner, now + SETTLED));
    }

    /// A call was told how it ended.
    pub(crate) fn told(&mut self, id: RequestId, stake: &Stake, outcome: &Outcome) {
        match (stake, outcome) {
            (
                Stake::Caller(caller),
                Outcome::Answer { .. } | Outcome::LaneEnded(StreamError::TooLarge(_)),
            ) => {
                self.settle(caller.id, Instant::now());
            }
            // The peer may work on it all the same.
            (_, Outcome::LaneEnded(StreamError::Lost(_)) | Outcome::Expired(_)) => {
                self.give_up(id, stake, Instant::now());
            }
            // Nobody works on it, or nobody is there any more.
            (
                Stake::None | Stake::Session,
                Outcome::Answer { .. } | Outcome::LaneEnded(StreamError::TooLarge(_)),
            )
            | (
                _,
                Outcome::LaneEnded(StreamError::NotExecuted(_) | StreamError::Refused(_))
                | Outcome::Closed(_),
            ) => {}
        }
    }

    /// An answer came for a call that is not in flight: the peer works on it no more.
    pub(crate) fn answered(&mut self, id: RequestId) {
        self.given_up.retain(|it| it.0 != id);
    }

    /// Whose something is that came by a common way, while the calls with these stakes are in flight, the latest last.
    pub(crate) fn whose<'a>(
        &self,
        in_flight: impl Iterator<Item = &'a Stake>,
        common: Common,
        now: Instant,
    ) -> Whose {
        let counts = |until: Instant| until > now;
        let is_late = common == Common::Beside;
        if self.crowded.is_some_and(counts) || is_late && self.settled_before.is_some_and(counts) {
            return Whose::Several;
        }
        let mut party = None;
        let mut latest = None;
        for stake in in_flight {
            let Some(next) = stake.owner() else { continue };
            if party.is_some_and(|it| it != next) {
                return Whose::Several;
            }
            (party, latest) = (Some(next), Some(stake));
        }
        let given_up = self.given_up.iter().filter(|it| counts(it.2)).map(|it| it.1);
        let settled = self.settled.filter(|it| is_late && counts(it.1));
        for former in given_up.chain(settled.map(|it| Party::CallerId(it.0))) {
            if party.is_some_and(|it| it != former) {
                return Whose::Several;
            }
            party = Some(former);
        }
        match (latest, party) {
            (Some(Stake::Caller(caller)), _) => Whose::Caller(Arc::clone(caller)),
            (None, Some(Party::CallerId(_))) => Whose::Over,
            (Some(Stake::None | Stake::Session) | None, _) => Whose::Session,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::session::Handlers;

    /// Calls begin (`+a1`: of owner `a`, number 1; `+-2`: of the session; `+.3`: of nobody), are answered (`=1`), given up
    /// (`x1`) or answered after that (`~1`), time passes (`7s`), and somebody looks whose something is that comes by the
    /// ordered way (`?`) or beside it (`|`).
    #[track_caller]
    fn check(steps: &str, want: &str) {
        let owners: HashMap<char, CallerId> = "abc".chars().map(|it| (it, CallerId::unique())).collect();
        let stake = |it: char| match it {
            '.' => Stake::None,
            '-' => Stake::Session,
            it => Stake::Caller(Arc::new(Caller::new(owners[&it], Handlers::default()))),
        };
        let mut now = Instant::now();
        let mut former = Former::default();
        let mut in_flight: Vec<(RequestId, Stake)> = Vec::new();
        let mut seen = Vec::new();
        for step in steps.split_whitespace() {
            if let Some(seconds) = step.strip_suffix('s') {
                now += Duration::from_secs(seconds.parse().unwrap());
                continue;
            }
            let number = step[1..].trim_start_matches(|it: char| !it.is_ascii_digit()).parse().unwrap_or(0);
            let at = in_flight.iter().position(|it| it.0 == number);
            match step.as_bytes()[0] {
                b'+' => in_flight.push((number, stake(step.chars().nth(1).unwrap()))),
                b'=' => {
                    if let (_, Stake::Caller(caller)) = in_flight.remove(at.unwrap()) {
                        former.settle(caller.id, now);
                    }
                }
                b'x' => {
                    let (id, stake) = in_flight.remove(at.unwrap());
                    former.give_up(id, &stake, now);
                }
                b'~' => former.answered(number),
                how => {
                    let common = if how == b'?' { Common::Ordered } else { Common::Beside };
                    let name = |it: CallerId| *owners.iter().find(|(_, other)| **other == it).unwrap().0;
                    seen.push(match former.whose(in_flight.iter().map(|it| &it.1), common, now) {
                        Whose::Session => "session".to_owned(),
                        Whose::Caller(caller) => name(caller.id).to_string(),
                        Whose::Several => "several".to_owned(),
                        Whose::Over => "over".to_owned(),
                    });
                }
            }
        }
        assert_eq!(seen.join(" "), want, "{steps}");
    }

    #[test]
    fn it_is_known_while_all_calls_are_of_one_owner() {
        check("? |", "session session");
        check("+a1 ? | +a2 ?", "a a a");
        check("+a1 +b2 ? | =2 ? |", "several several a several");
        check("+.1 ? +a2 ? =2 ?", "session a session");
        check("+-1 ? +a2 ? =1 ?", "session several a");
    }

    #[test]
    fn what_was_given_up_may_still_be_asked_about() {
        check("+a1 x1 ? +b2 ? ~1 ?", "over several b");
        check("+a1 x1 +a2 ? 899s ? +b3 ? =2 2s ?", "a a several b");
        check("+-1 x1 ? +a2 ? ~1 ?", "session several a");
        check("+a1 +b2 x1 =2 ?", "over");
    }

    #[test]
    fn a_stream_beside_that_of_the_answers_may_be_late() {
        check("+a1 =1 ? | +b2 ? | 31s | ?", "session over b several b b");
        check("+a1 =1 +a2 |", "a");
        check("+a1 =1 20s +b2 =2 9s | 2s | 20s |", "several over session");
        check("+a1 =1 20s +b2 =2 5s +a3 =3 6s | 20s |", "several over");
        check("+a1 =1 +b2 =2 +b3 =3 20s +b4 =4 11s | +b5 | +a6 |", "over b several");
    }

    /// Clients of the era without sessions are a new caller each time.
    #[test]
    fn calls_of_any_number_that_were_answered_do_not_touch_what_cannot_be_late() {
        let (now, owner) = (Instant::now(), CallerId::unique());
        let stake = Stake::Caller(Arc::new(Caller::new(owner, Handlers::default())));
        let mut former = Former::default();
        (0..1000).for_each(|_| former.settle(CallerId::unique(), now));
        let whose = |common, now| former.whose([&stake].into_iter(), common, now);
        assert!(matches!(whose(Common::Ordered, now), Whose::Caller(_)));
        assert!(matches!(whose(Common::Beside, now), Whose::Several));
        assert!(matches!(whose(Common::Beside, now + SETTLED), Whose::Caller(_)));
    }

    #[test]
    fn more_than_can_be_remembered_is_nobodys() {
        let (now, owner) = (Instant::now(), CallerId::unique());
        let stake = Stake::Caller(Arc::new(Caller::new(owner, Handlers::default())));
        let mut former = Former::default();
        (0..1000).for_each(|id| former.give_up(id, &stake, now));
        assert_eq!(former.given_up.len(), MOST);
        let whose = |it: &Former, now| it.whose([&stake].into_iter(), Common::Ordered, now);
        assert!(matches!(whose(&former, now), Whose::Several));
        assert!(matches!(whose(&former, now + GIVEN_UP), Whose::Caller(_)));
    }
}

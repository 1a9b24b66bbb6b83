//! Which messages are on their way and which still wait: bookkeeping, no I/O.
//!
//! The queue of the engine is always emptied, also when no more messages can be on their way: an abandonment must
//! reach the lane that it ends, and would never come past the messages before it. What waits here is bounded in bytes:
//! past the bound requests are refused and answers dropped, for the peer reads neither.

use std::collections::{BTreeMap, VecDeque};

use futures_util::future::AbortHandle;
use mcp_model::{Era, ProtocolVersion};

use crate::transport::{Epoch, MessageHead, Outbound, OutboundMessage, RequestId};

/// The message that must be through before anything else is sent.
const GATE: &str = crate::net::INITIALIZED;

/// The request that the message follows.
pub(super) const OPENING: &str = "initialize";

/// How many messages are on their way at once. The rest waits its turn, and can be given up while it waits.
const MOST_IN_FLIGHT: usize = 512;

/// The messages of one connection.
#[derive(Default)]
pub(super) struct Lanes {
    requests: BTreeMap<RequestId, Lane>,
    waiting: VecDeque<Option<OutboundMessage>>,
    /// The number of the first that waits.
    first: u64,
    /// What the waiting messages cost together.
    cost: usize,
    /// A session whose opening is to be through before anything else is sent.
    gated: Option<Epoch>,
    /// How many messages are on their way.
    in_flight: usize,
    /// The session that is being opened: what is sent before that is over keeps its place in the queue.
    opening: Option<Epoch>,
    /// The wire is over.
    closed: bool,
}

/// What became of a thing to do.
#[derive(Debug)]
pub(super) enum Taken {
    /// It waits, or is done.
    Kept,
    /// This request is not taken, because too much waits.
    Refused(RequestId),
    /// A request is taken back with this.
    Abort(AbortHandle),
}

/// How much may wait.
const MOST_WAITING: usize = 64 << 20;

/// What a message costs while it waits: its bytes, and what is kept beside them.
fn cost(message: &OutboundMessage) -> usize {
    message.body.len() + 256
}

/// Small, for it is moved about as others come and go.
pub(super) enum Lane {
    /// The number that its message waits under. It may be given up, and then nothing is left there.
    Waiting(u64),
    Open {
        abort: AbortHandle,
        epoch: Epoch,
        version: Option<ProtocolVersion>,
        cancellable: bool,
    },
}

impl Lanes {
    /// Takes a thing to do.
    pub(super) fn take(&mut self, out: Outbound) -> Taken {
        let message = match out {
            Outbound::Send(message) => message,
            Outbound::Cancel { id, notice } => return self.abandon(id, notice),
        };
        if self.cost + cost(&message) > MOST_WAITING {
            return message.head.id.map_or(Taken::Kept, Taken::Refused);
        }
        if let Some(id) = message.head.id {
            let number = self.first + self.waiting.len() as u64;
            self.requests.insert(id, Lane::Waiting(number));
        }
        if message.head.method == OPENING {
            self.opening = Some(message.epoch);
        }
        self.wait(message);
        Taken::Kept
    }

    /// May a request be sent that has not waited? Not before those that do.
    pub(super) fn admits(&self, message: &OutboundMessage) -> bool {
        let has_room = self.in_flight < MOST_IN_FLIGHT && self.waiting.is_empty();
        let may = self.gated.is_none() && self.opening.is_none() && !self.closed;
        may && has_room && message.head.method != OPENING
    }

    /// The next message to send, where one may be sent now.
    pub(super) fn next(&mut self) -> Option<OutboundMessage> {
        while self.gated.is_none() && self.in_flight < MOST_IN_FLIGHT {
            let message = self.waiting.pop_front()?;
            self.first += 1;
            let Some(message) = message else { continue };
            self.cost -= cost(&message);
            let is_gate = message.head.id.is_none() && message.head.method == GATE;
            self.gated = is_gate.then_some(message.epoch);
            return Some(message);
        }
        None
    }

    /// A message is on its way, and `abort` takes it back.
    pub(super) fn began(&mut self, message: &OutboundMessage, abort: AbortHandle) {
        let MessageHead { id, method, name: _, version, header_params: _ } = &message.head;
        self.in_flight += 1;
        if let Some(id) = id {
            // The protocol forbids to cancel the opening.
            let cancellable = method != OPENING && version.is_none_or(|it| it.era() == Era::Legacy);
            let lane = Lane::Open { abort, epoch: message.epoch, version: *version, cancellable };
            self.requests.insert(*id, lane);
        }
    }

    /// A request was answered elsewhere: nobody needs the response that it was expected on.
    pub(super) fn release(&self, id: RequestId) -> Option<AbortHandle> {
        match self.requests.get(&id)? {
            Lane::Open { abort, .. } => Some(abort.clone()),
            Lane::Waiting(_) => None,
        }
    }

    /// A message is through. Gives the lane that it had, and whether another message waits.
    pub(super) fn settled(&mut self, id: Option<RequestId>) -> (Option<Lane>, bool) {
        self.in_flight -= 1;
        (id.and_then(|id| self.requests.remove(&id)), !self.waiting.is_empty())
    }

    /// The opening of this session needs to be waited for no longer; nor that of an earlier one.
    pub(super) fn ready(&mut self, epoch: Epoch) {
        for opening in [&mut self.gated, &mut self.opening] {
            *opening = opening.filter(|it| *it > epoch);
        }
    }

    /// Is the wire over?
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The wire is over: what takes back what is on its way.
    pub(super) fn close(&mut self) -> Vec<AbortHandle> {
        self.closed = true;
        let open = |lane| match lane {
            Lane::Open { abort, .. } => Some(abort),
            Lane::Waiting(_) => None,
        };
        std::mem::take(&mut self.requests).into_values().filter_map(open).collect()
    }

    fn wait(&mut self, message: OutboundMessage) {
        self.cost += cost(&message);
        self.waiting.push_back(Some(message));
    }

    fn abandon(&mut self, id: RequestId, notice: Option<bytes::Bytes>) -> Taken {
        match self.requests.remove(&id) {
            // It was answered in the meantime, or it was never sent.
            None => Taken::Kept,
            Some(Lane::Waiting(number)) => {
                let place = usize::try_from(number - self.first).ok().and_then(|it| self.waiting.get_mut(it));
                if let Some(message) = place.and_then(Option::take) {
                    self.cost -= cost(&message);
                    if message.head.method == OPENING {
                        self.ready(message.epoch);
                    }
                }
                while let Some(None) = self.waiting.back() {
                    self.waiting.pop_back();
                }
                Taken::Kept
            }
            Some(Lane::Open { abort, epoch, version, cancellable }) => {
                // In the modern era closing the stream says it.
                if let Some(notice) = notice.filter(|_| cancellable) {
                    let head = MessageHead::new(None, crate::net::CANCELLED.into(), version);
                    self.wait(OutboundMessage { epoch, head, body: notice });
                }
                Taken::Abort(abort)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn what_waits_is_bounded_and_its_cost_comes_back() {
        let message = |id| {
            let head = MessageHead::new(id, "m".into(), None);
            Outbound::Send(OutboundMessage { epoch: Epoch(0), head, body: Bytes::from(vec![0; 1 << 20]) })
        };
        let mut lanes = Lanes::default();
        let refused = |taken| if let Taken::Refused(id) = taken { Some(id) } else { None };
        let all: Vec<_> = (1..=70).filter_map(|id| refused(lanes.take(message(Some(id))))).collect();
        assert_eq!(all, (64..=70).collect::<Vec<_>>());
        assert_eq!(refused(lanes.take(message(None))), None, "an answer is dropped");
        lanes.take(Outbound::Cancel { id: 1, notice: None });
        let mut sent = 0;
        while lanes.next().is_some() {
            sent += 1;
        }
        assert_eq!((sent, lanes.cost), (62, 0));
        assert_eq!(refused(lanes.take(message(Some(71)))), None);
    }

    const LEGACY: Option<ProtocolVersion> = Some(ProtocolVersion::LATEST_LEGACY);
    const MODERN: Option<ProtocolVersion> = Some(ProtocolVersion::LATEST);

    fn message(
        id: Option<RequestId>,
        method: &'static str,
        version: Option<ProtocolVersion>,
    ) -> OutboundMessage {
        OutboundMessage {
            epoch: Epoch(0),
            head: MessageHead::new(id, method.into(), version),
            body: Bytes::new(),
        }
    }

    /// Takes messages and abandonments (`-7`), sends what may be sent after each, and says what was sent.
    #[track_caller]
    fn check(version: Option<ProtocolVersion>, steps: &[&'static str], want: &str) {
        let mut lanes = Lanes::default();
        let mut sent = Vec::new();
        let mut aborted = Vec::new();
        for step in steps {
            match step.split_once(' ') {
                Some(("settled", id)) => drop(lanes.settled(id.parse().ok())),
                Some((id, method)) => {
                    let taken = lanes.take(Outbound::Send(message(id.parse().ok(), method, version)));
                    assert!(matches!(taken, Taken::Kept), "{taken:?}");
                }
                None if *step == "ready" => lanes.ready(Epoch(0)),
                None => {
                    let id = step.trim_start_matches('-').parse().unwrap();
                    if let Taken::Abort(open) =
                        lanes.take(Outbound::Cancel { id, notice: Some(Bytes::new()) })
                    {
                        open.abort();
                    }
                }
            }
            while let Some(message) = lanes.next() {
                let (abort, registration) = AbortHandle::new_pair();
                lanes.began(&message, abort);
                sent.push(message.head.method.to_string());
                aborted.push(registration);
            }
        }
        let aborted = aborted.iter().filter(|it| it.handle().is_aborted()).count();
        assert_eq!(format!("{}; {aborted} aborted", sent.join(" ")), want);
    }

    #[test]
    fn nothing_overtakes_the_end_of_the_opening() {
        check(
            LEGACY,
            &["1 initialize", "settled 1", "- notifications/initialized", "2 a", "3 b"],
            "initialize notifications/initialized; 0 aborted",
        );
        check(
            LEGACY,
            &["- notifications/initialized", "2 a", "3 b", "-2", "ready"],
            "notifications/initialized b; 0 aborted",
        );
    }

    #[test]
    fn the_end_of_an_earlier_opening_lets_nothing_go() {
        let of = |epoch, id, method| OutboundMessage { epoch: Epoch(epoch), ..message(id, method, LEGACY) };
        let mut lanes = Lanes::default();
        let sent = |lanes: &mut Lanes| {
            lanes.next().map(|it| {
                lanes.began(&it, AbortHandle::new_pair().0);
                it.head.method.into_owned()
            })
        };
        let call = of(1, Some(9), "a");
        assert!(lanes.admits(&call));
        lanes.take(Outbound::Send(of(1, Some(1), OPENING)));
        assert_eq!(sent(&mut lanes).as_deref(), Some(OPENING));
        lanes.ready(Epoch(0));
        assert!(!lanes.admits(&call), "a session is being opened");
        lanes.take(Outbound::Send(of(1, None, GATE)));
        assert_eq!(sent(&mut lanes).as_deref(), Some(GATE));
        lanes.take(Outbound::Send(of(1, Some(2), "b")));
        lanes.ready(Epoch(0));
        assert!(!lanes.admits(&call) && sent(&mut lanes).is_none());
        lanes.ready(Epoch(1));
        assert!(!lanes.admits(&call), "another one waits");
        assert_eq!(sent(&mut lanes).as_deref(), Some("b"));
        assert!(lanes.admits(&call));
        assert_eq!(lanes.close().len(), 2);
        assert!(!lanes.admits(&call));
    }

    #[test]
    fn abandoning_tells_a_legacy_server_and_leaves_a_modern_one() {
        check(LEGACY, &["1 a", "-1"], "a notifications/cancelled; 1 aborted");
        check(MODERN, &["1 a", "-1"], "a; 1 aborted");
        check(None, &["1 initialize", "-1"], "initialize; 1 aborted");
    }

    #[test]
    fn what_is_settled_cannot_be_abandoned() {
        check(LEGACY, &["1 a", "settled 1", "-1"], "a; 0 aborted");
        check(LEGACY, &["-9", "1 a"], "a; 0 aborted");
    }
}

//! The calls that wait for an answer.
//!
//! One table behind one short lock, and closing takes the same lock: a call is either in the table when the
//! connection ends, and is told, or it comes later and is refused. None is stranded. Nothing in here waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use slab::Slab;
use tokio::time::Instant;

use crate::error::end::Disconnect;
use crate::rpc::deadline::{Deadline, Expiry};
use crate::rpc::progress::{OnProgress, Progress};
use crate::rpc::request_owner::{Common, Former, Stake, Whose};
use crate::transport::{RequestId, StreamError, StreamId};

/// What a call was told.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The peer answered.
    Answer { frame: Bytes, is_error: bool, payload: usize },
    /// Its lane ended without an answer.
    LaneEnded(StreamError),
    /// A deadline passed.
    Expired(Expiry),
    /// The connection ended.
    Closed(Arc<Disconnect>),
}

struct Call {
    serial: u64,
    deadline: Deadline,
    progress: Option<OnProgress>,
    stake: Stake,
    state: State,
}

enum State {
    Waiting(Option<Waker>),
    Told(Outcome),
}

#[derive(Default)]
struct Table {
    calls: Slab<Call>,
    serial: u64,
    /// When the timer will look next; later than no call's deadline.
    armed: Option<Instant>,
    closed: Option<Arc<Disconnect>>,
    /// Whether any call was ever a caller's: where none was, all is the session's own.
    has_callers: bool,
    former: Former,
}

/// The table of calls in flight.
#[derive(Default)]
pub(crate) struct Pending(Mutex<Table>);

/// How many low bits of an id are the call's place in the table; the rest counts up. Ids stay below 2^53, what every
/// JSON reader takes, for the first 2^37 calls of a connection.
const PLACE_BITS: u32 = 16;

/// The most calls in flight that a table can hold.
pub(crate) const MAX_CALLS: usize = 1 << PLACE_BITS;

/// A call that has begun.
pub(crate) struct Begun {
    pub(crate) id: RequestId,
    /// The timer sleeps past this call's deadline, and must be told.
    pub(crate) rearm: bool,
}

impl Pending {
    /// Enters a call. Fails with the end when the connection is over. The caller holds one of at most
    /// [`MOST_CALLS`] permits.
    pub(crate) fn begin(
        &self,
        deadline: Deadline,
        progress: Option<OnProgress>,
        stake: Stake,
    ) -> Result<Begun, Arc<Disconnect>> {
        let mut table = self.lock();
        if let Some(ended) = &table.closed {
            return Err(Arc::clone(ended));
        }
        table.serial += 1;
        let serial = table.serial;
        table.has_callers |= matches!(stake, Stake::Caller(_));
        let place =
            table.calls.insert(Call { serial, deadline, progress, stake, state: State::Waiting(None) });
        assert!(place < MAX_CALLS, "the permits bound the calls in flight");
        let rearm = table.arm(deadline.next());
        Ok(Begun { id: serial << PLACE_BITS | place as u64, rearm })
    }

    /// Looks whether call `id` was told something, and forgets it if so.
    pub(crate) fn poll(&self, id: RequestId, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut table = self.lock();
        let call = table.get(id).expect("a call is forgotten only by its owner");
        match &mut call.state {
            State::Waiting(Some(waker)) if waker.will_wake(context.waker()) => return Poll::Pending,
            State::Waiting(waker) => {
                let replaced = waker.replace(context.waker().clone());
                // What strangers made is dropped outside the lock: their `Drop` may come back here.
                drop(table);
                drop(replaced);
                return Poll::Pending;
            }
            State::Told(_) => {}
        }
        let call = table.calls.remove(place(id));
        drop(table);
        match call.state {
            State::Told(outcome) => Poll::Ready(outcome),
            State::Waiting(_) => unreachable!("it was told, and the lock was held since"),
        }
    }

    /// Forgets call `id`, whose owner has gone. True when the peer may still be working on it.
    pub(crate) fn forget(&self, id: RequestId) -> bool {
        let mut table = self.lock();
        let call = table.get(id).is_some().then(|| table.calls.remove(place(id)));
        let is_waiting = call.as_ref().is_some_and(|it| matches!(it.state, State::Waiting(_)));
        if let Some(call) = call.as_ref().filter(|_| is_waiting) {
            table.former.give_up(id, &call.stake, Instant::now());
        }
        // What strangers made is dropped outside the lock.
        drop(table);
        drop(call);
        is_waiting
    }

    /// Whose call it is that something is about which came by `lane`.
    pub(crate) fn whose(&self, lane: StreamId) -> Whose {
        let mut table = self.lock();
        if !table.has_callers {
            return Whose::Session;
        }
        let common = match lane {
            StreamId::Shared => Common::Ordered,
            StreamId::Notifications(_) => Common::Beside,
            StreamId::Request(id, _) => {
                return match table.get(id).map(|it| &it.stake) {
                    Some(Stake::Caller(caller)) => Whose::Caller(Arc::clone(caller)),
                    Some(Stake::Session | Stake::None) => Whose::Session,
                    None => Whose::Over,
                };
            }
        };
        let mut waiting: Vec<(u64, &Stake)> = table.waiting().map(|it| (it.serial, &it.stake)).collect();
        waiting.sort_unstable_by_key(|it| it.0);
        table.former.whose(waiting.into_iter().map(|it| it.1), common, Instant::now())
    }

    /// Somebody here is asked something about a call of `whose`, which came by `lane`. Gives the calls that it may be about,
    /// whose silence is ours until [`Pending::asked`].
    pub(crate) fn ask(&self, lane: StreamId, whose: &Whose) -> Vec<RequestId> {
        let now = Instant::now();
        let mut table = self.lock();
        let mut res = Vec::new();
        for (place, call) in &mut table.calls {
            let id = call.serial << PLACE_BITS | place as u64;
            let is_meant = match (lane, &call.stake, whose) {
                (StreamId::Request(own, _), ..) => own == id,
                (StreamId::Shared | StreamId::Notifications(_), Stake::Caller(it), Whose::Caller(caller)) => {
                    it.id == caller.id
                }
                (StreamId::Shared | StreamId::Notifications(_), Stake::Session, Whose::Session) => true,
                (StreamId::Shared | StreamId::Notifications(_), ..) => false,
            };
            if is_meant && matches!(call.state, State::Waiting(_)) {
                call.deadline.ask(now);
                res.push(id);
            }
        }
        res
    }

    /// That question is over. True when the timer is to look earlier than it would.
    pub(crate) fn asked(&self, calls: &[RequestId], now: Instant) -> bool {
        let mut table = self.lock();
        let mut next: Option<Instant> = None;
        for id in calls {
            if let Some(call) = table.get(*id) {
                call.deadline.asked(now);
                next = [next, call.deadline.next()].into_iter().flatten().min();
            }
        }
        table.arm(next)
    }

    /// Tells call `id` its outcome. False when nobody waits for it: it was answered before, given up, or never ours.
    pub(crate) fn tell(&self, id: RequestId, outcome: Outcome) -> bool {
        let waker = {
            let mut guard = self.lock();
            let table = &mut *guard;
            let call = table.calls.get_mut(place(id)).filter(|it| it.serial == id >> PLACE_BITS);
            let waiting = call.filter(|it| matches!(it.state, State::Waiting(_)));
            let Some(call) = waiting else {
                // It comes late, but it comes: the peer works on it no more.
                table.former.answered(id);
                return false;
            };
            if table.has_callers {
                table.former.told(id, &call.stake, &outcome);
            }
            call.tell(outcome).flatten()
        };
        // Outside the lock: waking may run the call's task at once on another thread.
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Progress of call `id` was heard, which is nothing where that is over, or never was.
    pub(crate) fn heard(&self, id: RequestId, progress: Progress, now: Instant) {
        let on_progress = {
            let mut table = self.lock();
            let Some(call) = table.get(id) else { return };
            if matches!(call.state, State::Told(_)) {
                return;
            }
            call.deadline.heard(now);
            call.progress.clone()
        };
        if let Some(on_progress) = on_progress {
            on_progress(progress);
        }
    }

    /// Tells every call whose deadline has passed. Returns them, and when to look again.
    pub(crate) fn expire(&self, now: Instant) -> (Vec<RequestId>, Option<Instant>) {
        let mut wakers = Vec::new();
        let mut expired = Vec::new();
        let mut guard = self.lock();
        let table = &mut *guard;
        let mut next: Option<Instant> = None;
        for (place, call) in &mut table.calls {
            if matches!(call.state, State::Told(_)) {
                continue;
            }
            if let Some(expiry) = call.deadline.expired(now) {
                let id = call.serial << PLACE_BITS | place as u64;
                expired.push(id);
                table.former.give_up(id, &call.stake, now);
                wakers.extend(call.tell(Outcome::Expired(expiry)).flatten());
                continue;
            }
            next = [next, call.deadline.next()].into_iter().flatten().min();
        }
        table.armed = next;
        drop(guard);
        for waker in wakers {
            waker.wake();
        }
        (expired, next)
    }

    /// Ends every call, and refuses those to come. The first end counts.
    pub(crate) fn close(&self, ended: Arc<Disconnect>) {
        let mut wakers = Vec::new();
        let mut table = self.lock();
        if table.closed.is_some() {
            return;
        }
        for (_, call) in &mut table.calls {
            wakers.extend(call.tell(Outcome::Closed(Arc::clone(&ended))).flatten());
        }
        table.closed = Some(ended);
        drop(table);
        for waker in wakers {
            waker.wake();
        }
    }

    /// Did the connection end, and how?
    pub(crate) fn closed(&self) -> Option<Arc<Disconnect>> {
        self.lock().closed.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Every change under the lock is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The calls that wait for their answers.
    fn waiting(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().map(|it| it.1).filter(|it| matches!(it.state, State::Waiting(_)))
    }

    /// The timer is to look at `next`. True when it would look later.
    fn arm(&mut self, next: Option<Instant>) -> bool {
        match (next, self.armed) {
            (Some(next), armed) if armed.is_none_or(|it| next < it) => {
                self.armed = Some(next);
                true
            }
            _ => false,
        }
    }

    fn get(&mut self, id: RequestId) -> Option<&mut Call> {
        self.calls.get_mut(place(id)).filter(|it| it.serial == id >> PLACE_BITS)
    }
}

impl Call {
    /// `None` when it was told before; else the waker of whoever waits.
    fn tell(&mut self, outcome: Outcome) -> Option<Option<Waker>> {
        match &mut self.state {
            State::Told(_) => None,
            State::Waiting(waker) => {
                let waker = waker.take();
                self.state = State::Told(outcome);
                Some(waker)
            }
        }
    }
}

fn place(id: RequestId) -> usize {
    (id & (MAX_CALLS as u64 - 1)) as usize
}

#[cfg(test)]
mod orders;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::end::DisconnectReason;
    use std::time::Duration;

    fn begin(pending: &Pending) -> RequestId {
        pending
            .begin(Deadline::new(Instant::now(), Instant::now(), None, None), None, Stake::Session)
            .ok()
            .unwrap()
            .id
    }

    fn poll(pending: &Pending, id: RequestId) -> String {
        match pending.poll(id, &mut Context::from_waker(Waker::noop())) {
            Poll::Pending => "waiting".to_owned(),
            Poll::Ready(Outcome::Answer { frame, .. }) => {
                format!("answer {}", str::from_utf8(&frame).unwrap())
            }
            Poll::Ready(Outcome::Closed(ended)) => format!("closed: {ended}"),
            Poll::Ready(other) => format!("{other:?}"),
        }
    }

    fn answer(text: &'static str) -> Outcome {
        Outcome::Answer { frame: Bytes::from_static(text.as_bytes()), is_error: false, payload: 0 }
    }

    #[test]
    fn an_answer_goes_to_its_own_call_and_only_once() {
        let pending = Pending::default();
        let (a, b) = (begin(&pending), begin(&pending));
        assert!(pending.tell(b, answer("b")));
        assert!(!pending.tell(b, answer("again")));
        assert_eq!((poll(&pending, a), poll(&pending, b)), ("waiting".into(), "answer b".into()));
        assert!(!pending.tell(b, answer("late")));
    }

    #[test]
    fn a_place_that_is_used_again_has_a_new_id() {
        let pending = Pending::default();
        let first = begin(&pending);
        assert!(pending.forget(first));
        let second = begin(&pending);
        assert_ne!(first, second);
        assert!(!pending.tell(first, answer("for the first")));
        assert_eq!(poll(&pending, second), "waiting");
    }

    #[test]
    fn closing_ends_those_inside_and_refuses_those_after() {
        let pending = Pending::default();
        let (told, waiting) = (begin(&pending), begin(&pending));
        pending.tell(told, answer("in time"));
        pending.close(Arc::new(Disconnect::new(DisconnectReason::PeerClosed)));
        pending.close(Arc::new(Disconnect::new(DisconnectReason::Stopped)));
        assert_eq!(poll(&pending, told), "answer in time");
        assert_eq!(poll(&pending, waiting), "closed: it closed the connection");
        assert!(
            pending
                .begin(Deadline::new(Instant::now(), Instant::now(), None, None), None, Stake::Session)
                .is_err()
        );
    }

    #[test]
    fn only_an_earlier_deadline_wakes_the_timer() {
        let pending = Pending::default();
        let now = Instant::now();
        let rearm = |seconds| {
            let deadline = Deadline::new(now, now, Some(Duration::from_secs(seconds)), None);
            pending.begin(deadline, None, Stake::Session).ok().unwrap().rearm
        };
        assert_eq!((rearm(60), rearm(60), rearm(30), rearm(45)), (true, false, true, false));
        let (expired, next) = pending.expire(now + Duration::from_secs(31));
        assert_eq!((expired.len(), next), (1, Some(now + Duration::from_secs(45))));
    }
}

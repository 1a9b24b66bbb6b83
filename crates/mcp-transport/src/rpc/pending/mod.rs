//! The table of calls in flight.
//!
//! One mutex, held briefly, guards the table and its closing. A call that is in the table when the connection ends
//! gets the outcome `Closed`; a later call is refused. So no call is left without an outcome. Nothing here blocks.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use slab::Slab;
use tokio::time::Instant;

use crate::error::disconnect::Disconnect;
use crate::rpc::deadline::Deadline;
use crate::rpc::outcome::RpcOutcome;
use crate::rpc::progress::{OnProgress, Progress};
use crate::rpc::request_owner::{OwnerHint, RecentCalls, RequestOwner, StreamOrdering};
use crate::transport::{MAX_CALLS, RequestId, StreamId};

/// A call in the table.
struct PendingCall {
    /// The call's number, which also is in its id: a reused slot does not take an old response.
    serial: u64,
    deadline: Deadline,
    progress: Option<OnProgress>,
    /// The owner of the call, which may receive server requests.
    owner_hint: OwnerHint,
    state: CallState,
}

/// The state of a call.
enum CallState {
    /// No outcome yet, with the waker of the waiting task.
    Waiting(Option<Waker>),
    /// The outcome, until the task takes it.
    Done(RpcOutcome),
}

#[derive(Default)]
struct CallTable {
    calls: Slab<PendingCall>,
    /// The serial of the last call.
    serial: u64,
    /// The next time the timer checks; not later than any deadline.
    next_check: Option<Instant>,
    /// How the connection ended; `None` while it is open.
    closed: Option<Arc<Disconnect>>,
    /// Whether any call ever had an [`OwnerHint::Caller`]. If not, every server request belongs to the session.
    has_own_callers: bool,
    recent: RecentCalls,
}

/// The table of calls in flight.
#[derive(Default)]
pub(crate) struct PendingCalls(Mutex<CallTable>);

/// The number of low bits of an id that are the call's slot in the table. The other bits are its serial. With 16
/// slot bits, the ids of the first 2^37 calls of a connection are below 2^53, so every JSON reader reads them
/// exactly.
const SLOT_BITS: u32 = MAX_CALLS.trailing_zeros();

/// A call that was added to the table.
pub(crate) struct StartedCall {
    pub(crate) id: RequestId,
    /// Whether the timer must be notified, because it would wake too late for this call's deadline.
    pub(crate) rearm: bool,
}

impl PendingCalls {
    /// Adds a call. Fails when the connection has ended. The caller holds one of [`MAX_CALLS`] permits.
    pub(crate) fn insert(
        &self,
        deadline: Deadline,
        progress: Option<OnProgress>,
        owner_hint: OwnerHint,
    ) -> Result<StartedCall, Arc<Disconnect>> {
        let mut table = self.0.lock();
        if let Some(ended) = &table.closed {
            return Err(Arc::clone(ended));
        }
        table.serial += 1;
        let serial = table.serial;
        table.has_own_callers |= matches!(owner_hint, OwnerHint::Caller(_));
        let slot = table.calls.insert(PendingCall {
            serial,
            deadline,
            progress,
            owner_hint,
            state: CallState::Waiting(None),
        });
        assert!(slot < MAX_CALLS, "the permits bound the calls in flight");
        let rearm = table.arm(deadline.next());
        Ok(StartedCall { id: serial << SLOT_BITS | slot as u64, rearm })
    }

    /// Returns the outcome of call `id` and removes the call, if the outcome is known.
    pub(crate) fn poll(&self, id: RequestId, context: &mut Context<'_>) -> Poll<RpcOutcome> {
        let mut table = self.0.lock();
        let call = table.get(id).expect("only the owner of a call removes it");
        match &mut call.state {
            CallState::Waiting(Some(waker)) if waker.will_wake(context.waker()) => return Poll::Pending,
            CallState::Waiting(waker) => {
                let replaced = waker.replace(context.waker().clone());
                // The waker is dropped outside the lock: its `Drop` is foreign code and may call into this table.
                drop(table);
                drop(replaced);
                return Poll::Pending;
            }
            CallState::Done(_) => {}
        }
        let call = table.calls.remove(slot_index(id));
        drop(table);
        match call.state {
            CallState::Done(outcome) => Poll::Ready(outcome),
            CallState::Waiting(_) => unreachable!("the state was checked under the same lock"),
        }
    }

    /// Forgets the task that waits for call `id`, because that task is about to poll the call.
    pub(crate) fn clear_waker(&self, id: RequestId) {
        let mut table = self.0.lock();
        let waker = match table.get(id).map(|call| &mut call.state) {
            Some(CallState::Waiting(waker)) => waker.take(),
            Some(CallState::Done(_)) | None => None,
        };
        // The waker is dropped outside the lock: its `Drop` is foreign code and may call into this table.
        drop(table);
        drop(waker);
    }

    /// Removes call `id`, whose future was dropped. Returns true when the server may still be working on it.
    pub(crate) fn remove(&self, id: RequestId) -> bool {
        let mut table = self.0.lock();
        let call = table.get(id).is_some().then(|| table.calls.remove(slot_index(id)));
        let is_waiting = call.as_ref().is_some_and(|it| matches!(it.state, CallState::Waiting(_)));
        if let Some(call) = call.as_ref().filter(|_| is_waiting) {
            table.recent.record_cancelled(id, &call.owner_hint, Instant::now());
        }
        // Foreign code is dropped outside the lock.
        drop(table);
        drop(call);
        is_waiting
    }

    /// Returns the owner of a server request or notification that arrived on `stream`.
    pub(crate) fn owner(&self, stream: StreamId) -> RequestOwner {
        let mut table = self.0.lock();
        if !table.has_own_callers {
            return RequestOwner::Session;
        }
        let ordering = match stream {
            StreamId::Shared => StreamOrdering::Ordered,
            StreamId::Notifications(_) => StreamOrdering::Unordered,
            StreamId::Request(id, _) => {
                return match table.get(id).map(|it| &it.owner_hint) {
                    Some(OwnerHint::Caller(caller)) => RequestOwner::Caller(Arc::clone(caller)),
                    Some(OwnerHint::Session | OwnerHint::None) => RequestOwner::Session,
                    None => RequestOwner::Finished,
                };
            }
        };
        let mut waiting: Vec<(u64, &OwnerHint)> =
            table.in_flight().map(|it| (it.serial, &it.owner_hint)).collect();
        waiting.sort_unstable_by_key(|it| it.0);
        table.recent.owner(waiting.into_iter().map(|it| it.1), ordering, Instant::now())
    }

    /// Pauses the deadlines of the calls that may wait for the response to a server request, which arrived on
    /// `stream` and belongs to `owner`. Returns these calls, for [`PendingCalls::resume_deadlines`].
    pub(crate) fn pause_deadlines(&self, stream: StreamId, owner: &RequestOwner) -> Vec<RequestId> {
        let now = Instant::now();
        let mut table = self.0.lock();
        let mut res = Vec::new();
        for (slot, call) in &mut table.calls {
            let id = call.serial << SLOT_BITS | slot as u64;
            let is_affected = match (stream, &call.owner_hint, owner) {
                (StreamId::Request(own, _), ..) => own == id,
                (_, OwnerHint::Caller(hint), RequestOwner::Caller(caller)) => hint.id == caller.id,
                (_, hint, owner) => matches!((hint, owner), (OwnerHint::Session, RequestOwner::Session)),
            };
            if is_affected && matches!(call.state, CallState::Waiting(_)) {
                call.deadline.pause(now);
                res.push(id);
            }
        }
        res
    }

    /// Resumes the deadlines of these calls. Returns true when the timer must be notified, because it would check
    /// too late.
    pub(crate) fn resume_deadlines(&self, calls: &[RequestId], now: Instant) -> bool {
        let mut table = self.0.lock();
        let mut next: Option<Instant> = None;
        for id in calls {
            if let Some(call) = table.get(*id) {
                call.deadline.resume(now);
                next = [next, call.deadline.next()].into_iter().flatten().min();
            }
        }
        table.arm(next)
    }

    /// Sets the outcome of call `id`. Returns false when the call is unknown or already has one.
    pub(crate) fn complete(&self, id: RequestId, outcome: RpcOutcome) -> bool {
        let waker = {
            let mut guard = self.0.lock();
            let table = &mut *guard;
            let call = table.calls.get_mut(slot_index(id)).filter(|it| it.serial == id >> SLOT_BITS);
            let waiting = call.filter(|it| matches!(it.state, CallState::Waiting(_)));
            let Some(call) = waiting else {
                // A late response to a cancelled call: the server no longer works on it and sends no more requests
                // for it.
                table.recent.record_late_response(id);
                return false;
            };
            if table.has_own_callers {
                table.recent.record_outcome(id, &call.owner_hint, &outcome);
            }
            call.complete(outcome).flatten()
        };
        // Outside the lock: waking may run the call's task at once on another thread.
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Whether call `id` has no outcome yet.
    pub(crate) fn awaits(&self, id: RequestId) -> bool {
        self.0.lock().get(id).is_some_and(|call| matches!(call.state, CallState::Waiting(_)))
    }

    /// Resets the idle deadline of call `id` and passes the progress to its handler. Ignored when the call has
    /// ended or is unknown.
    pub(crate) fn handle_progress(&self, id: RequestId, progress: Progress, now: Instant) {
        let on_progress = {
            let mut table = self.0.lock();
            let Some(call) = table.get(id) else { return };
            if matches!(call.state, CallState::Done(_)) {
                return;
            }
            call.deadline.reset_idle(now);
            call.progress.clone()
        };
        if let Some(on_progress) = on_progress {
            on_progress(progress);
        }
    }

    /// Ends every call whose deadline has passed. Returns these calls and the time of the next check.
    pub(crate) fn expire(&self, now: Instant) -> (Vec<RequestId>, Option<Instant>) {
        let mut wakers = Vec::new();
        let mut expired = Vec::new();
        let mut guard = self.0.lock();
        let table = &mut *guard;
        let mut next: Option<Instant> = None;
        for (slot, call) in &mut table.calls {
            if matches!(call.state, CallState::Done(_)) {
                continue;
            }
            if let Some(expiry) = call.deadline.expired(now) {
                let id = call.serial << SLOT_BITS | slot as u64;
                expired.push(id);
                table.recent.record_cancelled(id, &call.owner_hint, now);
                wakers.extend(call.complete(RpcOutcome::Expired(expiry)).flatten());
                continue;
            }
            next = [next, call.deadline.next()].into_iter().flatten().min();
        }
        table.next_check = next;
        drop(guard);
        for waker in wakers {
            waker.wake();
        }
        (expired, next)
    }

    /// Ends every call and refuses later ones. Only the first disconnect counts.
    pub(crate) fn close(&self, ended: Arc<Disconnect>) {
        let mut wakers = Vec::new();
        let mut table = self.0.lock();
        if table.closed.is_some() {
            return;
        }
        for (_, call) in &mut table.calls {
            wakers.extend(call.complete(RpcOutcome::Closed(Arc::clone(&ended))).flatten());
        }
        table.closed = Some(ended);
        drop(table);
        for waker in wakers {
            waker.wake();
        }
    }

    /// How the connection ended, if it has ended.
    pub(crate) fn disconnect(&self) -> Option<Arc<Disconnect>> {
        self.0.lock().closed.clone()
    }
}

impl CallTable {
    /// The calls that have no outcome yet.
    fn in_flight(&self) -> impl Iterator<Item = &PendingCall> {
        self.calls.iter().map(|it| it.1).filter(|it| matches!(it.state, CallState::Waiting(_)))
    }

    /// Schedules a check at `next`. Returns true when the timer must be notified, because it would check later.
    fn arm(&mut self, next: Option<Instant>) -> bool {
        match (next, self.next_check) {
            (Some(next), next_check) if next_check.is_none_or(|it| next < it) => {
                self.next_check = Some(next);
                true
            }
            _ => false,
        }
    }

    /// The call with this id. An id whose slot was reused is unknown.
    fn get(&mut self, id: RequestId) -> Option<&mut PendingCall> {
        self.calls.get_mut(slot_index(id)).filter(|it| it.serial == id >> SLOT_BITS)
    }
}

impl PendingCall {
    /// Sets the outcome. Returns `None` when the call already has one. The inner value is the waker of the waiting
    /// task, if it was polled.
    fn complete(&mut self, outcome: RpcOutcome) -> Option<Option<Waker>> {
        match &mut self.state {
            CallState::Done(_) => None,
            CallState::Waiting(waker) => {
                let waker = waker.take();
                self.state = CallState::Done(outcome);
                Some(waker)
            }
        }
    }
}

fn slot_index(id: RequestId) -> usize {
    (id & (MAX_CALLS as u64 - 1)) as usize
}

#[cfg(test)]
mod tests;

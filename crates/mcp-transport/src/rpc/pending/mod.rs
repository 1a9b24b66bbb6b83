//! The table of calls in flight.
//!
//! One mutex guards both the table and the end of the connection. A call that is in the table when the connection ends
//! gets the outcome `Closed`; a later call is refused. So no call is left without an outcome. Nothing here blocks.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use slab::Slab;
use tokio::time::Instant;

use crate::error::disconnect::Disconnect;
use crate::rpc::deadline::CallDeadlines;
use crate::rpc::outcome::RpcOutcome;
use crate::rpc::progress::{OnProgress, Progress};
use crate::rpc::request_owner::{CallOwner, MessageOwner, RecentCalls, StreamOrdering};
use crate::transport::{MAX_CALLS, RequestId, StreamId};

/// A call in the table.
struct PendingCall {
    /// The number of the call, counted from 1. It is a part of the call's id, so that a response to an earlier call
    /// does not match a later call in the same slot.
    serial: u64,
    deadlines: CallDeadlines,
    on_progress: Option<OnProgress>,
    /// The owner of the server requests that belong to the call.
    owner: CallOwner,
    state: CallState,
}

/// The state of a call.
enum CallState {
    /// No outcome yet. Contains the waker of the waiting task, if it has polled the call.
    Waiting(Option<Waker>),
    /// The outcome, until the task reads it.
    Done(RpcOutcome),
}

/// The calls in flight, and how the connection ended.
#[derive(Default)]
struct CallTable {
    calls: Slab<PendingCall>,
    /// The serial of the last call.
    serial: u64,
    /// The time at which the timer checks next; not later than any deadline.
    next_check: Option<Instant>,
    /// How the connection ended; `None` while it is open.
    disconnect: Option<Arc<Disconnect>>,
    /// Whether any call ever had a [`CallOwner::Caller`]. If not, every server request belongs to the session.
    has_callers: bool,
    caller_requests: CallerRequests,
    recent_calls: RecentCalls,
}

/// Counts the requests that were sent for callers, by their end. Those of the session itself are not counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallerRequests {
    /// The number of responses.
    pub(crate) answered: u64,
    /// The number of requests that waited for a response when the connection ended.
    pub(crate) lost: u64,
}

/// The table of calls in flight.
#[derive(Default)]
pub(crate) struct PendingCalls(Mutex<CallTable>);

/// The number of low bits of an id that are the call's slot in the table. The other bits are its serial. With 16
/// slot bits, the ids of the first 2^37 calls of a connection are below 2^53, so every JSON reader reads them
/// exactly.
const SLOT_BITS: u32 = MAX_CALLS.trailing_zeros();

/// The result of adding a call to the table.
pub(crate) struct InsertedCall {
    pub(crate) id: RequestId,
    /// Whether the timer must be woken, because it would check too late for this call.
    pub(crate) must_wake_timer: bool,
}

impl PendingCalls {
    /// Adds a call. Fails when the connection has ended. The caller holds one of [`MAX_CALLS`] permits.
    pub(crate) fn insert(
        &self,
        deadlines: CallDeadlines,
        on_progress: Option<OnProgress>,
        owner: CallOwner,
    ) -> Result<InsertedCall, Arc<Disconnect>> {
        let mut table = self.0.lock();
        if let Some(disconnect) = &table.disconnect {
            return Err(Arc::clone(disconnect));
        }
        table.serial += 1;
        let serial = table.serial;
        table.has_callers |= matches!(owner, CallOwner::Caller(_));
        let slot = table.calls.insert(PendingCall {
            serial,
            deadlines,
            on_progress,
            owner,
            state: CallState::Waiting(None),
        });
        assert!(slot < MAX_CALLS, "the permits bound the calls in flight");
        let must_wake_timer = table.schedule_check(deadlines.next());
        Ok(InsertedCall { id: serial << SLOT_BITS | slot as u64, must_wake_timer })
    }

    /// Returns the outcome of call `id` and removes the call, if it has an outcome.
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

    /// Removes the waker of call `id`, because the task that waits for the call is running and will poll it.
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

    /// Removes call `id` because its future was dropped. Returns true if the call had no outcome, so that the server
    /// may still work on it.
    pub(crate) fn remove(&self, id: RequestId) -> bool {
        let mut table = self.0.lock();
        if table.get(id).is_none() {
            return false;
        }
        let call = table.calls.remove(slot_index(id));
        let is_waiting = matches!(call.state, CallState::Waiting(_));
        if is_waiting {
            table.recent_calls.record_cancelled(id, &call.owner, Instant::now());
        }
        // The call is dropped outside the lock: it contains foreign code, which may call into this table.
        drop(table);
        drop(call);
        is_waiting
    }

    /// Returns the owner of a server request or notification that arrived on `stream`.
    pub(crate) fn owner(&self, stream: StreamId) -> MessageOwner {
        let mut table = self.0.lock();
        if !table.has_callers {
            return MessageOwner::Session;
        }
        let ordering = match stream {
            StreamId::Shared => StreamOrdering::Ordered,
            StreamId::Notifications(_) => StreamOrdering::Unordered,
            StreamId::Request(id, _) => {
                return match table.get(id).map(|it| &it.owner) {
                    Some(CallOwner::Caller(caller)) => MessageOwner::Caller(Arc::clone(caller)),
                    Some(CallOwner::Session | CallOwner::None) => MessageOwner::Session,
                    None => MessageOwner::Finished,
                };
            }
        };
        let mut in_flight: Vec<&PendingCall> = table.in_flight().collect();
        in_flight.sort_unstable_by_key(|call| call.serial);
        table.recent_calls.owner(in_flight.into_iter().map(|call| &call.owner), ordering, Instant::now())
    }

    /// Pauses the deadlines of the calls that may wait for the response to a server request, which arrived on
    /// `stream` and belongs to `owner`. Returns these calls, for [`PendingCalls::resume_deadlines`].
    pub(crate) fn pause_deadlines(&self, stream: StreamId, owner: &MessageOwner) -> Vec<RequestId> {
        let now = Instant::now();
        let mut table = self.0.lock();
        let mut paused = Vec::new();
        for (slot, call) in &mut table.calls {
            let id = call.serial << SLOT_BITS | slot as u64;
            let is_affected = match (stream, &call.owner, owner) {
                (StreamId::Request(request, _), ..) => request == id,
                (_, CallOwner::Caller(caller), MessageOwner::Caller(owner)) => caller.id == owner.id,
                (_, CallOwner::Session, MessageOwner::Session) => true,
                _ => false,
            };
            if is_affected && matches!(call.state, CallState::Waiting(_)) {
                call.deadlines.pause(now);
                paused.push(id);
            }
        }
        paused
    }

    /// Resumes the deadlines of these calls. Returns true when the timer must be woken, because it would check too
    /// late.
    pub(crate) fn resume_deadlines(&self, calls: &[RequestId], now: Instant) -> bool {
        let mut table = self.0.lock();
        let mut next: Option<Instant> = None;
        for id in calls {
            if let Some(call) = table.get(*id) {
                call.deadlines.resume(now);
                next = [next, call.deadlines.next()].into_iter().flatten().min();
            }
        }
        table.schedule_check(next)
    }

    /// Sets the outcome of call `id`. Returns false when the call is unknown or already has one.
    pub(crate) fn complete(&self, id: RequestId, outcome: RpcOutcome) -> bool {
        let waker = {
            let mut guard = self.0.lock();
            let table = &mut *guard;
            let call = table.calls.get_mut(slot_index(id)).filter(|it| it.serial == id >> SLOT_BITS);
            let waiting = call.filter(|it| matches!(it.state, CallState::Waiting(_)));
            let Some(call) = waiting else {
                // If this is a late response to a cancelled call, the server sends no more requests for it.
                table.recent_calls.record_late_response(id);
                return false;
            };
            if table.has_callers {
                table.recent_calls.record_outcome(id, &call.owner, &outcome);
            }
            if call.is_for_caller() && matches!(outcome, RpcOutcome::Response { .. }) {
                table.caller_requests.answered += 1;
            }
            call.complete(outcome)
        };
        // The task is woken outside the lock, because it may run on another thread at once.
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Whether a call had this id, now or earlier.
    pub(crate) fn was_issued(&self, id: RequestId) -> bool {
        (1..=self.0.lock().serial).contains(&(id >> SLOT_BITS))
    }

    /// Whether call `id` has no outcome yet.
    pub(crate) fn is_pending(&self, id: RequestId) -> bool {
        self.0.lock().get(id).is_some_and(|call| matches!(call.state, CallState::Waiting(_)))
    }

    /// Resets the idle deadline of call `id` and calls its progress callback. Ignored when the call has an outcome or
    /// is unknown. Returns whether the caller asked for the progress.
    pub(crate) fn handle_progress(&self, id: RequestId, progress: Progress, now: Instant) -> bool {
        let on_progress = {
            let mut table = self.0.lock();
            let Some(call) = table.get(id).filter(|call| !matches!(call.state, CallState::Done(_))) else {
                return false;
            };
            call.deadlines.reset_idle(now);
            call.on_progress.clone()
        };
        let is_requested = on_progress.is_some();
        if let Some(on_progress) = on_progress {
            on_progress(progress);
        }
        is_requested
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
            if let Some(expiry) = call.deadlines.expiry(now) {
                let id = call.serial << SLOT_BITS | slot as u64;
                expired.push(id);
                table.recent_calls.record_cancelled(id, &call.owner, now);
                wakers.extend(call.complete(RpcOutcome::Expired(expiry)));
                continue;
            }
            next = [next, call.deadlines.next()].into_iter().flatten().min();
        }
        table.next_check = next;
        drop(guard);
        for waker in wakers {
            waker.wake();
        }
        (expired, next)
    }

    /// Ends every call and refuses later ones. Only the first disconnect counts.
    pub(crate) fn close(&self, disconnect: Arc<Disconnect>) {
        let mut wakers = Vec::new();
        let mut table = self.0.lock();
        if table.disconnect.is_some() {
            return;
        }
        let lost = table.in_flight().filter(|call| call.is_for_caller()).count();
        table.caller_requests.lost = lost as u64;
        for (_, call) in &mut table.calls {
            wakers.extend(call.complete(RpcOutcome::Closed(Arc::clone(&disconnect))));
        }
        table.disconnect = Some(disconnect);
        drop(table);
        for waker in wakers {
            waker.wake();
        }
    }

    /// How the connection ended, if it has ended.
    pub(crate) fn disconnect(&self) -> Option<Arc<Disconnect>> {
        self.0.lock().disconnect.clone()
    }

    /// How the requests for callers ended.
    pub(crate) fn caller_requests(&self) -> CallerRequests {
        self.0.lock().caller_requests
    }
}

impl CallTable {
    /// The calls that have no outcome yet.
    fn in_flight(&self) -> impl Iterator<Item = &PendingCall> {
        self.calls.iter().map(|it| it.1).filter(|it| matches!(it.state, CallState::Waiting(_)))
    }

    /// Schedules a check at `at`. Returns true when the timer must be woken, because it would check later.
    fn schedule_check(&mut self, at: Option<Instant>) -> bool {
        let is_earlier = at.is_some_and(|at| self.next_check.is_none_or(|next_check| at < next_check));
        if is_earlier {
            self.next_check = at;
        }
        is_earlier
    }

    /// The call with this id. The id of a removed call finds nothing, even if its slot is used again.
    fn get(&mut self, id: RequestId) -> Option<&mut PendingCall> {
        self.calls.get_mut(slot_index(id)).filter(|it| it.serial == id >> SLOT_BITS)
    }
}

impl PendingCall {
    /// Whether it is not a request of the session itself.
    fn is_for_caller(&self) -> bool {
        match self.owner {
            CallOwner::None => false,
            CallOwner::Session | CallOwner::Caller(_) => true,
        }
    }

    /// Sets the outcome, unless the call already has one. Returns the waker of the waiting task, which must be woken.
    fn complete(&mut self, outcome: RpcOutcome) -> Option<Waker> {
        let CallState::Waiting(waker) = &mut self.state else { return None };
        let waker = waker.take();
        self.state = CallState::Done(outcome);
        waker
    }
}

/// The slot of the call with this id.
fn slot_index(id: RequestId) -> usize {
    (id & (MAX_CALLS as u64 - 1)) as usize
}

#[cfg(test)]
mod tests;

//! What answers the requests of a connection's sessions, one after the other, in memory that is set aside once.
//!
//! The future of a call is large; made anew for each request it would be moved to new memory each time. So one goes on for
//! as long as its connection: it takes a job out of a slot, and lays the answer down there.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::answering::Answer;
use super::modern::Place;
use crate::gateway::Inner;
use crate::methods::Asked;
use crate::protocol::frame::Request;
use crate::protocol::response;
use crate::session::caller::Caller;
use crate::session::running_requests::Guard;

/// A request of a session that has its places.
pub(super) struct Job {
    pub(super) gateway: Arc<Inner>,
    pub(super) caller: Caller,
    pub(super) request: Request,
    pub(super) guard: Guard,
    pub(super) place: OwnedSemaphorePermit,
    pub(super) own: Option<Place>,
}

/// A future that resolves with the answer to its job, and takes another job then; with `None` when the client took the
/// request back. Dropped, it does no more.
pub(super) struct Worker {
    slot: Arc<Slot>,
    /// Never ends.
    work: Pin<Box<dyn Future<Output = ()> + Send>>,
}

#[derive(Default)]
struct Slot {
    job: Mutex<Option<Job>>,
    answer: Mutex<Option<Option<Answer>>>,
}

impl Worker {
    /// One that begins with this.
    pub(super) fn new(job: Job) -> Worker {
        let slot = Arc::new(Slot { job: Mutex::new(Some(job)), ..Slot::default() });
        Worker { work: Box::pin(work(Arc::clone(&slot))), slot }
    }

    /// Gives it another job. The one before must be done.
    pub(super) fn take(&mut self, job: Job) {
        *locked(&self.slot.job) = Some(job);
    }
}

impl Future for Worker {
    type Output = Option<Answer>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let _never = self.work.as_mut().poll(cx);
        locked(&self.slot.answer).take().map_or(Poll::Pending, Poll::Ready)
    }
}

fn locked<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn work(slot: Arc<Slot>) {
    loop {
        // Whoever lays one down polls this next.
        let job = poll_fn(|_| locked(&slot.job).take().map_or(Poll::Pending, Poll::Ready)).await;
        let Job { gateway, caller, request, mut guard, place, own } = job;
        let answered = tokio::select! {
            biased;
            () = guard.taken_back() => None,
            answered = gateway.answered(Asked::alone(&gateway, &caller, &request)) => Some(answered),
        };
        if let Some(session) = &caller.session {
            session.touch(Instant::now());
        }
        drop((guard, place, own));
        let body = answered.map(|answered| match answered {
            Ok(result) => response::result(&request.id, &result),
            Err(error) => response::error(Some(&request.id), &error),
        });
        let answer = body.map(|it| Answer { status: StatusCode::OK, body: gateway.budget.counted(it) });
        *locked(&slot.answer) = Some(answer);
    }
}

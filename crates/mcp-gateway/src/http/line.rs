//! One connection: what its requests share, and by when its client must have said what he is to say.
//!
//! It has one timer, which is set anew only for what ends sooner than what it is set for; so that of the deadlines of a
//! busy connection hardly one costs more than a look. All that waits for it is polled by the connection's own task.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::server::Door;
use super::worker::{Job, Worker};

/// A connection.
pub(super) struct Line {
    pub(super) door: Arc<Door>,
    pub(super) alarm: Alarm,
    /// Who has nothing to do.
    spare: Mutex<Option<Worker>>,
}

impl Line {
    /// One to this door.
    pub(super) fn new(door: Arc<Door>) -> Line {
        Line { door, alarm: Alarm::default(), spare: Mutex::default() }
    }

    /// Who does this.
    pub(super) fn worker(&self, job: Job) -> Worker {
        match self.spare.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(mut worker) => {
                worker.take(job);
                worker
            }
            None => Worker::new(job),
        }
    }

    /// Keeps one whose job is done for the next.
    pub(super) fn keep(&self, worker: Worker) {
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
    }
}

/// The timer of a connection.
#[derive(Default)]
pub(super) struct Alarm(Mutex<Option<Pin<Box<Sleep>>>>);

impl Alarm {
    /// Resolves at this moment. Cancel-safe.
    pub(super) async fn at(&self, end: Instant) {
        poll_fn(|cx| self.poll(cx, end)).await
    }

    /// What `work` brings, or `None` when it does not bring it within `limit`, which begins when it has to be waited for.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let mut end = None;
        poll_fn(|cx| {
            if let Poll::Ready(it) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(it));
            }
            match *end.get_or_insert_with(|| Instant::now().checked_add(limit)) {
                Some(end) => self.poll(cx, end).map(|()| None),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn poll(&self, cx: &mut Context<'_>, end: Instant) -> Poll<()> {
        let mut timer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if timer.deadline() > end {
            timer.as_mut().reset(end);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            // It may have been set for something that is over.
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            timer.as_mut().reset(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn one_timer_is_enough_for_deadlines_in_any_order() {
        let (alarm, begun) = (Alarm::default(), Instant::now());
        for end in [30, 10, 10, 40, 41] {
            alarm.at(begun + seconds(end)).await;
            assert_eq!(begun.elapsed().as_secs(), end.max(30));
        }
        assert_eq!(begun.elapsed().as_secs(), 41);
        // One that is over rings for nobody else.
        assert_eq!(alarm.within(seconds(1), pin!(async { 7 })).await, Some(7));
        let slow = pin!(tokio::time::sleep(seconds(5)));
        assert_eq!((alarm.within(seconds(2), slow).await, begun.elapsed().as_secs()), (None, 43));
        let quick = pin!(tokio::time::sleep(seconds(5)));
        assert_eq!((alarm.within(seconds(9), quick).await, begun.elapsed().as_secs()), (Some(()), 48));
        assert_eq!(alarm.within(Duration::MAX, pin!(tokio::time::sleep(seconds(1)))).await, Some(()));
        alarm.at(begun + seconds(60)).await;
        assert_eq!(begun.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn two_who_wait_have_their_own_ends() {
        let (alarm, begun) = (Alarm::default(), Instant::now());
        let ended = |at: u64| {
            let alarm = &alarm;
            async move {
                alarm.at(begun + seconds(at)).await;
                begun.elapsed().as_secs()
            }
        };
        assert_eq!(tokio::join!(ended(9), ended(3), ended(6)), (9, 3, 6));
    }
}

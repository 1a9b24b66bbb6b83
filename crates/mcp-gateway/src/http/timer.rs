//! One timer for all deadlines of a connection.
//!
//! All futures that wait for it are polled by the connection's task. The timer is reset only for a deadline that is
//! earlier than the one it is set for, so most deadlines of a busy connection never touch Tokio's timer wheel.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that several futures of one task share. Created at first use.
#[derive(Debug, Default)]
pub(super) struct ConnectionTimer(Mutex<Option<Pin<Box<Sleep>>>>);

impl ConnectionTimer {
    /// Resolves at `deadline`. Cancel-safe.
    pub(super) async fn sleep_until(&self, deadline: Instant) {
        poll_fn(|cx| self.poll(cx, deadline)).await
    }

    /// The output of `work`, or `None` if it takes longer than `limit`. The time starts when `work` is first pending.
    pub(super) async fn timeout<T>(
        &self,
        limit: Duration,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let mut deadline = None;
        poll_fn(|cx| {
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            match *deadline.get_or_insert_with(|| Instant::now().checked_add(limit)) {
                Some(deadline) => self.poll(cx, deadline).map(|()| None),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Is ready at `deadline`, and wakes the task then.
    pub(super) fn poll(&self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let mut timer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            // The timer may have been set for an earlier deadline that nothing waits for any more.
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
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
    async fn deadlines_in_any_order_share_one_timer() {
        let (timer, start) = (ConnectionTimer::default(), Instant::now());
        for end in [30, 10, 10, 40, 41] {
            timer.sleep_until(start + seconds(end)).await;
            assert_eq!(start.elapsed().as_secs(), end.max(30));
        }
        assert_eq!(start.elapsed().as_secs(), 41);
        assert_eq!(timer.timeout(seconds(1), pin!(async { 7 })).await, Some(7));
        let slow = pin!(tokio::time::sleep(seconds(5)));
        assert_eq!((timer.timeout(seconds(2), slow).await, start.elapsed().as_secs()), (None, 43));
        let quick = pin!(tokio::time::sleep(seconds(5)));
        assert_eq!((timer.timeout(seconds(9), quick).await, start.elapsed().as_secs()), (Some(()), 48));
        assert_eq!(timer.timeout(Duration::MAX, pin!(tokio::time::sleep(seconds(1)))).await, Some(()));
        timer.sleep_until(start + seconds(60)).await;
        assert_eq!(start.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_deadlines_each_end_in_time() {
        let (timer, start) = (ConnectionTimer::default(), Instant::now());
        let ended = |at: u64| {
            let timer = &timer;
            async move {
                timer.sleep_until(start + seconds(at)).await;
                start.elapsed().as_secs()
            }
        };
        assert_eq!(tokio::join!(ended(9), ended(3), ended(6)), (9, 3, 6));
    }
}

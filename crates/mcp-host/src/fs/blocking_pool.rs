//! Work on files that is not waited for longer than one can be expected to wait: a disk on another machine may never
//! answer, and a pipe that has taken a file's place never ends.
//!
//! Such work cannot be ended. It stays on a thread of its own, on which nobody waits, neither whoever began it nor the
//! runtime's end; and when as many as are bearable hang, no other is begun until one of them has come to its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};

/// How work ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End<T> {
    /// It brought this.
    Done(T),
    /// It panicked, or could not be begun.
    Failed,
    /// It takes too long, or too much hangs already.
    GivenUp,
}

/// Where work is done.
#[derive(Debug)]
pub(crate) struct Bench {
    patience: Duration,
    /// How many pieces of work may hang.
    most: usize,
    /// Everything that is at work holds this.
    at_work: Arc<()>,
}

/// Work under way. Dropping it gives the work up.
pub(crate) struct Work<T> {
    waiting: JoinHandle<End<T>>,
    _end: GiveUp<T>,
}

/// Ends the wait when it is dropped.
struct GiveUp<T>(mpsc::Sender<End<T>>);

impl<T> Drop for GiveUp<T> {
    fn drop(&mut self) {
        // Nobody waits any more: all the better.
        let _ = self.0.send(End::GivenUp);
    }
}

impl Bench {
    /// Where work may take so long, and so many pieces of it may hang.
    pub(crate) fn new(patience: Duration, most: usize) -> Bench {
        Bench { patience, most, at_work: Arc::new(()) }
    }

    /// Begins some work, which may block.
    pub(crate) fn begin<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Work<T> {
        let (tell, told) = mpsc::channel();
        let end = GiveUp(tell.clone());
        if Arc::strong_count(&self.at_work) > self.most {
            // Nobody has the other end before this returns.
            let _ = tell.send(End::GivenUp);
        } else {
            let (mark, also) = (Arc::clone(&self.at_work), tell.clone());
            let work = move || {
                let end = catch_unwind(AssertUnwindSafe(work)).map_or(End::Failed, End::Done);
                drop(mark);
                // Whoever began it may have given it up.
                let _ = tell.send(end);
            };
            if let Err(error) = std::thread::Builder::new().name("mcp-host-files".to_owned()).spawn(work) {
                tracing::error!(%error, "no thread can be had to work on files");
                let _ = also.send(End::Failed);
            }
        }
        let patience = self.patience;
        let waiting =
            tokio::task::spawn_blocking(move || told.recv_timeout(patience).unwrap_or(End::GivenUp));
        Work { waiting, _end: end }
    }
}

impl<T> Work<T> {
    /// Its end. Cancel-safe.
    pub(crate) async fn end(&mut self) -> Result<End<T>, JoinError> {
        (&mut self.waiting).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_hangs_is_given_up_and_too_much_of_it_is_not_begun() {
        let patient = Bench::new(Duration::from_secs(600), 4);
        assert_eq!(patient.begin(|| 1).end().await.unwrap(), End::Done(1));
        let fails = || -> i32 { panic!("this is the defect") };
        assert_eq!(patient.begin(fails).end().await.unwrap(), End::Failed);

        let bench = Bench::new(Duration::from_millis(1), 4);
        let (release, hangs) = mpsc::channel::<()>();
        let hangs = Arc::new(std::sync::Mutex::new(hangs));
        let hang = || {
            let hangs = Arc::clone(&hangs);
            move || hangs.lock().unwrap().recv().is_ok()
        };
        for _ in 0..4 {
            assert_eq!(bench.begin(hang()).end().await.unwrap(), End::GivenUp);
        }
        let begun = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let also = Arc::clone(&begun);
        let mut one_more = bench.begin(move || also.store(true, std::sync::atomic::Ordering::SeqCst));
        assert_eq!(one_more.end().await.unwrap(), End::GivenUp);
        drop(release);
        while Arc::strong_count(&bench.at_work) > 1 {
            tokio::task::yield_now().await;
        }
        assert!(!begun.load(std::sync::atomic::Ordering::SeqCst));
        let bench = Bench { patience: Duration::from_secs(600), ..bench };
        assert_eq!(bench.begin(|| 2).end().await.unwrap(), End::Done(2));
    }

    #[test]
    fn the_runtimes_end_waits_for_nothing_that_hangs() {
        let (release, hangs) = mpsc::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let bench = Bench::new(Duration::from_secs(600), 4);
        drop(runtime.block_on(async { bench.begin(move || hangs.recv().is_ok()) }));
        drop(runtime);
        // Only now could it come to its end.
        drop(release);
    }
}

//! The gate of an instance: who is inside, and whether anybody may still come in.
//!
//! Both are one atomic number, so that no call can slip in between "closed" and "nobody is inside".

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Set once, when nobody may come in any more. The bits below it count who is inside.
const RETIRED: u64 = 1 << 63;

/// Counts calls, and refuses new ones once retired.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: AtomicU64,
    emptied: Notify,
}

/// Somebody inside; leaves when dropped.
#[derive(Debug)]
pub(crate) struct Guard<'a>(&'a Gate);

impl Gate {
    /// Comes in; `None` when the gate is retired.
    pub(crate) fn begin(&self) -> Option<Guard<'_>> {
        let enter = |state| (state & RETIRED == 0).then_some(state + 1);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, enter).ok()?;
        Some(Guard(self))
    }

    /// Is anybody inside?
    pub(crate) fn is_busy(&self) -> bool {
        self.state.load(Ordering::Acquire) & !RETIRED != 0
    }

    /// Lets nobody in any more. Those inside stay until they leave.
    pub(crate) fn retire(&self) {
        self.state.fetch_or(RETIRED, Ordering::AcqRel);
    }

    /// Resolves when nobody is inside a retired gate. Cancel-safe.
    pub(crate) async fn emptied(&self) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            // Enabled before looking, so that a leave between the look and the wait is not missed.
            emptied.as_mut().enable();
            if self.state.load(Ordering::Acquire) == RETIRED {
                return;
            }
            emptied.await;
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let before = self.0.state.fetch_sub(1, Ordering::AcqRel);
        if before == RETIRED | 1 {
            self.0.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Takes steps and tells what each brought: `in` (comes in, or is refused), `out` (the first inside leaves),
    /// `retire`, and `wait` (is everybody out?).
    #[track_caller]
    fn check(steps: &str, want: &str) {
        let gate = Gate::default();
        let mut inside = Vec::new();
        let mut wait = Box::pin(gate.emptied());
        let mut context = Context::from_waker(Waker::noop());
        let mut seen = Vec::new();
        for step in steps.split_whitespace() {
            match step {
                "in" => match gate.begin() {
                    Some(guard) => inside.push(guard),
                    None => seen.push("refused"),
                },
                "out" => drop(inside.remove(0)),
                "retire" => gate.retire(),
                "wait" => seen.push(match wait.as_mut().poll(&mut context) {
                    Poll::Ready(()) => "empty",
                    Poll::Pending => "waits",
                }),
                other => panic!("no step: {other}"),
            }
        }
        assert_eq!(seen.join(" "), want);
    }

    use std::future::Future;

    #[test]
    fn dm_104_nobody_comes_in_after_it_is_retired_and_those_inside_are_waited_for() {
        check("in wait retire in wait out wait", "waits refused waits empty");
        check("retire wait in", "empty refused");
        check("in in retire out wait out wait", "waits empty");
        // An open gate that is empty is not what is waited for.
        check("in out wait in retire out wait", "waits empty");
        check("retire retire wait", "empty");
    }

    #[test]
    fn dm_104_in_a_crowd_nobody_is_inside_once_it_is_empty() {
        for _ in 0..50 {
            let gate = Arc::new(Gate::default());
            let inside = Arc::new(AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        while let Some(guard) = gate.begin() {
                            inside.fetch_add(1, Ordering::SeqCst);
                            std::thread::yield_now();
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(guard);
                        }
                    });
                }
                gate.retire();
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(gate.emptied());
                assert_eq!(inside.load(Ordering::SeqCst), 0);
            });
        }
    }
}

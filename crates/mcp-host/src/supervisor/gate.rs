//! The gate of an instance. It counts running calls and pins, and refuses new calls when the instance is to be
//! closed.
//!
//! A pin reserves the instance for the calls of a pinned generation. A retired gate accepts only pinned calls, and a
//! sealed gate accepts none. Requests about tasks enter until the gate is closed. The state is one atomic number, so
//! no call can enter between retiring and the check that no calls run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Only pinned calls and requests about tasks may enter.
const RETIRED: u64 = 1 << 63;

/// No call may enter, but a request about a task may.
const SEALED: u64 = 1 << 62;

/// Nothing may enter.
const CLOSED: u64 = 1 << 61;

/// All flags.
const FLAGS: u64 = RETIRED | SEALED | CLOSED;

/// Unit of the pin count; the bits below it count calls.
const PIN: u64 = 1 << 31;

/// The gate of one instance.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: AtomicU64,
    /// Notified when the gate is retired, and when something leaves a retired gate.
    changed: Notify,
}

/// A running call. Dropping it leaves the gate.
#[derive(Debug)]
pub(crate) struct GateGuard(Arc<Gate>);

impl Gate {
    /// Lets a call enter. Returns `None` if the gate is retired or sealed.
    pub(crate) fn enter(self: &Arc<Gate>) -> Option<GateGuard> {
        self.try_add(1, RETIRED | SEALED).then(|| GateGuard(Arc::clone(self)))
    }

    /// Lets a pinned call enter, also if the gate is retired. Returns `None` if it is sealed.
    pub(crate) fn enter_pinned(self: &Arc<Gate>) -> Option<GateGuard> {
        self.try_add(1, SEALED).then(|| GateGuard(Arc::clone(self)))
    }

    /// Lets a request about a task enter, also if the gate is sealed. Returns `None` if it is closed.
    pub(crate) fn enter_for_task(self: &Arc<Gate>) -> Option<GateGuard> {
        self.try_add(1, CLOSED).then(|| GateGuard(Arc::clone(self)))
    }

    /// Pins the gate until [`Gate::unpin`]. Returns false if it is retired.
    pub(crate) fn pin(&self) -> bool {
        self.try_add(PIN, RETIRED | SEALED)
    }

    /// Removes one pin.
    pub(crate) fn unpin(&self) {
        self.subtract(PIN);
    }

    /// Refuses all but pinned calls and requests about tasks. Running calls continue.
    pub(crate) fn retire(&self) {
        self.state.fetch_or(RETIRED, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Refuses all but requests about tasks.
    pub(crate) fn seal(&self) {
        self.state.fetch_or(RETIRED | SEALED, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Refuses everything.
    pub(crate) fn close(&self) {
        self.state.fetch_or(FLAGS, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Waits until the gate is retired. Cancel-safe.
    pub(crate) async fn wait_retired(&self) {
        self.wait_until(|state| state & RETIRED != 0).await;
    }

    /// Returns whether calls may enter.
    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) & RETIRED == 0
    }

    /// Returns whether calls are running.
    pub(crate) fn is_busy(&self) -> bool {
        self.state.load(Ordering::Acquire) & (PIN - 1) != 0
    }

    /// Returns whether calls are running or pins exist.
    pub(crate) fn is_in_use(&self) -> bool {
        self.state.load(Ordering::Acquire) & !FLAGS != 0
    }

    /// Returns whether all calls are refused.
    pub(crate) fn is_sealed(&self) -> bool {
        self.state.load(Ordering::Acquire) & SEALED != 0
    }

    /// Waits until a retired gate has no calls and pins, or a sealed one has no calls. Cancel-safe.
    pub(crate) async fn wait_drained(&self) {
        self.wait_until(|state| {
            let inside = state & !FLAGS;
            let counted = if state & SEALED == 0 { inside } else { inside & (PIN - 1) };
            state & RETIRED != 0 && counted == 0
        })
        .await;
    }

    /// Waits until the state of a retired gate meets a condition.
    async fn wait_until(&self, condition: impl Fn(u64) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Enabled before the check, so that no change in between is missed.
            changed.as_mut().enable();
            if condition(self.state.load(Ordering::Acquire)) {
                return;
            }
            changed.await;
        }
    }

    /// Adds to the state. Returns false, and adds nothing, if the state has one of the flags.
    fn try_add(&self, count: u64, refused_flags: u64) -> bool {
        let add = |state| (state & refused_flags == 0).then_some(state + count);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
    }

    fn subtract(&self, count: u64) {
        let before = self.state.fetch_sub(count, Ordering::AcqRel);
        if before & RETIRED != 0 {
            self.changed.notify_waiters();
        }
    }
}

impl Drop for GateGuard {
    fn drop(&mut self) {
        self.0.subtract(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Runs steps: `in`, `pinned-in` and `task-in` let a call enter, `out` ends the first one; `pin`, `unpin`,
    /// `retire`, `seal`, `close`; `wait` polls whether the gate is drained (`empty`) or not (`waits`). `refused` is a
    /// call or pin that may not enter.
    #[track_caller]
    fn check(steps: &str, want: &str) {
        let gate = Arc::new(Gate::default());
        let mut inside = Vec::new();
        let mut wait = Box::pin(gate.wait_drained());
        let mut context = Context::from_waker(Waker::noop());
        let mut seen = Vec::new();
        for step in steps.split_whitespace() {
            match step {
                "in" => match gate.enter() {
                    Some(guard) => inside.push(guard),
                    None => seen.push("refused"),
                },
                "pinned-in" => match gate.enter_pinned() {
                    Some(guard) => inside.push(guard),
                    None => seen.push("refused"),
                },
                "task-in" => match gate.enter_for_task() {
                    Some(guard) => inside.push(guard),
                    None => seen.push("refused"),
                },
                "out" => drop(inside.remove(0)),
                "pin" if gate.pin() => {}
                "pin" => seen.push("refused"),
                "unpin" => gate.unpin(),
                "retire" => gate.retire(),
                "seal" => gate.seal(),
                "close" => gate.close(),
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
    fn dm_104_retired_gate_refuses_calls_and_waits_for_running_ones() {
        check("in wait retire in wait out wait", "waits refused waits empty");
        check("retire wait in", "empty refused");
        check("in in retire out wait out wait", "waits empty");
        // An open gate never counts as drained.
        check("in out wait in retire out wait", "waits empty");
        check("retire retire wait", "empty");
    }

    #[test]
    fn dm_096_pinned_calls_enter_until_sealed() {
        check("pin retire wait pinned-in in wait out wait unpin wait", "waits refused waits waits empty");
        check("pin retire seal wait pinned-in pin", "empty refused refused");
        check("pin pinned-in retire seal wait out wait", "waits empty");
        check("retire pin wait", "refused empty");
        check("pin unpin retire wait", "empty");
    }

    #[test]
    fn requests_about_tasks_enter_until_closed() {
        check("seal task-in pinned-in wait out wait", "refused waits empty");
        check("retire task-in seal task-in close task-in wait out out wait", "refused waits empty");
        check("pin close pinned-in in wait", "refused refused empty");
    }

    /// The steps of three callers, one of them pinned, and of a task that retires and seals the gate.
    const ACTORS: [&[&str]; 4] =
        [&["in", "out"], &["in", "out"], &["pin", "pinned-in", "out", "unpin"], &["retire", "seal"]];

    /// A waker that sets a flag.
    struct Woken(std::sync::atomic::AtomicBool);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// Runs the steps in this order. The waiter polls only after a wake-up.
    fn run_steps(order: &[usize]) {
        let gate = Arc::new(Gate::default());
        let woken = Arc::new(Woken(true.into()));
        let waker = Waker::from(Arc::clone(&woken));
        let mut wait = Box::pin(gate.wait_drained());
        let (mut next, mut pinned, mut is_empty) = ([0; ACTORS.len()], false, false);
        let mut inside: [Option<GateGuard>; ACTORS.len()] = Default::default();
        let (mut retired, mut sealed) = (false, false);
        for actor in order {
            let step = ACTORS[*actor][next[*actor]];
            next[*actor] += 1;
            match step {
                "in" => {
                    inside[*actor] = gate.enter();
                    assert_eq!(inside[*actor].is_some(), !retired, "{order:?}");
                }
                "pin" => {
                    pinned = gate.pin();
                    assert_eq!(pinned, !retired, "{order:?}");
                }
                "pinned-in" if pinned => {
                    inside[*actor] = gate.enter_pinned();
                    assert_eq!(inside[*actor].is_some(), !sealed, "{order:?}");
                }
                "out" => inside[*actor] = None,
                "unpin" if pinned => {
                    pinned = false;
                    gate.unpin();
                }
                "retire" => (retired, ()) = (true, gate.retire()),
                "seal" => (sealed, ()) = (true, gate.seal()),
                _ => {}
            }
            if !is_empty && woken.0.swap(false, Ordering::SeqCst) {
                is_empty = wait.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
            }
            let holds = retired && inside.iter().all(Option::is_none) && (sealed || !pinned);
            assert_eq!(is_empty, holds, "{order:?} at {step}");
        }
        assert!(is_empty, "{order:?}");
    }

    #[test]
    fn dm_104_every_interleaving_drains() {
        let mut orders = vec![Vec::new()];
        for _ in 0..ACTORS.iter().map(|it| it.len()).sum() {
            let longer = orders.iter().flat_map(|order: &Vec<usize>| {
                let left = |it: &usize| order.iter().filter(|actor| *actor == it).count() < ACTORS[*it].len();
                (0..ACTORS.len()).filter(left).map(|it| [&order[..], &[it]].concat())
            });
            orders = longer.collect();
        }
        // 10! orders, without those that reorder the steps of one actor.
        assert_eq!(orders.len(), 3_628_800 / (2 * 2 * 24 * 2));
        orders.iter().for_each(|it| run_steps(it));
    }

    #[test]
    fn dm_104_drained_gate_has_no_calls_under_contention() {
        for _ in 0..50 {
            let gate = Arc::new(Gate::default());
            let inside = Arc::new(AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        while let Some(guard) = gate.enter() {
                            inside.fetch_add(1, Ordering::SeqCst);
                            std::thread::yield_now();
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(guard);
                        }
                    });
                }
                gate.retire();
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(gate.wait_drained());
                assert_eq!(inside.load(Ordering::SeqCst), 0);
            });
        }
    }
}

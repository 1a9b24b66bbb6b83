//! The gate of an instance: who is inside, who counts on it, and whether anybody may still come in.
//!
//! All of it is one atomic number, so that no call can slip in between "closed" and "nobody is inside". Retiring a gate
//! turns away whoever looks for the latest; who has pinned it may still come in, until it is sealed.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Set once, when only who has pinned the gate may come in any more.
const RETIRED: u64 = 1 << 63;

/// Set once, when nobody may come in any more.
const SEALED: u64 = 1 << 62;

/// One pin. The bits below it count who is inside.
const PIN: u64 = 1 << 31;

/// Counts calls and pins, and refuses new ones.
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
        self.add(1, RETIRED | SEALED).then(|| Guard(self))
    }

    /// Comes in although the gate may be retired, for somebody who has pinned it; `None` when it is sealed.
    pub(crate) fn begin_pinned(&self) -> Option<Guard<'_>> {
        self.add(1, SEALED).then(|| Guard(self))
    }

    /// Counts on the gate, until [`Gate::unpin`]; false when it is retired.
    pub(crate) fn pin(&self) -> bool {
        self.add(PIN, RETIRED | SEALED)
    }

    /// Takes one pin back.
    pub(crate) fn unpin(&self) {
        self.take(PIN);
    }

    /// Lets in nobody but who has pinned the gate. Those inside stay until they leave.
    pub(crate) fn retire(&self) {
        self.state.fetch_or(RETIRED, Ordering::AcqRel);
        self.emptied.notify_waiters();
    }

    /// Lets nobody in any more.
    pub(crate) fn seal(&self) {
        self.state.fetch_or(RETIRED | SEALED, Ordering::AcqRel);
        self.emptied.notify_waiters();
    }

    /// May anybody come in?
    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) & RETIRED == 0
    }

    /// Is anybody inside?
    pub(crate) fn is_busy(&self) -> bool {
        self.state.load(Ordering::Acquire) & (PIN - 1) != 0
    }

    /// Is anybody inside, or has anybody pinned it?
    pub(crate) fn is_counted_on(&self) -> bool {
        self.state.load(Ordering::Acquire) & !(RETIRED | SEALED) != 0
    }

    /// Is nobody let in any more?
    pub(crate) fn is_sealed(&self) -> bool {
        self.state.load(Ordering::Acquire) & SEALED != 0
    }

    /// Resolves when a retired gate has nobody inside and is pinned by nobody, or a sealed one has nobody inside.
    /// Cancel-safe.
    pub(crate) async fn emptied(&self) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            // Enabled before looking, so that a leave between the look and the wait is not missed.
            emptied.as_mut().enable();
            let state = self.state.load(Ordering::Acquire);
            let inside = state & !(RETIRED | SEALED);
            let counted = if state & SEALED == 0 { inside } else { inside & (PIN - 1) };
            if state & RETIRED != 0 && counted == 0 {
                return;
            }
            emptied.await;
        }
    }

    fn add(&self, what: u64, unless: u64) -> bool {
        let enter = |state| (state & unless == 0).then_some(state + what);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, enter).is_ok()
    }

    fn take(&self, what: u64) {
        let before = self.state.fetch_sub(what, Ordering::AcqRel);
        if before & RETIRED != 0 {
            self.emptied.notify_waiters();
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.take(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Takes steps and tells what each brought: `in` and `pinned-in` (comes in, or is refused), `out` (the first inside
    /// leaves), `pin`, `unpin`, `retire`, `seal`, and `wait` (is everybody out?).
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
                "pinned-in" => match gate.begin_pinned() {
                    Some(guard) => inside.push(guard),
                    None => seen.push("refused"),
                },
                "out" => drop(inside.remove(0)),
                "pin" if gate.pin() => {}
                "pin" => seen.push("refused"),
                "unpin" => gate.unpin(),
                "retire" => gate.retire(),
                "seal" => gate.seal(),
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
    fn dm_096_who_has_pinned_it_may_come_in_until_it_is_sealed() {
        check("pin retire wait pinned-in in wait out wait unpin wait", "waits refused waits waits empty");
        check("pin retire seal wait pinned-in pin", "empty refused refused");
        check("pin pinned-in retire seal wait out wait", "waits empty");
        check("retire pin wait", "refused empty");
        check("pin unpin retire wait", "empty");
    }

    /// One who calls, one who calls by what he has pinned, and who retires and then seals the gate, each in his own order.
    const HANDS: [&[&str]; 4] =
        [&["in", "out"], &["in", "out"], &["pin", "pinned-in", "out", "unpin"], &["retire", "seal"]];

    /// Wakes by noting it.
    struct Woken(std::sync::atomic::AtomicBool);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// Does the hands' steps in this order. Who waits for the end looks only when he was woken.
    fn play(order: &[usize]) {
        let gate = Gate::default();
        let woken = Arc::new(Woken(true.into()));
        let waker = Waker::from(Arc::clone(&woken));
        let mut wait = Box::pin(gate.emptied());
        let (mut next, mut pinned, mut is_empty) = ([0; HANDS.len()], false, false);
        let mut inside: [Option<Guard<'_>>; HANDS.len()] = Default::default();
        let (mut retired, mut sealed) = (false, false);
        for hand in order {
            let step = HANDS[*hand][next[*hand]];
            next[*hand] += 1;
            match step {
                "in" => {
                    inside[*hand] = gate.begin();
                    assert_eq!(inside[*hand].is_some(), !retired, "{order:?}");
                }
                "pin" => {
                    pinned = gate.pin();
                    assert_eq!(pinned, !retired, "{order:?}");
                }
                "pinned-in" if pinned => {
                    inside[*hand] = gate.begin_pinned();
                    assert_eq!(inside[*hand].is_some(), !sealed, "{order:?}");
                }
                "out" => inside[*hand] = None,
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
    fn dm_104_the_deadline_in_mid_call_and_every_other_order() {
        let mut orders = vec![Vec::new()];
        for _ in 0..HANDS.iter().map(|it| it.len()).sum() {
            let longer = orders.iter().flat_map(|order: &Vec<usize>| {
                let left = |it: &usize| order.iter().filter(|hand| *hand == it).count() < HANDS[*it].len();
                (0..HANDS.len()).filter(left).map(|it| [&order[..], &[it]].concat())
            });
            orders = longer.collect();
        }
        // 10! orders of all steps, less those in which a hand's own are in disorder.
        assert_eq!(orders.len(), 3_628_800 / (2 * 2 * 24 * 2));
        orders.iter().for_each(|it| play(it));
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

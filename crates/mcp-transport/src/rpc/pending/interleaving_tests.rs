//! Interleaving tests of the table of calls: a random sequence of events against a simple model.
//!
//! Each call gets one outcome, that of the first event that ends it, and at the latest at its deadline or the end of
//! the connection.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::error::disconnect::DisconnectReason;

impl PendingCalls {
    /// The number of calls in the table, with or without an outcome.
    pub(crate) fn len(&self) -> usize {
        self.lock().calls.len()
    }
}

/// One event. Calls are chosen among all that were ever started, ended ones included.
#[derive(Debug, Clone)]
enum Step {
    Begin {
        absolute: Option<u64>,
        idle: Option<u64>,
    },
    Answer(usize),
    LaneEnds(usize),
    Progress(usize),
    Poll(usize),
    Forget(usize),
    /// This number of milliseconds passes, then the timer checks.
    Pass(u64),
    Close,
}

/// The outcome of a call in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Answer,
    LaneEnded,
    Absolute,
    Idle,
    Closed,
}

/// A call in the model.
struct Known {
    id: RequestId,
    absolute: Option<Instant>,
    idle: Option<(Instant, Duration)>,
    told: Option<Told>,
    /// Its future has read the outcome or was dropped.
    is_over: bool,
}

impl Known {
    fn waits(&self) -> bool {
        self.told.is_none() && !self.is_over
    }

    fn due(&self) -> Option<Instant> {
        [self.absolute, self.idle.map(|it| it.0)].into_iter().flatten().min()
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let limit = || prop::option::of(1u64..100);
    let step = prop_oneof![
        4 => (limit(), limit()).prop_map(|(absolute, idle)| Step::Begin { absolute, idle }),
        3 => (0usize..12).prop_map(Step::Answer),
        1 => (0usize..12).prop_map(Step::LaneEnds),
        2 => (0usize..12).prop_map(Step::Progress),
        3 => (0usize..12).prop_map(Step::Poll),
        1 => (0usize..12).prop_map(Step::Forget),
        3 => (0u64..60).prop_map(Step::Pass),
        1 => Just(Step::Close),
    ];
    prop::collection::vec(step, 0..40)
}

fn outcome(poll: Poll<CallOutcome>) -> Option<Told> {
    match poll {
        Poll::Pending => None,
        Poll::Ready(CallOutcome::Response { .. }) => Some(Told::Answer),
        Poll::Ready(CallOutcome::StreamFailed(_)) => Some(Told::LaneEnded),
        Poll::Ready(CallOutcome::Expired(Expiry::Absolute(_))) => Some(Told::Absolute),
        Poll::Ready(CallOutcome::Expired(Expiry::Idle(_))) => Some(Told::Idle),
        Poll::Ready(CallOutcome::Closed(_)) => Some(Told::Closed),
    }
}

fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let pending = PendingCalls::default();
    let mut now = Instant::now();
    let mut calls: Vec<Known> = Vec::new();
    let mut closed = false;
    // The next check of the timer, as last scheduled.
    let mut timer: Option<Instant> = None;
    let ended = || Arc::new(Disconnect::new(DisconnectReason::PeerClosed));
    for step in steps {
        match step {
            Step::Begin { absolute, idle } => {
                let (absolute, idle) = (absolute.map(Duration::from_millis), idle.map(Duration::from_millis));
                let begun = pending.insert(Deadline::new(now, now, absolute, idle), None, OwnerHint::Session);
                prop_assert_eq!(begun.is_err(), closed);
                let Ok(begun) = begun else { continue };
                prop_assert!(calls.iter().all(|it| it.id != begun.id), "ids are unique");
                let call = Known {
                    id: begun.id,
                    absolute: absolute.map(|it| now + it),
                    idle: idle.map(|it| (now + it, it)),
                    told: None,
                    is_over: false,
                };
                if begun.rearm {
                    timer = call.due();
                }
                calls.push(call);
            }
            Step::Answer(at) | Step::LaneEnds(at) => {
                let Some(call) = calls.get_mut(at) else { continue };
                let (told, outcome) = match step {
                    Step::Answer(_) => (
                        Told::Answer,
                        CallOutcome::Response { frame: Bytes::new(), is_error: false, payload_start: 0 },
                    ),
                    _ => (Told::LaneEnded, CallOutcome::StreamFailed(StreamError::TooLarge(7))),
                };
                prop_assert_eq!(pending.complete(call.id, outcome), call.waits());
                if call.waits() {
                    call.told = Some(told);
                }
            }
            Step::Progress(at) => {
                let Some(call) = calls.get_mut(at) else { continue };
                let progress = Progress { progress: 0.5, total: None, message: None };
                pending.handle_progress(call.id, progress, now);
                if call.waits()
                    && let Some((at, limit)) = &mut call.idle
                {
                    *at = now + *limit;
                }
            }
            Step::Poll(at) => {
                let Some(call) = calls.get_mut(at).filter(|it| !it.is_over) else { continue };
                let got = outcome(pending.poll(call.id, &mut Context::from_waker(Waker::noop())));
                prop_assert_eq!(got, call.told);
                call.is_over = got.is_some();
            }
            Step::Forget(at) => {
                let Some(call) = calls.get_mut(at).filter(|it| !it.is_over) else { continue };
                prop_assert_eq!(pending.remove(call.id), call.waits());
                call.is_over = true;
            }
            Step::Pass(millis) => {
                now += Duration::from_millis(millis);
                let (mut expired, next) = pending.expire(now);
                expired.sort_unstable();
                let mut want = Vec::new();
                for call in calls.iter_mut().filter(|it| it.waits()) {
                    if call.absolute.is_some_and(|it| now >= it) {
                        call.told = Some(Told::Absolute);
                    } else if call.idle.is_some_and(|it| now >= it.0) {
                        call.told = Some(Told::Idle);
                    } else {
                        continue;
                    }
                    want.push(call.id);
                }
                want.sort_unstable();
                prop_assert_eq!(expired, want);
                timer = next;
            }
            Step::Close => {
                pending.close(ended());
                closed = true;
                for call in calls.iter_mut().filter(|it| it.waits()) {
                    call.told = Some(Told::Closed);
                }
            }
        }
        // The timer checks no later than any deadline.
        for due in calls.iter().filter(|it| it.waits()).filter_map(Known::due) {
            prop_assert!(timer.is_some_and(|it| it <= due), "the timer would check after a deadline");
        }
    }
    // In the end every call has an outcome.
    pending.close(ended());
    for call in calls.iter().filter(|it| !it.is_over) {
        let got = outcome(pending.poll(call.id, &mut Context::from_waker(Waker::noop())));
        prop_assert_eq!(got, Some(call.told.unwrap_or(Told::Closed)));
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_call_is_told_once_whatever_the_order(steps in steps()) {
        run(steps)?;
    }
}

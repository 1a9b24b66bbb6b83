//! Interleaving tests of the table of calls: random sequences of events, compared with a simple model.
//!
//! Each call gets one outcome, that of the first event that ends it, and at the latest at its deadline or the end of
//! the connection.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::super::*;
use crate::error::Expiry;
use crate::error::disconnect::DisconnectReason;
use crate::transport::StreamError;

impl PendingCalls {
    /// The number of calls in the table, with or without an outcome.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().calls.len()
    }
}

/// One event. A number is the index of a call, among all that were started; the call may have ended.
#[derive(Debug, Clone)]
enum Step {
    Insert {
        absolute: Option<u64>,
        idle: Option<u64>,
    },
    Respond(usize),
    FailStream(usize),
    Progress(usize),
    Poll(usize),
    Remove(usize),
    /// This number of milliseconds passes, then the timer checks.
    Advance(u64),
    Close,
}

/// The outcome of a call in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedOutcome {
    Response,
    StreamFailed,
    Absolute,
    Idle,
    Closed,
}

/// A call in the model.
struct ModelCall {
    id: RequestId,
    absolute: Option<Instant>,
    idle: Option<(Instant, Duration)>,
    expected: Option<ExpectedOutcome>,
    /// Its future has read the outcome or was dropped.
    is_done: bool,
}

impl ModelCall {
    fn is_waiting(&self) -> bool {
        self.expected.is_none() && !self.is_done
    }

    fn next_deadline(&self) -> Option<Instant> {
        [self.absolute, self.idle.map(|it| it.0)].into_iter().flatten().min()
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let limit = || prop::option::of(1u64..100);
    let step = prop_oneof![
        4 => (limit(), limit()).prop_map(|(absolute, idle)| Step::Insert { absolute, idle }),
        3 => (0usize..12).prop_map(Step::Respond),
        1 => (0usize..12).prop_map(Step::FailStream),
        2 => (0usize..12).prop_map(Step::Progress),
        3 => (0usize..12).prop_map(Step::Poll),
        1 => (0usize..12).prop_map(Step::Remove),
        3 => (0u64..60).prop_map(Step::Advance),
        1 => Just(Step::Close),
    ];
    prop::collection::vec(step, 0..40)
}

fn outcome(poll: Poll<RpcOutcome>) -> Option<ExpectedOutcome> {
    match poll {
        Poll::Pending => None,
        Poll::Ready(RpcOutcome::Response { .. }) => Some(ExpectedOutcome::Response),
        Poll::Ready(RpcOutcome::StreamFailed(_)) => Some(ExpectedOutcome::StreamFailed),
        Poll::Ready(RpcOutcome::Expired(Expiry::Absolute(_))) => Some(ExpectedOutcome::Absolute),
        Poll::Ready(RpcOutcome::Expired(Expiry::Idle(_))) => Some(ExpectedOutcome::Idle),
        Poll::Ready(RpcOutcome::Closed(_)) => Some(ExpectedOutcome::Closed),
    }
}

fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let pending = PendingCalls::default();
    let mut now = Instant::now();
    let mut calls: Vec<ModelCall> = Vec::new();
    let mut closed = false;
    // The next check of the timer, as last scheduled.
    let mut timer: Option<Instant> = None;
    let disconnect = || Arc::new(Disconnect::new(DisconnectReason::PeerClosed));
    for step in steps {
        match step {
            Step::Insert { absolute, idle } => {
                let (absolute, idle) = (absolute.map(Duration::from_millis), idle.map(Duration::from_millis));
                let inserted =
                    pending.insert(CallDeadlines::new(now, now, absolute, idle), None, CallOwner::Session);
                prop_assert_eq!(inserted.is_err(), closed);
                let Ok(inserted) = inserted else { continue };
                prop_assert!(calls.iter().all(|it| it.id != inserted.id), "ids are unique");
                let call = ModelCall {
                    id: inserted.id,
                    absolute: absolute.map(|it| now + it),
                    idle: idle.map(|it| (now + it, it)),
                    expected: None,
                    is_done: false,
                };
                if inserted.must_wake_timer {
                    timer = call.next_deadline();
                }
                calls.push(call);
            }
            Step::Respond(at) | Step::FailStream(at) => {
                let Some(call) = calls.get_mut(at) else { continue };
                let (expected, outcome) = match step {
                    Step::Respond(_) => (
                        ExpectedOutcome::Response,
                        RpcOutcome::Response { frame: Bytes::new(), is_error: false, payload_start: 0 },
                    ),
                    _ => (ExpectedOutcome::StreamFailed, RpcOutcome::StreamFailed(StreamError::TooLarge(7))),
                };
                prop_assert_eq!(pending.complete(call.id, outcome), call.is_waiting());
                if call.is_waiting() {
                    call.expected = Some(expected);
                }
            }
            Step::Progress(at) => {
                let Some(call) = calls.get_mut(at) else { continue };
                let progress = Progress { progress: 0.5, total: None, message: None };
                pending.handle_progress(call.id, progress, now);
                if call.is_waiting()
                    && let Some((at, limit)) = &mut call.idle
                {
                    *at = now + *limit;
                }
            }
            Step::Poll(at) => {
                let Some(call) = calls.get_mut(at).filter(|it| !it.is_done) else { continue };
                let got = outcome(pending.poll(call.id, &mut Context::from_waker(Waker::noop())));
                prop_assert_eq!(got, call.expected);
                call.is_done = got.is_some();
            }
            Step::Remove(at) => {
                let Some(call) = calls.get_mut(at).filter(|it| !it.is_done) else { continue };
                prop_assert_eq!(pending.remove(call.id), call.is_waiting());
                call.is_done = true;
            }
            Step::Advance(millis) => {
                now += Duration::from_millis(millis);
                let (mut expired, next) = pending.expire(now);
                expired.sort_unstable();
                let mut want = Vec::new();
                for call in calls.iter_mut().filter(|it| it.is_waiting()) {
                    if call.absolute.is_some_and(|it| now >= it) {
                        call.expected = Some(ExpectedOutcome::Absolute);
                    } else if call.idle.is_some_and(|it| now >= it.0) {
                        call.expected = Some(ExpectedOutcome::Idle);
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
                pending.close(disconnect());
                closed = true;
                for call in calls.iter_mut().filter(|it| it.is_waiting()) {
                    call.expected = Some(ExpectedOutcome::Closed);
                }
            }
        }
        // The timer checks no later than any deadline.
        for next_deadline in calls.iter().filter(|it| it.is_waiting()).filter_map(ModelCall::next_deadline) {
            prop_assert!(
                timer.is_some_and(|it| it <= next_deadline),
                "the timer would check after a deadline"
            );
        }
    }
    // In the end every call has an outcome.
    pending.close(disconnect());
    for call in calls.iter().filter(|it| !it.is_done) {
        let got = outcome(pending.poll(call.id, &mut Context::from_waker(Waker::noop())));
        prop_assert_eq!(got, Some(call.expected.unwrap_or(ExpectedOutcome::Closed)));
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_call_gets_one_outcome(steps in steps()) {
        run(steps)?;
    }
}

//! Tests of the table of calls. Random sequences are in `interleaving`.

mod interleaving;

use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::error::disconnect::DisconnectReason;

fn insert_call(pending: &PendingCalls) -> RequestId {
    pending
        .insert(CallDeadlines::new(Instant::now(), Instant::now(), None, None), None, CallOwner::Session)
        .ok()
        .unwrap()
        .id
}

fn poll(pending: &PendingCalls, id: RequestId) -> String {
    match pending.poll(id, &mut Context::from_waker(Waker::noop())) {
        Poll::Pending => "waiting".to_owned(),
        Poll::Ready(RpcOutcome::Response { frame, .. }) => {
            format!("response {}", str::from_utf8(&frame).unwrap())
        }
        Poll::Ready(RpcOutcome::Closed(disconnect)) => format!("closed: {disconnect}"),
        Poll::Ready(other) => format!("{other:?}"),
    }
}

fn response(text: &'static str) -> RpcOutcome {
    RpcOutcome::Response { frame: Bytes::from_static(text.as_bytes()), is_error: false, payload_start: 0 }
}

#[test]
fn response_reaches_its_call_once() {
    let pending = PendingCalls::default();
    let (a, b) = (insert_call(&pending), insert_call(&pending));
    assert!(pending.complete(b, response("b")));
    assert!(!pending.complete(b, response("again")));
    assert_eq!((poll(&pending, a), poll(&pending, b)), ("waiting".into(), "response b".into()));
    assert!(!pending.complete(b, response("late")));
}

#[test]
fn reused_slot_gets_a_new_id() {
    let pending = PendingCalls::default();
    let first = insert_call(&pending);
    assert!(pending.remove(first));
    let second = insert_call(&pending);
    assert_ne!(first, second);
    assert!(!pending.complete(first, response("for the first")));
    assert_eq!(poll(&pending, second), "waiting");
}

#[test]
fn close_ends_pending_calls_and_refuses_later_ones() {
    let pending = PendingCalls::default();
    let (completed, waiting) = (insert_call(&pending), insert_call(&pending));
    pending.complete(completed, response("in time"));
    pending.close(Arc::new(Disconnect::new(DisconnectReason::PeerClosed)));
    pending.close(Arc::new(Disconnect::new(DisconnectReason::Stopped)));
    assert_eq!(poll(&pending, completed), "response in time");
    assert_eq!(poll(&pending, waiting), "closed: it closed the connection");
    assert!(
        pending
            .insert(CallDeadlines::new(Instant::now(), Instant::now(), None, None), None, CallOwner::Session)
            .is_err()
    );
}

#[test]
fn answered_and_lost_requests_of_callers_are_counted() {
    let pending = PendingCalls::default();
    let own = CallDeadlines::new(Instant::now(), Instant::now(), None, None);
    let own = || pending.insert(own, None, CallOwner::None).ok().unwrap().id;
    let ids = [insert_call(&pending), insert_call(&pending), insert_call(&pending), own(), own()];
    pending.complete(ids[0], response("answered"));
    pending.complete(ids[1], RpcOutcome::Expired(crate::error::Expiry::Absolute(Duration::ZERO)));
    pending.complete(ids[3], response("a list"));
    pending.close(Arc::new(Disconnect::new(DisconnectReason::PeerClosed)));
    let CallerRequests { answered, lost } = pending.caller_requests();
    assert_eq!((answered, lost), (1, 1));
}

#[test]
fn only_an_earlier_deadline_wakes_the_timer() {
    let pending = PendingCalls::default();
    let now = Instant::now();
    let wakes_timer = |seconds| {
        let deadline = CallDeadlines::new(now, now, Some(Duration::from_secs(seconds)), None);
        pending.insert(deadline, None, CallOwner::Session).ok().unwrap().must_wake_timer
    };
    let woken = (wakes_timer(60), wakes_timer(60), wakes_timer(30), wakes_timer(45));
    assert_eq!(woken, (true, false, true, false));
    let (expired, next) = pending.expire(now + Duration::from_secs(31));
    assert_eq!((expired.len(), next), (1, Some(now + Duration::from_secs(45))));
}

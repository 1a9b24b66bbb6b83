//! The actions of a test on a peer, and the names of their results.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, join_all};
use mcp_model::{Limits, RawJson};
use mcp_testkit::wait::wait_until;
use mcp_transport::{CallError, CallOptions, ConnectError, Disconnect, DisconnectReason, Session};
use serde_json::json;

use super::peers::{self, Peer, Variant};

/// The actions of a test. Returns the outcome as text.
pub(super) type Drive = fn(Variant, Peer, Limits) -> BoxFuture<'static, String>;

const GRACE: Duration = Duration::from_secs(5);

/// The timeout of calls that get no response.
const IMPATIENT: Duration = Duration::from_millis(300);

/// Two calls in sequence. Returns `outcome of the first | outcome of the second`.
pub(super) fn twice(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    call_and_other(peer, limits, CallOptions::default()).boxed()
}

/// The same when the first call gets no response. It has a short timeout, except over HTTP, where the end of its
/// own response ends it.
pub(super) fn unanswered(variant: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    if variant.transport.is_http() { twice(variant, peer, limits) } else { impatient(variant, peer, limits) }
}

/// The same when the first call has a short timeout.
pub(super) fn impatient(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    let mut options = CallOptions::default();
    options.timeout = Some(IMPATIENT);
    call_and_other(peer, limits, options).boxed()
}

async fn call_and_other(peer: Peer, limits: Limits, options: CallOptions) -> String {
    let session = match peer.connect(&limits).await {
        Ok(session) => session,
        Err(error) => return unconnected(&error),
    };
    let first = call(&session, "first", options).await;
    let other = call(&session, "other", CallOptions::default()).await;
    session.close(GRACE).await;
    format!("{first} | {other}")
}

/// Only the handshake, with an endpoint where no peer is.
pub(super) fn without_peer(variant: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    drop(peer);
    async move {
        let (endpoint, _kept) = variant.transport.without_peer();
        match peers::connect(&endpoint, variant.era, &limits).await {
            Ok(_) => "connected".to_owned(),
            Err(error) => unconnected(&error),
        }
    }
    .boxed()
}

/// A call after the peer has died.
pub(super) fn widowed(variant: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    async move {
        let session = peer.connect(&limits).await.unwrap();
        drop(peer);
        if !variant.transport.is_http() {
            session.closed().await;
        }
        // Over HTTP, a call may detect that a pooled connection was closed; then it is not known whether it ran.
        // There are at most as many such calls as connections. The next call finds no peer.
        loop {
            let came = call(&session, "other", CallOptions::default()).await;
            if !(variant.transport.is_http() && came == "outcome unknown") {
                return came;
            }
        }
    }
    .boxed()
}

/// Three concurrent calls, and sixty-four: how many got their own response.
pub(super) fn three(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    at_once(3, peer, limits).boxed()
}

pub(super) fn sixty_four(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    at_once(64, peer, limits).boxed()
}

async fn at_once(number: usize, peer: Peer, limits: Limits) -> String {
    let session = peer.connect(&limits).await.unwrap();
    let names: Vec<String> = (0..number).map(|it| format!("tool-{it}")).collect();
    let answers = join_all(names.iter().map(|it| call(&session, it, CallOptions::default()))).await;
    let own = names.iter().zip(&answers).filter(|(name, answer)| name == answer).count();
    session.close(GRACE).await;
    format!("{own} of {number}")
}

/// Eight calls, one after another, each with eight notices of progress.
pub(super) fn in_order(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    async move {
        let session = peer.connect(&limits).await.unwrap();
        let names: Vec<String> = (0..8).map(|it| format!("tool-{it}")).collect();
        for name in &names {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let note = Arc::clone(&seen);
            let progress =
                Arc::new(move |it: mcp_transport::Progress| note.lock().unwrap().push(it.progress));
            let mut options = CallOptions::default();
            options.progress = Some(progress);
            let answer = call(&session, name, options).await;
            let seen = seen.lock().unwrap().clone();
            if answer != "hello" || seen != [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0] {
                return format!("{name}: {seen:?}, {answer}");
            }
        }
        session.close(GRACE).await;
        if peer.called() == names { "in order".to_owned() } else { format!("{:?}", peer.called()) }
    }
    .boxed()
}

/// A large call that is dropped when a part of it was sent, then another call.
pub(super) fn given_up_going_out(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    async move {
        let session = peer.connect(&limits).await.unwrap();
        let before = peer.relay.sent_bytes();
        let arguments = RawJson::from_value(&json!({"text": "x".repeat(12 << 20)})).unwrap();
        tokio::select! {
            called = session.call_tool("first", &arguments, CallOptions::default()) => return format!("{called:?}"),
            () = wait_until(|| peer.relay.sent_bytes() > before + (1 << 20)) => {}
        }
        let other = call(&session, "other", CallOptions::default()).await;
        session.close(GRACE).await;
        other
    }
    .boxed()
}

/// A call that is dropped when half of its response may have arrived. The server must be notified. Then another
/// call.
pub(super) fn given_up_coming_in(variant: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    async move {
        let session = peer.connect(&limits).await.unwrap();
        tokio::select! {
            called = call(&session, "first", CallOptions::default()) => return called,
            () = wait_until(|| peer.count("tools/call") == 1) => {}
        }
        if variant.tells_of_giving_up() {
            wait_until(|| peer.count("notifications/cancelled") == 1).await;
        }
        let other = call(&session, "other", CallOptions::default()).await;
        session.close(GRACE).await;
        other
    }
    .boxed()
}

/// A call of four megabytes.
pub(super) fn large_call(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    async move {
        let session = peer.connect(&limits).await.unwrap();
        let arguments = RawJson::from_value(&json!({"text": "x".repeat(4 << 20)})).unwrap();
        let answer = session.call_tool("first", &arguments, CallOptions::default()).await;
        let first = outcome(answer.map(|reply| reply.value.text()));
        let other = call(&session, "other", CallOptions::default()).await;
        session.close(GRACE).await;
        format!("{first} | {other}")
    }
    .boxed()
}

/// Closes during a call, closes again, then makes a call and a list request.
pub(super) fn closed_twice(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    async move {
        let session = peer.connect(&limits).await.unwrap();
        session.list_tools().await.unwrap();
        let closing = async {
            wait_until(|| peer.count("tools/call") == 1).await;
            tokio::join!(session.close(GRACE), session.close(GRACE))
        };
        let (called, (one, two)) = tokio::join!(call(&session, "first", CallOptions::default()), closing);
        let three = session.close(GRACE).await;
        let reasons = [one, two, three].map(|it| reason(&it)).join(", ");
        let after = call(&session, "other", CallOptions::default()).await;
        // The cached list must not be returned after the end, although its `ttlMs` has not passed.
        let listed = outcome(session.list_tools().await.map(|it| it.items.len().to_string()));
        format!("{called} | {reasons} | {after}, {listed}")
    }
    .boxed()
}

/// A call with a large response, which is not polled while another call is made.
pub(super) fn beside(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    async move {
        let session = peer.connect(&limits).await.unwrap();
        let mut first = Box::pin(call(&session, "first", CallOptions::default()));
        tokio::select! {
            called = &mut first => return called,
            () = wait_until(|| peer.count("tools/call") == 1) => {}
        }
        // The first call is not polled here: its response is read by other tasks.
        let other = call(&session, "echo", CallOptions::default()).await;
        let first = first.await;
        session.close(GRACE).await;
        format!("{other} | {first}")
    }
    .boxed()
}

/// The tools of a list, and the invalid ones.
pub(super) fn listed(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    async move {
        let session = peer.connect(&limits).await.unwrap();
        let listing = session.list_tools().await.unwrap();
        session.close(GRACE).await;
        format!("{} kept, {} rejected", listing.items.len(), listing.rejected.len())
    }
    .boxed()
}

/// The number of announced list changes when the response arrives.
pub(super) fn changed(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    async move {
        let session = peer.connect(&limits).await.unwrap();
        let mut changes = session.list_changes();
        let first = call(&session, "first", CallOptions::default()).await;
        let known = changes.wait_for(|it| it.tools == 2).await.unwrap().tools;
        session.close(GRACE).await;
        format!("{first}, {known} changes")
    }
    .boxed()
}

/// A call during which the server sends a ping with the same id.
pub(super) fn pinged(_: Variant, peer: Peer, limits: Limits) -> BoxFuture<'static, String> {
    async move {
        let session = peer.connect(&limits).await.unwrap();
        let first = call(&session, "first", CallOptions::default()).await;
        wait_until(|| peer.answers().len() == 1).await;
        session.close(GRACE).await;
        format!("{first}, answered with {}", peer.answers()[0]["result"])
    }
    .boxed()
}

async fn call(session: &Session, name: &str, options: CallOptions) -> String {
    let answer = session.call_tool(name, &RawJson::empty_object(), options).await;
    outcome(answer.map(|reply| reply.value.text()))
}

fn outcome(outcome: Result<String, CallError>) -> String {
    match outcome {
        Ok(text) if text.len() > 100 => format!("{} bytes", text.len()),
        Ok(text) => text,
        Err(CallError::Closed(ended)) => format!("closed: {}", reason(&ended)),
        Err(CallError::NotSent(ended)) => format!("not sent: {}", reason(&ended)),
        Err(CallError::TimedOut(_)) => "timed out".to_owned(),
        Err(CallError::Rpc(error)) => format!("error {}", error.code),
        Err(CallError::InvalidResponse(_)) => "unreadable".to_owned(),
        Err(CallError::OutcomeUnknown(_)) => "outcome unknown".to_owned(),
        Err(CallError::Unreachable(_) | CallError::Refused(_)) => "refused".to_owned(),
        Err(CallError::ResponseTooLarge(_)) => "too large".to_owned(),
        Err(other) => format!("{other:?}"),
    }
}

fn unconnected(error: &ConnectError) -> String {
    match error {
        ConnectError::Disconnected(ended) => format!("no session: {}", reason(ended)),
        ConnectError::TimedOut { .. } | ConnectError::Silent { .. } => "no session: timed out".to_owned(),
        ConnectError::Refused(_) => "no session: refused".to_owned(),
        ConnectError::Rejected { .. } => "no session: rejected".to_owned(),
        other => format!("no session: {other:?}"),
    }
}

fn reason(ended: &Disconnect) -> String {
    match &ended.reason {
        DisconnectReason::Stopped => "stopped".to_owned(),
        DisconnectReason::PeerClosed => "peer closed".to_owned(),
        DisconnectReason::Broken(_) => "broken".to_owned(),
        other => format!("{other:?}"),
    }
}

//! The functions of the rows that use a session. Each returns its outcome.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{Era, RawJson, code};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;

use super::run::{ResponseForm, SessionRun};
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::error::{CallError, ConnectError};
use crate::rpc::progress::OnProgress;
use crate::session::{CallOptions, Session};

/// The time to close a session.
const GRACE: Duration = Duration::from_secs(5);

/// The timeout of calls that get no response.
pub(super) const SHORT_TIMEOUT: Duration = Duration::from_millis(300);

/// The timeout of a call whose response may be discarded. A transport that delivers it needs less.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(3);

/// The time after which a part of a large message was sent, over a connection that takes longer for all of it.
const PARTLY_SENT: Duration = Duration::from_millis(40);

/// Texts that are not JSON-RPC.
pub(super) const NOISE: [&str; 3] = ["npm notice", "Segmentation fault (core dumped)", "null"];

/// Arguments with line breaks between the tokens and in a string.
pub(super) const ARGUMENTS_WITH_LINE_BREAKS: &str =
    "{\n  \"text\": \"a\\nb\\r\\nc\",\r\n\t\"list\": [\n1,\r2\n]\n}";

/// The length of the string in the second, longer arguments with line breaks.
pub(super) const LONG_TEXT_BYTES: usize = 200_000;

/// Makes two calls in sequence, the first with this timeout.
pub(super) async fn call_twice(run: SessionRun, timeout: Option<Duration>) -> String {
    let options = CallOptions { timeout, ..CallOptions::default() };
    let first = call(&run.session, "first", options).await;
    append_other_call(run, first).await
}

/// Makes two calls, of which the first gets no response. It times out, unless the end of its own response ends it.
pub(super) async fn call_unanswered(run: SessionRun) -> String {
    let timeout = (run.form == ResponseForm::Shared).then_some(SHORT_TIMEOUT);
    call_twice(run, timeout).await
}

/// Makes a large call, then another.
pub(super) async fn call_large(run: SessionRun) -> String {
    let first = large_call(&run.session, 4 << 20).await;
    append_other_call(run, first).await
}

/// Makes the last call of a session, and adds its outcome to that of the first.
async fn append_other_call(run: SessionRun, first: String) -> String {
    format!("{first} | {}", call_other(run).await)
}

/// Makes the last call of a session, and closes the session.
async fn call_other(run: SessionRun) -> String {
    let res = call(&run.session, "other", CallOptions::default()).await;
    run.session.close(GRACE).await;
    res
}

/// Makes concurrent calls, and counts those that get their own response.
pub(super) async fn call_all(number: usize, run: SessionRun) -> String {
    let mut calls = JoinSet::new();
    for name in (0..number).map(|it| format!("tool-{it}")) {
        let session = Arc::clone(&run.session);
        calls.spawn(async move { call(&session, &name, CallOptions::default()).await == name });
    }
    let own = calls.join_all().await.into_iter().filter(|is_own| *is_own).count();
    run.session.close(GRACE).await;
    format!("{own} of {number}")
}

/// Makes eight calls, one after another, each with eight progress notifications.
pub(super) async fn call_in_order(run: SessionRun) -> String {
    let names: Vec<String> = (0..8).map(|it| format!("tool-{it}")).collect();
    for name in &names {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&seen);
        let progress: OnProgress = Arc::new(move |it| note.lock().push(it.progress));
        let mut options = CallOptions::default();
        options.context.progress = Some(progress);
        let response = call(&run.session, name, options).await;
        let seen = seen.lock().clone();
        if response != "hello" || seen != [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0] {
            return format!("{name}: {seen:?}, {response}");
        }
    }
    run.session.close(GRACE).await;
    let called = run.received.called();
    if called == names { "in order".to_owned() } else { format!("{called:?}") }
}

/// Makes a call, and counts the announced list changes.
pub(super) async fn count_list_changes(run: SessionRun) -> String {
    let mut changes = run.session.list_changes();
    let first = call(&run.session, "first", CallOptions::default()).await;
    let known = changes.wait_for(|it| it.tools == 2).await.map_or(0, |it| it.tools);
    run.session.close(GRACE).await;
    format!("{first}, {known} changes")
}

/// Lists the tools, and counts the valid and the invalid ones.
pub(super) async fn list_tools(run: SessionRun) -> String {
    let listing = run.session.list_tools().await;
    run.session.close(GRACE).await;
    describe_result(listing.map(|it| format!("{} kept, {} rejected", it.items.len(), it.rejected.len())))
}

/// Makes a call with a large response, which is not polled while another call is made.
pub(super) async fn call_beside_unread(run: SessionRun) -> String {
    let mut first = Box::pin(call(&run.session, "first", CallOptions::default()));
    tokio::select! {
        called = &mut first => return called,
        () = run.received.wait_for_method("tools/call") => {}
    }
    // The first call is not polled here: its response is read by other tasks.
    let other = call(&run.session, "echo", CallOptions::default()).await;
    let first = first.await;
    run.session.close(GRACE).await;
    format!("{other} | {first}")
}

/// Drops a large call when a part of it may have been sent, then makes another call.
pub(super) async fn drop_while_sent(run: SessionRun) -> String {
    tokio::select! {
        called = large_call(&run.session, 12 << 20) => return called,
        () = tokio::time::sleep(PARTLY_SENT) => {}
    }
    call_other(run).await
}

/// Drops a call when half of its response may have arrived. The server is notified, except where it
/// is enough to close the call's own response. Then makes another call.
pub(super) async fn drop_in_response(run: SessionRun) -> String {
    tokio::select! {
        called = call(&run.session, "first", CallOptions::default()) => return called,
        () = run.received.wait_for_method("tools/call") => {}
    }
    if run.form == ResponseForm::Shared || run.era == Era::Legacy {
        run.received.wait_for_method("notifications/cancelled").await;
    }
    call_other(run).await
}

/// Makes a call during which the server sends a ping with the same id.
pub(super) async fn call_during_ping(run: SessionRun) -> String {
    let first = call(&run.session, "first", CallOptions::default()).await;
    let pong = run.received.wait_for(|message| message.get("result").is_some()).await;
    run.session.close(GRACE).await;
    format!("{first}, answered with {}", pong["result"])
}

/// Makes two calls whose arguments contain line breaks.
pub(super) async fn call_with_line_breaks(run: SessionRun) -> String {
    let short = RawJson::parse(ARGUMENTS_WITH_LINE_BREAKS.into()).expect("it is JSON");
    let long = format!("[\n\"{}\"\r\n]", "x".repeat(LONG_TEXT_BYTES));
    let long = ARGUMENTS_WITH_LINE_BREAKS.replacen("[\n1,\r2\n]", &long, 1);
    let long = RawJson::parse(long.into()).expect("it is JSON");
    let mut outcomes = Vec::new();
    for arguments in [short, long] {
        outcomes.push(call_with(&run.session, "first", &arguments, CallOptions::default()).await);
    }
    run.session.close(GRACE).await;
    outcomes.join(" | ")
}

/// Makes a call. The server sends noise before its response.
pub(super) async fn call_with_noise(run: SessionRun) -> String {
    let first = call(&run.session, "first", CallOptions::default()).await;
    let sent: usize = NOISE.iter().map(|it| it.len()).sum();
    let counted = run.session.counters().noise_bytes;
    let is_counted = usize::try_from(counted).is_ok_and(|counted| counted >= sent);
    let counted =
        if is_counted { "counted".to_owned() } else { format!("counted as {counted} of {sent} bytes") };
    format!("{first}, {counted} | {}", call_other(run).await)
}

/// Makes a call whose response is over the limit, then another call. The transport discards the response, or ends
/// the connection.
pub(super) async fn call_over_the_limit(run: SessionRun) -> String {
    // On a shared stream, a transport need not know which call a discarded message belongs to: the call times out. The
    // connection may also end, before the call times out or after it.
    let (timeout, refusals): (_, &[&str]) = match run.form {
        ResponseForm::Shared => (
            Some(DISCARD_TIMEOUT),
            &[
                "too large | hello",
                "timed out | hello",
                "closed: lost | not sent: lost",
                "timed out | not sent: lost",
                "timed out | closed: lost",
            ],
        ),
        ResponseForm::Stream | ResponseForm::Document => {
            (None, &["too large | hello", "outcome unknown | hello"])
        }
    };
    let outcome = call_twice(run, timeout).await;
    if refusals.contains(&&*outcome) { "refused".to_owned() } else { outcome }
}

/// Closes the session, then opens another one with the same dial.
pub(super) async fn connect_again(run: SessionRun) -> String {
    let SessionRun { session, dial, options, .. } = run;
    let first = call(&session, "other", CallOptions::default()).await;
    session.close(GRACE).await;
    let second = match Session::connect(dial, options).await {
        Ok(session) => {
            let second = call(&session, "other", CallOptions::default()).await;
            session.close(GRACE).await;
            second
        }
        Err(error) => describe_connect_error(&error),
    };
    format!("{first} | {second}")
}

/// Closes during a call, closes again, then makes a call and a list request.
pub(super) async fn close_twice(run: SessionRun) -> String {
    let session = run.session;
    let _ = session.list_tools().await;
    let closing = async {
        run.received.wait_for_method("tools/call").await;
        tokio::join!(session.close(GRACE), session.close(GRACE))
    };
    let (called, (one, two)) = tokio::join!(call(&session, "first", CallOptions::default()), closing);
    let three = session.close(GRACE).await;
    let reasons = [one, two, three].map(|it| describe_reason(&it)).join(", ");
    let after = call(&session, "other", CallOptions::default()).await;
    // The cached list must not be returned after the end, although its `ttlMs` has not passed.
    let listed = describe_result(session.list_tools().await.map(|it| it.items.len().to_string()));
    format!("{called} | {reasons} | {after}, {listed}")
}

/// Calls `first` with arguments of this size.
async fn large_call(session: &Session, bytes: usize) -> String {
    let arguments = RawJson::from_value(&json!({"text": "x".repeat(bytes)})).expect("it is an object");
    call_with(session, "first", &arguments, CallOptions::default()).await
}

async fn call(session: &Session, name: &str, options: CallOptions) -> String {
    call_with(session, name, &RawJson::empty_object(), options).await
}

async fn call_with(session: &Session, name: &str, arguments: &RawJson, options: CallOptions) -> String {
    describe_result(session.call_tool(name, arguments, options).await.map(|it| it.value.text()))
}

fn describe_result(outcome: Result<String, CallError>) -> String {
    match outcome {
        Ok(text) if text.len() > 100 => format!("{} bytes", text.len()),
        Ok(text) => text,
        Err(CallError::Closed(end)) => format!("closed: {}", describe_reason(&end)),
        Err(CallError::NotSent(end)) => format!("not sent: {}", describe_reason(&end)),
        Err(CallError::TimedOut(_) | CallError::TimedOutUnmatched { .. }) => "timed out".to_owned(),
        Err(CallError::Rpc(error)) if error.code == code::INVALID_REQUEST => "invalid request".to_owned(),
        Err(CallError::Rpc(error)) if error.code == code::INTERNAL_ERROR => "internal error".to_owned(),
        Err(CallError::ResponseTooLarge(_)) => "too large".to_owned(),
        Err(CallError::OutcomeUnknown(_)) => "outcome unknown".to_owned(),
        Err(other) => format!("{other:?}"),
    }
}

/// Describes the error of a handshake.
pub(super) fn describe_connect_error(error: &ConnectError) -> String {
    match error {
        ConnectError::Disconnected(end) => format!("no session: {}", describe_reason(end)),
        ConnectError::TimedOut { .. } | ConnectError::Silent { .. } => "no session: timed out".to_owned(),
        ConnectError::Refused(_) => "no session: refused".to_owned(),
        other => format!("no session: {other:?}"),
    }
}

fn describe_reason(end: &Disconnect) -> String {
    match &end.reason {
        DisconnectReason::Stopped => "stopped".to_owned(),
        DisconnectReason::PeerClosed | DisconnectReason::Broken(_) => "lost".to_owned(),
        other => format!("{other:?}"),
    }
}

//! The table: the behaviour of a server, the use of the session, and the outcome.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_model::RawJson;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::script::{self, notice, tool_result, tool_result_for};
use super::{ReceivedMessages, Script, ServerAction};
use crate::error::CallError;
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::rpc::progress::OnProgress;
use crate::session::{CallOptions, Session};

const GRACE: Duration = Duration::from_secs(5);

/// The timeout of calls that get no response.
const SHORT_TIMEOUT: Duration = Duration::from_millis(300);

/// One behaviour.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) script: Script,
    pub(super) run: Run,
    pub(super) want: &'static str,
    /// Whether the server sends several messages in response to one.
    pub(super) is_stream: bool,
}

type Run = fn(Arc<Session>, ReceivedMessages) -> Pin<Box<dyn Future<Output = String> + Send>>;

pub(super) fn rows() -> Vec<Row> {
    let row = |name, script, run: Run, want| Row { name, script, run, want, is_stream: false };
    let stream = |name, script, run: Run, want| Row { name, script, run, want, is_stream: true };
    vec![
        stream("order", script::first_after(progress), |it, log| Box::pin(in_order(it, log)), "in order"),
        row("3 calls at once", script::reversed(3), |it, _| Box::pin(at_once(3, it)), "3 of 3"),
        row("64 calls at once", script::reversed(64), |it, _| Box::pin(at_once(64, it)), "64 of 64"),
        stream(
            "list_changed before a response",
            script::first_after(|_| vec![notice("notifications/tools/list_changed", &json!({})); 2]),
            |it, _| Box::pin(changed(it)),
            "hello, 2 changes",
        ),
        row(
            "one tool without an object inputSchema",
            script::first(|_| Vec::new()),
            |it, _| Box::pin(listed(it)),
            "1 kept, 1 rejected",
        ),
        row(
            "a small response behind a large one that is not read",
            script::large_then_small(4 << 20),
            |it, log| Box::pin(beside(it, log)),
            "hello | 4194304 bytes",
        ),
        row(
            "a message of 10 MiB",
            script::first(|message| vec![ServerAction::Send(tool_result(message, &"x".repeat(10 << 20)))]),
            |it, _| Box::pin(twice(it, None)),
            "10485760 bytes | hello",
        ),
        row(
            "a server that is silent in a call",
            script::first(|_| vec![ServerAction::KeepOpen]),
            |it, _| Box::pin(twice(it, Some(SHORT_TIMEOUT))),
            "timed out | hello",
        ),
        row(
            "a call that is dropped",
            script::first(|_| vec![ServerAction::KeepOpen]),
            |it, log| Box::pin(dropped(it, log)),
            "hello",
        ),
        stream(
            "noise before the response",
            script::first_after(noise),
            |it, _| Box::pin(twice(it, None)),
            TWO,
        ),
        stream(
            "responses with a wrong id, then one",
            script::first_after(wrong_ids),
            |it, _| Box::pin(twice(it, None)),
            TWO,
        ),
        stream(
            "two responses to one call",
            script::first(|message| {
                ["one", "two"].map(|text| ServerAction::Send(tool_result(message, text))).to_vec()
            }),
            |it, _| Box::pin(twice(it, None)),
            "one | hello",
        ),
        stream(
            "a ping with the number of one of our calls",
            script::first_after(|message| {
                vec![json!({"jsonrpc": "2.0", "id": message["id"], "method": "ping"}).to_string()]
            }),
            |it, log| Box::pin(pinged(it, log)),
            "hello, answered with {}",
        ),
        row("a result that holds an id", script::first(nested), |it, _| Box::pin(twice(it, None)), TWO),
        row(
            "close twice, and call after it",
            script::first(|_| vec![ServerAction::KeepOpen]),
            |it, log| Box::pin(closed_twice(it, log)),
            "closed: stopped | stopped, stopped, stopped | not sent: stopped, not sent: stopped",
        ),
    ]
}

/// The outcome of two calls with the response `hello`.
const TWO: &str = "hello | hello";

fn progress(message: &Value) -> Vec<String> {
    let token = &message["params"]["_meta"]["progressToken"];
    let params = |it: i32| json!({"progressToken": token, "progress": it});
    (1..=8).map(|it| notice("notifications/progress", &params(it))).collect()
}

fn noise(_: &Value) -> Vec<String> {
    ["npm notice", "{\"level\":30}", "{{{", "[1,2]", "null", "{\"jsonrpc\":\"2.0\"}", "\"", "{\"id\":{}}"]
        .map(Into::into)
        .to_vec()
}

fn wrong_ids(_: &Value) -> Vec<String> {
    [json!(999_999), json!(-1), json!("1"), json!(1.5), json!({}), Value::Null]
        .map(|id| tool_result_for(&id, "wrong"))
        .to_vec()
}

fn nested(message: &Value) -> Vec<ServerAction> {
    let content = json!([{"type": "text", "text": "hello", "id": 77}]);
    let result = json!({"id": 99, "content": content, "_meta": {"id": 98}});
    vec![ServerAction::Send(json!({"result": result, "id": message["id"]}).to_string())]
}

/// Two calls in sequence, of which the first may have another timeout.
async fn twice(session: Arc<Session>, timeout: Option<Duration>) -> String {
    let options = CallOptions { timeout, ..CallOptions::default() };
    let first = call(&session, "first", options).await;
    let other = call(&session, "other", CallOptions::default()).await;
    session.close(GRACE).await;
    format!("{first} | {other}")
}

/// Concurrent calls: how many get their own response.
async fn at_once(number: usize, session: Arc<Session>) -> String {
    let mut calls = JoinSet::new();
    for name in (0..number).map(|it| format!("tool-{it}")) {
        let session = Arc::clone(&session);
        calls.spawn(async move { call(&session, &name, CallOptions::default()).await == name });
    }
    let own = calls.join_all().await.into_iter().filter(|is_own| *is_own).count();
    session.close(GRACE).await;
    format!("{own} of {number}")
}

/// Eight calls, one after another, each with eight progress notifications.
async fn in_order(session: Arc<Session>, log: ReceivedMessages) -> String {
    let names: Vec<String> = (0..8).map(|it| format!("tool-{it}")).collect();
    for name in &names {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&seen);
        let progress: OnProgress = Arc::new(move |it| note.lock().push(it.progress));
        let options = CallOptions { progress: Some(progress), ..CallOptions::default() };
        let response = call(&session, name, options).await;
        let seen = seen.lock().clone();
        if response != "hello" || seen != [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0] {
            return format!("{name}: {seen:?}, {response}");
        }
    }
    session.close(GRACE).await;
    if log.called() == names { "in order".to_owned() } else { format!("{:?}", log.called()) }
}

/// The number of announced list changes.
async fn changed(session: Arc<Session>) -> String {
    let mut changes = session.list_changes();
    let first = call(&session, "first", CallOptions::default()).await;
    let known = changes.wait_for(|it| it.tools == 2).await.map_or(0, |it| it.tools);
    session.close(GRACE).await;
    format!("{first}, {known} changes")
}

/// The tools of a list, and the invalid ones.
async fn listed(session: Arc<Session>) -> String {
    let listing = session.list_tools().await;
    session.close(GRACE).await;
    outcome(listing.map(|it| format!("{} kept, {} rejected", it.items.len(), it.rejected.len())))
}

/// A call with a large response, which is not polled while another call is made.
async fn beside(session: Arc<Session>, log: ReceivedMessages) -> String {
    let mut first = Box::pin(call(&session, "first", CallOptions::default()));
    tokio::select! {
        called = &mut first => return called,
        () = log.wait_for_call() => {}
    }
    let other = call(&session, "echo", CallOptions::default()).await;
    let first = first.await;
    session.close(GRACE).await;
    format!("{other} | {first}")
}

/// A call that is dropped after the server received it, then another call.
async fn dropped(session: Arc<Session>, log: ReceivedMessages) -> String {
    tokio::select! {
        called = call(&session, "first", CallOptions::default()) => return called,
        () = log.wait_for_call() => {}
    }
    let other = call(&session, "other", CallOptions::default()).await;
    session.close(GRACE).await;
    other
}

/// A call during which the server sends a ping with the same id.
async fn pinged(session: Arc<Session>, log: ReceivedMessages) -> String {
    let first = call(&session, "first", CallOptions::default()).await;
    let pong = log.wait_for(|message| message.get("result").is_some()).await;
    session.close(GRACE).await;
    format!("{first}, answered with {}", pong["result"])
}

/// Closes during a call, closes again, then makes a call and a list request.
async fn closed_twice(session: Arc<Session>, log: ReceivedMessages) -> String {
    let _ = session.list_tools().await;
    let closing = async {
        log.wait_for_call().await;
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

async fn call(session: &Session, name: &str, options: CallOptions) -> String {
    let response = session.call_tool(name, &RawJson::empty_object(), options).await;
    outcome(response.map(|it| it.value.text()))
}

fn outcome(outcome: Result<String, CallError>) -> String {
    match outcome {
        Ok(text) if text.len() > 100 => format!("{} bytes", text.len()),
        Ok(text) => text,
        Err(CallError::Closed(end)) => format!("closed: {}", reason(&end)),
        Err(CallError::NotSent(end)) => format!("not sent: {}", reason(&end)),
        Err(CallError::TimedOut(_)) => "timed out".to_owned(),
        Err(other) => format!("{other:?}"),
    }
}

fn reason(end: &Disconnect) -> String {
    match &end.reason {
        DisconnectReason::Stopped => "stopped".to_owned(),
        other => format!("{other:?}"),
    }
}

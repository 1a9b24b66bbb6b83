//! The table: the behaviour of a server, the use of the session, and the outcome.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_model::{Era, RawJson, code};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::script::{self, error, notice, tool_result, tool_result_for};
use super::{ResponseForm, Run, Script, ServerAction};
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::error::{CallError, ConnectError};
use crate::rpc::progress::OnProgress;
use crate::session::{CallOptions, Session};

const GRACE: Duration = Duration::from_secs(5);

/// The timeout of calls that get no response.
const SHORT_TIMEOUT: Duration = Duration::from_millis(300);

/// The time limit of a handshake that gets no response.
const SHORT_STARTUP: Duration = Duration::from_millis(500);

/// The time after which a part of a large message was sent, over a connection that takes longer for all of it.
const PARTLY_SENT: Duration = Duration::from_millis(40);

/// One behaviour.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) script: Script,
    pub(super) run: RunRow,
    pub(super) want: &'static str,
    /// The outcome if each request has a response of its own.
    pub(super) want_of_own: &'static str,
    /// Whether the server sends several messages in response to one.
    pub(super) is_stream: bool,
    /// The time limit of the handshake, if it is not the default.
    pub(super) startup: Option<Duration>,
}

type RunRow = fn(Run) -> Pin<Box<dyn Future<Output = String> + Send>>;

pub(super) fn rows() -> Vec<Row> {
    [well_behaved(), sizes(), ends(), nonsense()].into_iter().flatten().collect()
}

fn row(name: &'static str, script: Script, run: RunRow, want: &'static str) -> Row {
    Row { name, script, run, want, want_of_own: want, is_stream: false, startup: None }
}

/// A row in which the server sends several messages for one.
fn stream(name: &'static str, script: Script, run: RunRow, want: &'static str) -> Row {
    Row { is_stream: true, ..row(name, script, run, want) }
}

/// A row of two calls, the first of which gets no response.
fn unanswered(name: &'static str, action: fn(&Value) -> ServerAction, want_of_own: &'static str) -> Row {
    let script = script::server(move |message| match message["method"].as_str() {
        Some("tools/call") => vec![action(message)],
        _ => Vec::new(),
    });
    Row { want_of_own, ..row(name, script, |it| Box::pin(unanswered_then_other(it)), "timed out | hello") }
}

/// A row of two calls in the first of which the connection is lost.
fn lost(name: &'static str, handle: fn(&Value) -> Vec<ServerAction>) -> Row {
    let row =
        row(name, script::first(handle), |it| Box::pin(twice(it, None)), "closed: lost | not sent: lost");
    Row { want_of_own: "outcome unknown | hello", ..row }
}

fn well_behaved() -> Vec<Row> {
    vec![
        stream("order", script::first_after(progress), |it| Box::pin(in_order(it)), "in order"),
        row("3 calls at once", script::reversed(3), |it| Box::pin(at_once(3, it)), "3 of 3"),
        row("64 calls at once", script::reversed(64), |it| Box::pin(at_once(64, it)), "64 of 64"),
        stream(
            "list_changed before a response",
            script::first_after(|_| vec![notice("notifications/tools/list_changed", &json!({})); 2]),
            |it| Box::pin(changed(it)),
            "hello, 2 changes",
        ),
        row(
            "one tool without an object inputSchema",
            script::first(|_| Vec::new()),
            |it| Box::pin(listed(it)),
            "1 kept, 1 rejected",
        ),
    ]
}

fn sizes() -> Vec<Row> {
    vec![
        row(
            "a small response behind a large one that is not read",
            script::large_then_small(4 << 20),
            |it| Box::pin(beside(it)),
            "hello | 4194304 bytes",
        ),
        row(
            "a message of 10 MiB",
            script::first(|message| vec![ServerAction::Send(tool_result(message, &"x".repeat(10 << 20)))]),
            |it| Box::pin(twice(it, None)),
            "10485760 bytes | hello",
        ),
        row("a call of 4 MiB", script::first_after(|_| Vec::new()), |it| Box::pin(large(it)), TWO),
        row(
            "a call that is dropped while it is sent",
            script::first(|_| vec![ServerAction::KeepOpen]),
            |it| Box::pin(dropped_while_sent(it)),
            "hello",
        ),
        row(
            "a call that is dropped in the middle of its response",
            script::in_two(),
            |it| Box::pin(dropped(it)),
            "hello",
        ),
    ]
}

fn ends() -> Vec<Row> {
    let half = |message: &Value| {
        vec![ServerAction::SendFirstHalf(tool_result(message, "hello")), ServerAction::Disconnect]
    };
    vec![
        lost("half a message, then the end", half),
        lost("a server that disconnects in a call", |_| vec![ServerAction::Disconnect]),
        Row {
            want_of_own: "no session: refused",
            ..row(
                "a server that disconnects in the handshake",
                script::opening(ServerAction::Disconnect),
                |it| Box::pin(twice(it, None)),
                "no session: lost",
            )
        },
        Row {
            startup: Some(SHORT_STARTUP),
            ..row(
                "a server that is silent in the handshake",
                script::opening(ServerAction::KeepOpen),
                |it| Box::pin(twice(it, None)),
                "no session: timed out",
            )
        },
        row(
            "a server that is silent in a call",
            script::first(|_| vec![ServerAction::KeepOpen]),
            |it| Box::pin(twice(it, Some(SHORT_TIMEOUT))),
            "timed out | hello",
        ),
        row(
            "close twice, and call after it",
            script::first(|_| vec![ServerAction::KeepOpen]),
            |it| Box::pin(closed_twice(it)),
            "closed: stopped | stopped, stopped, stopped | not sent: stopped, not sent: stopped",
        ),
    ]
}

fn nonsense() -> Vec<Row> {
    let two: RunRow = |it| Box::pin(twice(it, None));
    vec![
        stream("noise before the response", script::first_after(noise), two, TWO),
        unanswered(
            "noise in place of the response",
            |_| ServerAction::Send("Segmentation fault".to_owned()),
            "outcome unknown | hello",
        ),
        stream("responses with a wrong id, then one", script::first_after(wrong_ids), two, TWO),
        unanswered(
            "a response with a wrong id",
            |_| ServerAction::Send(tool_result_for(&json!(999_999), "wrong")),
            "outcome unknown | hello",
        ),
        unanswered(
            "a result without an id",
            |_| ServerAction::Send(tool_result_for(&Value::Null, "unknown")),
            "outcome unknown | hello",
        ),
        unanswered(
            "an error without an id",
            |_| ServerAction::Send(error(&Value::Null, &json!(code::INVALID_REQUEST))),
            "invalid request | hello",
        ),
        row(
            "an error whose code is no integer",
            script::first(|message| vec![ServerAction::Send(error(&message["id"], &json!("E_NO")))]),
            two,
            "internal error | hello",
        ),
        stream(
            "two responses to one call",
            script::first(|message| {
                ["one", "two"].map(|text| ServerAction::Send(tool_result(message, text))).to_vec()
            }),
            two,
            "one | hello",
        ),
        stream(
            "a ping with the number of one of our calls",
            script::first_after(|message| {
                vec![json!({"jsonrpc": "2.0", "id": message["id"], "method": "ping"}).to_string()]
            }),
            |it| Box::pin(pinged(it)),
            "hello, answered with {}",
        ),
        row("a result that holds an id", script::first(nested), two, TWO),
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
async fn twice(run: Run, timeout: Option<Duration>) -> String {
    let options = CallOptions { timeout, ..CallOptions::default() };
    let first = call(&run.session, "first", options).await;
    first_then_other(run, first).await
}

/// The same when the first call gets no response. It times out, unless the end of its own response ends it.
async fn unanswered_then_other(run: Run) -> String {
    let timeout = (run.form == ResponseForm::Shared).then_some(SHORT_TIMEOUT);
    twice(run, timeout).await
}

/// The same when the first call is large.
async fn large(run: Run) -> String {
    let first = large_call(&run.session, 4 << 20).await;
    first_then_other(run, first).await
}

async fn first_then_other(run: Run, first: String) -> String {
    format!("{first} | {}", other(run).await)
}

/// The last call of a session.
async fn other(run: Run) -> String {
    let res = call(&run.session, "other", CallOptions::default()).await;
    run.session.close(GRACE).await;
    res
}

/// Concurrent calls: how many get their own response.
async fn at_once(number: usize, run: Run) -> String {
    let mut calls = JoinSet::new();
    for name in (0..number).map(|it| format!("tool-{it}")) {
        let session = Arc::clone(&run.session);
        calls.spawn(async move { call(&session, &name, CallOptions::default()).await == name });
    }
    let own = calls.join_all().await.into_iter().filter(|is_own| *is_own).count();
    run.session.close(GRACE).await;
    format!("{own} of {number}")
}

/// Eight calls, one after another, each with eight progress notifications.
async fn in_order(run: Run) -> String {
    let names: Vec<String> = (0..8).map(|it| format!("tool-{it}")).collect();
    for name in &names {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&seen);
        let progress: OnProgress = Arc::new(move |it| note.lock().push(it.progress));
        let options = CallOptions { progress: Some(progress), ..CallOptions::default() };
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

/// The number of announced list changes.
async fn changed(run: Run) -> String {
    let mut changes = run.session.list_changes();
    let first = call(&run.session, "first", CallOptions::default()).await;
    let known = changes.wait_for(|it| it.tools == 2).await.map_or(0, |it| it.tools);
    run.session.close(GRACE).await;
    format!("{first}, {known} changes")
}

/// The tools of a list, and the invalid ones.
async fn listed(run: Run) -> String {
    let listing = run.session.list_tools().await;
    run.session.close(GRACE).await;
    outcome(listing.map(|it| format!("{} kept, {} rejected", it.items.len(), it.rejected.len())))
}

/// A call with a large response, which is not polled while another call is made.
async fn beside(run: Run) -> String {
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

/// A large call that is dropped when a part of it may have been sent, then another call.
async fn dropped_while_sent(run: Run) -> String {
    tokio::select! {
        called = large_call(&run.session, 12 << 20) => return called,
        () = tokio::time::sleep(PARTLY_SENT) => {}
    }
    other(run).await
}

/// A call that is dropped when half of its response may have arrived. The server is notified, except where it is enough to
/// close the call's own response. Then another call.
async fn dropped(run: Run) -> String {
    tokio::select! {
        called = call(&run.session, "first", CallOptions::default()) => return called,
        () = run.received.wait_for_method("tools/call") => {}
    }
    if run.form == ResponseForm::Shared || run.era == Era::Legacy {
        run.received.wait_for_method("notifications/cancelled").await;
    }
    other(run).await
}

/// A call during which the server sends a ping with the same id.
async fn pinged(run: Run) -> String {
    let first = call(&run.session, "first", CallOptions::default()).await;
    let pong = run.received.wait_for(|message| message.get("result").is_some()).await;
    run.session.close(GRACE).await;
    format!("{first}, answered with {}", pong["result"])
}

/// Closes during a call, closes again, then makes a call and a list request.
async fn closed_twice(run: Run) -> String {
    let session = run.session;
    let _ = session.list_tools().await;
    let closing = async {
        run.received.wait_for_method("tools/call").await;
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

/// A call of `first` with arguments of this size.
async fn large_call(session: &Session, bytes: usize) -> String {
    let arguments = RawJson::from_value(&json!({"text": "x".repeat(bytes)})).expect("it is an object");
    call_with(session, "first", &arguments, CallOptions::default()).await
}

async fn call(session: &Session, name: &str, options: CallOptions) -> String {
    call_with(session, name, &RawJson::empty_object(), options).await
}

async fn call_with(session: &Session, name: &str, arguments: &RawJson, options: CallOptions) -> String {
    outcome(session.call_tool(name, arguments, options).await.map(|it| it.value.text()))
}

fn outcome(outcome: Result<String, CallError>) -> String {
    match outcome {
        Ok(text) if text.len() > 100 => format!("{} bytes", text.len()),
        Ok(text) => text,
        Err(CallError::Closed(end)) => format!("closed: {}", reason(&end)),
        Err(CallError::NotSent(end)) => format!("not sent: {}", reason(&end)),
        Err(CallError::TimedOut(_)) => "timed out".to_owned(),
        Err(CallError::Rpc(error)) if error.code == code::INVALID_REQUEST => "invalid request".to_owned(),
        Err(CallError::Rpc(error)) if error.code == code::INTERNAL_ERROR => "internal error".to_owned(),
        Err(CallError::OutcomeUnknown(_)) => "outcome unknown".to_owned(),
        Err(other) => format!("{other:?}"),
    }
}

/// The outcome of a handshake that fails.
pub(super) fn connect_outcome(error: &ConnectError) -> String {
    match error {
        ConnectError::Disconnected(end) => format!("no session: {}", reason(end)),
        ConnectError::TimedOut { .. } | ConnectError::Silent { .. } => "no session: timed out".to_owned(),
        ConnectError::Refused(_) => "no session: refused".to_owned(),
        other => format!("no session: {other:?}"),
    }
}

fn reason(end: &Disconnect) -> String {
    match &end.reason {
        DisconnectReason::Stopped => "stopped".to_owned(),
        DisconnectReason::PeerClosed | DisconnectReason::Broken(_) => "lost".to_owned(),
        other => format!("{other:?}"),
    }
}

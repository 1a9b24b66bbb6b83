//! The rows of the conformance check: the script of a server, what is done with the session or transport, and the
//! expected outcome.

use std::pin::Pin;
use std::time::Duration;

use mcp_host_model::{Limits, code};
use serde_json::{Value, json};

use super::action::{Script, ServerAction};
use super::link_rows::{self, LinkRun};
use super::run::{ResponseForm, SessionRun};
use super::script::{self, error_response, notification, respond, tool_response, tool_response_for};
use super::session_rows::{self, ARGUMENTS_WITH_LINE_BREAKS, NOISE, SHORT_TIMEOUT, call_twice};

/// The time limit of a handshake that gets no response.
const SHORT_STARTUP: Duration = Duration::from_millis(500);

/// The maximum size of a message in the rows about it.
const SMALL_LIMIT: usize = 100_000;
const TEXT_BELOW_LIMIT: usize = 90_000;
const TEXT_ABOVE_LIMIT: usize = 200_000;

/// A row of the conformance check.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) script: Script,
    pub(super) run: RowRun,
    /// The expected outcome on a shared stream.
    pub(super) want: &'static str,
    /// The expected outcome if each request has a response of its own.
    pub(super) want_own: &'static str,
    forms: RowForms,
    pub(super) limits: Limits,
}

/// The response forms that a row applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowForms {
    All,
    /// Those in which a server can send several messages in response to one.
    SeveralMessages,
}

/// The function of a row: it returns the outcome.
pub(super) enum RowRun {
    /// A session, in each era.
    Session(RunFunction<SessionRun>),
    /// A transport without a session, once.
    Link(RunFunction<LinkRun>),
}

type RunFunction<R> = Box<dyn Fn(R) -> Pin<Box<dyn Future<Output = String> + Send>> + Send + Sync>;

fn run_function<R, F: Future<Output = String> + Send + 'static>(
    run: impl Fn(R) -> F + Send + Sync + 'static,
) -> RunFunction<R> {
    Box::new(move |input| Box::pin(run(input)))
}

impl Row {
    pub(super) fn has_session(&self) -> bool {
        matches!(self.run, RowRun::Session(_))
    }

    pub(super) fn applies_to(&self, form: ResponseForm) -> bool {
        match self.forms {
            RowForms::All => true,
            RowForms::SeveralMessages => form != ResponseForm::Document,
        }
    }

    pub(super) fn want(&self, form: ResponseForm) -> &'static str {
        if form == ResponseForm::Shared { self.want } else { self.want_own }
    }
}

pub(super) fn rows() -> Vec<Row> {
    [well_behaved_rows(), size_rows(), limit_rows(), end_rows(), invalid_message_rows(), transport_rows()]
        .into_iter()
        .flatten()
        .collect()
}

fn row<F: Future<Output = String> + Send + 'static>(
    name: &'static str,
    script: Script,
    run: impl Fn(SessionRun) -> F + Send + Sync + 'static,
    want: &'static str,
) -> Row {
    let run = RowRun::Session(run_function(run));
    Row { name, script, run, want, want_own: want, forms: RowForms::All, limits: Limits::default() }
}

/// A row in which the server sends several messages for one.
fn stream_row<F: Future<Output = String> + Send + 'static>(
    name: &'static str,
    script: Script,
    run: impl Fn(SessionRun) -> F + Send + Sync + 'static,
    want: &'static str,
) -> Row {
    Row { forms: RowForms::SeveralMessages, ..row(name, script, run, want) }
}

/// A row that runs the transport without a session.
fn link_row<F: Future<Output = String> + Send + 'static>(
    name: &'static str,
    run: impl Fn(LinkRun) -> F + Send + Sync + 'static,
    want: &'static str,
) -> Row {
    let script = script::server(|_| Vec::new());
    let run = RowRun::Link(run_function(run));
    Row { name, script, run, want, want_own: want, forms: RowForms::All, limits: Limits::default() }
}

/// A row of two calls, the first of which gets no response.
fn unanswered_row(name: &'static str, action: fn(&Value) -> ServerAction, want_own: &'static str) -> Row {
    let script = script::server(move |message| match message["method"].as_str() {
        Some("tools/call") => vec![action(message)],
        _ => Vec::new(),
    });
    Row { want_own, ..row(name, script, session_rows::call_unanswered, "timed out | hello") }
}

/// A row of two calls in the first of which the connection is lost.
fn lost_row(name: &'static str, handle: fn(&Value) -> Vec<ServerAction>) -> Row {
    let row = row(name, script::on_call(handle), |it| call_twice(it, None), "closed: lost | not sent: lost");
    Row { want_own: "outcome unknown | hello", ..row }
}

fn well_behaved_rows() -> Vec<Row> {
    vec![
        stream_row("order", script::after_texts(progress), session_rows::call_in_order, "in order"),
        row("3 calls at once", script::in_reverse(3), |it| session_rows::call_all(3, it), "3 of 3"),
        row("64 calls at once", script::in_reverse(64), |it| session_rows::call_all(64, it), "64 of 64"),
        stream_row(
            "list_changed before a response",
            script::after_texts(|_| vec![notification("notifications/tools/list_changed", &json!({})); 2]),
            session_rows::count_list_changes,
            "hello, 2 changes",
        ),
        row(
            "line breaks in the arguments of a call",
            script::on_call(check_arguments),
            session_rows::call_with_line_breaks,
            "whole | whole",
        ),
        row(
            "a second session over the same dial",
            script::on_call(|_| Vec::new()),
            session_rows::connect_again,
            TWO_HELLO,
        ),
        row(
            "one tool without an object inputSchema",
            script::on_call(|_| Vec::new()),
            session_rows::list_tools,
            "1 kept, 1 rejected",
        ),
    ]
}

fn size_rows() -> Vec<Row> {
    vec![
        row(
            "a small response behind a large one that is not read",
            script::large_then_small(4 << 20),
            session_rows::call_beside_unread,
            "hello | 4194304 bytes",
        ),
        row(
            "a message of 10 MiB",
            script::on_call(|message| respond(message, &"x".repeat(10 << 20))),
            |it| call_twice(it, None),
            "10485760 bytes | hello",
        ),
        row("a call of 4 MiB", script::after_texts(|_| Vec::new()), session_rows::call_large, TWO_HELLO),
        row(
            "a call that is dropped while it is sent",
            script::on_call(|_| vec![ServerAction::KeepOpen]),
            session_rows::drop_while_sent,
            "hello",
        ),
        row(
            "a call that is dropped in the middle of its response",
            script::split_response(),
            session_rows::drop_in_response,
            "hello",
        ),
    ]
}

/// Rows about the maximum size of a message.
fn limit_rows() -> Vec<Row> {
    let small = |row| Row { limits: limits_with(|limits| limits.message_bytes = SMALL_LIMIT), ..row };
    let text_of = |size: usize| script::on_call(move |message| respond(message, &"x".repeat(size)));
    let two = |it| call_twice(it, None);
    let above = row(
        "a message above the size limit",
        text_of(TEXT_ABOVE_LIMIT),
        session_rows::call_over_the_limit,
        "refused",
    );
    let below = row("a message below the size limit", text_of(TEXT_BELOW_LIMIT), two, "90000 bytes | hello");
    [below, above].map(small).into()
}

fn limits_with(change: impl Fn(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

fn end_rows() -> Vec<Row> {
    let half = |message: &Value| {
        vec![ServerAction::SendFirstHalf(tool_response(message, "hello")), ServerAction::Disconnect]
    };
    vec![
        lost_row("half a message, then the end", half),
        // The first half is the JSON of a message, without what ends a message on the transport.
        lost_row("a message without its end, then the end", |message| {
            let text = tool_response(message, "unended");
            let padded = format!("{text:width$}", width = 2 * text.len() + 2 * MAX_FRAMING_BYTES);
            vec![ServerAction::SendFirstHalf(padded), ServerAction::Disconnect]
        }),
        lost_row("a server that disconnects in a call", |_| vec![ServerAction::Disconnect]),
        Row {
            want_own: "no session: refused",
            ..row(
                "a server that disconnects in the handshake",
                script::on_handshake(ServerAction::Disconnect),
                |it| call_twice(it, None),
                "no session: lost",
            )
        },
        Row {
            limits: limits_with(|limits| limits.startup = SHORT_STARTUP),
            ..row(
                "a server that is silent in the handshake",
                script::on_handshake(ServerAction::KeepOpen),
                |it| call_twice(it, None),
                "no session: timed out",
            )
        },
        row(
            "a server that is silent in a call",
            script::on_call(|_| vec![ServerAction::KeepOpen]),
            |it| call_twice(it, Some(SHORT_TIMEOUT)),
            "timed out | hello",
        ),
        row(
            "close twice, and call after it",
            script::on_call(|_| vec![ServerAction::KeepOpen]),
            session_rows::close_twice,
            "closed: stopped | stopped, stopped, stopped | not sent: stopped, not sent: stopped",
        ),
    ]
}

fn invalid_message_rows() -> Vec<Row> {
    let two = |it| call_twice(it, None);
    vec![
        stream_row(
            "noise, which is counted",
            script::after_texts(|_| NOISE.map(Into::into).to_vec()),
            session_rows::call_with_noise,
            "hello, counted | hello",
        ),
        stream_row("noise before the response", script::after_texts(noise_texts), two, TWO_HELLO),
        unanswered_row(
            "noise in place of the response",
            |_| ServerAction::Send("Segmentation fault".to_owned()),
            "outcome unknown | hello",
        ),
        stream_row(
            "responses with a wrong id, then one",
            script::after_texts(responses_with_wrong_ids),
            two,
            TWO_HELLO,
        ),
        unanswered_row(
            "a response with a wrong id",
            |_| ServerAction::Send(tool_response_for(&json!(999_999), "wrong")),
            "outcome unknown | hello",
        ),
        unanswered_row(
            "a result without an id",
            |_| ServerAction::Send(tool_response_for(&Value::Null, "unknown")),
            "outcome unknown | hello",
        ),
        unanswered_row(
            "an error without an id",
            |_| ServerAction::Send(error_response(&Value::Null, &json!(code::INVALID_REQUEST))),
            "invalid request | hello",
        ),
        row(
            "an error whose code is no integer",
            script::on_call(|message| {
                vec![ServerAction::Send(error_response(&message["id"], &json!("E_NO")))]
            }),
            two,
            "internal error | hello",
        ),
        stream_row(
            "two responses to one call",
            script::on_call(|message| {
                ["one", "two"].map(|text| ServerAction::Send(tool_response(message, text))).to_vec()
            }),
            two,
            "one | hello",
        ),
        stream_row(
            "a ping with the number of one of our calls",
            script::after_texts(|message| {
                vec![json!({"jsonrpc": "2.0", "id": message["id"], "method": "ping"}).to_string()]
            }),
            session_rows::call_during_ping,
            "hello, answered with {}",
        ),
        row("a result that holds an id", script::on_call(nested_ids), two, TWO_HELLO),
    ]
}

fn transport_rows() -> Vec<Row> {
    vec![
        link_row("the end of the queue", link_rows::end_queue, "it returned"),
        link_row("a shutdown", link_rows::shut_down, "it returned: stopped"),
        link_row("`run` is dropped at once", link_rows::drop_at_once, NOTHING_LEFT),
        link_row("`run` is dropped while it waits", link_rows::drop_while_idle, NOTHING_LEFT),
        link_row("`run` is dropped while it sends 12 MiB", link_rows::drop_while_sending, NOTHING_LEFT),
    ]
}

/// The outcome of a dropped future.
const NOTHING_LEFT: &str = "nothing is left";

/// The maximum size of what a transport writes before a message.
const MAX_FRAMING_BYTES: usize = 64;

/// Responds with whether the arguments of a call arrived whole.
fn check_arguments(message: &Value) -> Vec<ServerAction> {
    let want: Value = serde_json::from_str(ARGUMENTS_WITH_LINE_BREAKS).unwrap_or_default();
    let arguments = &message["params"]["arguments"];
    let is_long = arguments["list"][0].as_str().is_some_and(|it| it.len() == session_rows::LONG_TEXT_BYTES);
    let is_whole = arguments["text"] == want["text"] && (arguments["list"] == want["list"] || is_long);
    respond(message, if is_whole { "whole" } else { "changed" })
}

/// The outcome of two calls with the response `hello`.
const TWO_HELLO: &str = "hello | hello";

fn progress(message: &Value) -> Vec<String> {
    let token = &message["params"]["_meta"]["progressToken"];
    let params = |it: i32| json!({"progressToken": token, "progress": it});
    (1..=8).map(|it| notification("notifications/progress", &params(it))).collect()
}

fn noise_texts(_: &Value) -> Vec<String> {
    ["npm notice", "{\"level\":30}", "{{{", "[1,2]", "null", "{\"jsonrpc\":\"2.0\"}", "\"", "{\"id\":{}}"]
        .map(Into::into)
        .to_vec()
}

fn responses_with_wrong_ids(_: &Value) -> Vec<String> {
    [json!(999_999), json!(-1), json!("1"), json!(1.5), json!({}), Value::Null]
        .map(|id| tool_response_for(&id, "wrong"))
        .to_vec()
}

fn nested_ids(message: &Value) -> Vec<ServerAction> {
    let content = json!([{"type": "text", "text": "hello", "id": 77}]);
    let result = json!({"id": 99, "content": content, "_meta": {"id": 98}});
    vec![ServerAction::Send(json!({"result": result, "id": message["id"]}).to_string())]
}

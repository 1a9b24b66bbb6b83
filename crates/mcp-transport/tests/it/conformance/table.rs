//! The table: behavior of the peer, action of the test, result on each transport.

use std::time::Duration;

use mcp_model::Limits;
use serde_json::{Value, json};

use super::drive::{self, Drive};
use super::framing::LineEnding;
use super::peers::{Action, PLAIN, Script, TransportKind, Variant, WriteStyle};
use super::relay::RelaySpeed;
use super::script::{self, error, notice, tool_result, tool_result_for};

/// One behaviour.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) style: WriteStyle,
    pub(super) limits: Limits,
    pub(super) script: Script,
    pub(super) drive: Drive,
    /// The number of messages that the peer sends. Several do not fit in a response that is one document.
    says: Says,
    want: Want,
}

/// The number of messages that the peer sends in response to one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    One,
    Several,
}

/// The expected result.
enum Want {
    /// The same on every transport.
    Same(&'static str),
    /// A result for each transport, where there is a reason for a difference.
    Each { stdio: &'static str, sse: &'static str, websocket: &'static str, http: &'static str },
}

impl Row {
    /// Whether the row can be run there.
    pub(super) fn is_for(&self, variant: Variant) -> bool {
        variant.transport != TransportKind::HttpJson || self.says == Says::One
    }

    pub(super) fn want(&self, variant: Variant) -> &'static str {
        match self.want {
            Want::Same(want) => want,
            Want::Each { stdio, sse, websocket, http } => match variant.transport {
                TransportKind::Stdio => stdio,
                TransportKind::Sse => sse,
                TransportKind::WebSocket => websocket,
                TransportKind::Http | TransportKind::HttpJson => http,
            },
        }
    }
}

fn row(name: &'static str, script: Script, drive: Drive, want: Want) -> Row {
    Row { name, style: PLAIN, limits: Limits::default(), script, drive, says: Says::One, want }
}

/// A row in which the peer sends several messages for one message.
fn several(name: &'static str, script: Script, drive: Drive, want: Want) -> Row {
    Row { says: Says::Several, ..row(name, script, drive, want) }
}

/// All behaviours. The transports differ for one reason: over HTTP, each request has its own response. A failure
/// of this response ends only its request, its messages can only belong to its request, and its end shows that no
/// response will follow. On the other transports all requests share one stream: a failure of the stream ends all
/// of them, and a missing response is waited for. A line or event that is too long is discarded as it arrives. A
/// WebSocket message that is too large ends the connection with close code 1009, which tells the server the
/// reason.
pub(super) fn rows() -> Vec<Row> {
    [well_behaved(), sizes_and_paces(), ends(), nonsense(), closing()].into_iter().flatten().collect()
}

fn well_behaved() -> Vec<Row> {
    let progress = |message: &Value| {
        let token = &message["params"]["_meta"]["progressToken"];
        (1..=8)
            .map(|it| notice("notifications/progress", &json!({"progressToken": token, "progress": it})))
            .collect()
    };
    let changed = |_: &Value| vec![notice("notifications/tools/list_changed", &json!({})); 2];
    vec![
        several("order", script::first_after(progress), drive::in_order, Want::Same("in order")),
        row("concurrency", script::reversed(3), drive::three, Want::Same("3 of 3")),
        row("64 calls at once", script::reversed(64), drive::sixty_four, Want::Same("64 of 64")),
        several(
            "list_changed before a response",
            script::first_after(changed),
            drive::changed,
            Want::Same("hello, 2 changes"),
        ),
        Row {
            style: WriteStyle { begin: "\u{feff}", ..PLAIN },
            ..row(
                "a byte order mark",
                script::first_after(|_| vec![]),
                drive::twice,
                Want::Same("hello | hello"),
            )
        },
        Row {
            style: WriteStyle { line_ending: LineEnding::CrLf, ..PLAIN },
            ..row("CRLF", script::first_after(|_| vec![]), drive::twice, Want::Same("hello | hello"))
        },
        row(
            "one tool without an object inputSchema",
            script::first(|_| vec![]),
            drive::listed,
            Want::Same("1 kept, 1 rejected"),
        ),
    ]
}

fn sizes_and_paces() -> Vec<Row> {
    let slow = WriteStyle { speed: RelaySpeed::Slow, ..PLAIN };
    let sends = |size: usize| {
        script::server(move |message| match message["method"].as_str() {
            Some("tools/call") => vec![Action::Send(tool_result(message, &"x".repeat(size)))],
            _ => vec![],
        })
    };
    vec![
        row(
            "a small answer behind a large one that is not read",
            script::large_then_small(4 << 20),
            drive::beside,
            Want::Same("hello | 4194304 bytes"),
        ),
        row("a message of 10 MiB", sends(10 << 20), drive::twice, Want::Same("10485760 bytes | hello")),
        Row {
            limits: {
                let mut limits = Limits::default();
                limits.message_bytes = 100_000;
                limits
            },
            ..row(
                "a message over the limit",
                sends(200_000),
                drive::twice,
                Want::Each {
                    stdio: "too large | hello",
                    sse: "too large | hello",
                    websocket: "closed: broken | not sent: broken",
                    http: "too large | hello",
                },
            )
        },
        Row {
            style: slow,
            ..row(
                "a slow reader",
                script::first_after(|_| vec![]),
                drive::large_call,
                Want::Same("hello | hello"),
            )
        },
        Row {
            style: slow,
            ..row(
                "a call given up while it is being sent",
                script::first(|_| vec![]),
                drive::given_up_going_out,
                Want::Same("hello"),
            )
        },
        row(
            "a call given up in the middle of its answer",
            script::in_two(),
            drive::given_up_coming_in,
            Want::Same("hello"),
        ),
    ]
}

fn ends() -> Vec<Row> {
    let half =
        |message: &Value| vec![Action::SendFirstHalf(tool_result(message, "hello")), Action::Disconnect];
    let soon = || {
        let mut limits = Limits::default();
        limits.startup = Duration::from_millis(500);
        limits
    };
    vec![
        row(
            "half a message, then the end",
            script::first(half),
            drive::twice,
            Want::Each {
                stdio: "closed: peer closed | not sent: peer closed",
                sse: "closed: broken | not sent: broken",
                websocket: "closed: peer closed | not sent: peer closed",
                http: "outcome unknown | hello",
            },
        ),
        row(
            "the peer dies before the handshake",
            script::first(|_| vec![]),
            drive::without_peer,
            Want::Each {
                stdio: "no session: peer closed",
                sse: "no session: refused",
                websocket: "no session: refused",
                http: "no session: refused",
            },
        ),
        row(
            "the peer dies in the handshake",
            script::opening(vec![Action::Disconnect]),
            drive::twice,
            Want::Each {
                stdio: "no session: peer closed",
                sse: "no session: broken",
                websocket: "no session: peer closed",
                http: "no session: refused",
            },
        ),
        row(
            "the peer dies after the handshake",
            script::first(|_| vec![]),
            drive::widowed,
            Want::Each {
                stdio: "not sent: peer closed",
                sse: "not sent: broken",
                websocket: "not sent: peer closed",
                http: "refused",
            },
        ),
        row(
            "the peer dies in a call",
            script::first(|_| vec![Action::Disconnect]),
            drive::twice,
            Want::Each {
                stdio: "closed: peer closed | not sent: peer closed",
                sse: "closed: broken | not sent: broken",
                websocket: "closed: peer closed | not sent: peer closed",
                http: "outcome unknown | hello",
            },
        ),
        Row {
            limits: soon(),
            ..row(
                "a peer that is silent in the handshake",
                script::opening(vec![]),
                drive::twice,
                Want::Same("no session: timed out"),
            )
        },
        row(
            "a peer that is silent in a call",
            script::first(|_| vec![]),
            drive::impatient,
            Want::Same("timed out | hello"),
        ),
    ]
}

fn nonsense() -> Vec<Row> {
    let garbage = |_: &Value| {
        ["npm notice", "{\"level\":30}", "{{{", "[1,2]", "null", "{\"jsonrpc\":\"2.0\"}", "\"", "{\"id\":{}}"]
            .map(Into::into)
            .to_vec()
    };
    let wrong = |_: &Value| {
        [json!(999_999), json!(-1), json!("1"), json!(1.5), json!({})]
            .map(|id| tool_result_for(&id, "wrong"))
            .to_vec()
    };
    let nested = |message: &Value| {
        let content = json!([{"type": "text", "text": "hello", "id": 77}]);
        vec![Action::Send(
            json!({"result": {"id": 99, "content": content, "_meta": {"id": 98}}, "id": message["id"]})
                .to_string(),
        )]
    };
    vec![
        several(
            "garbage before the answer",
            script::first_after(garbage),
            drive::twice,
            Want::Same("hello | hello"),
        ),
        row(
            "garbage in place of the answer",
            script::first(|_| vec![Action::Send("Segmentation fault".to_owned())]),
            drive::unanswered,
            Want::Each {
                stdio: "timed out | hello",
                sse: "timed out | hello",
                websocket: "timed out | hello",
                http: "outcome unknown | hello",
            },
        ),
        several(
            "answers with a wrong id, then one",
            script::first_after(wrong),
            drive::twice,
            Want::Same("hello | hello"),
        ),
        row(
            "an answer with a wrong id",
            script::first(|_| vec![Action::Send(tool_result_for(&json!(999_999), "wrong"))]),
            drive::unanswered,
            Want::Each {
                stdio: "timed out | hello",
                sse: "timed out | hello",
                websocket: "timed out | hello",
                http: "outcome unknown | hello",
            },
        ),
        several(
            "a result without an id, then one",
            script::first_after(|_| vec![tool_result_for(&Value::Null, "unknown")]),
            drive::twice,
            Want::Same("hello | hello"),
        ),
        row(
            "a result without an id",
            script::first(|_| vec![Action::Send(tool_result_for(&Value::Null, "unknown"))]),
            drive::unanswered,
            Want::Each {
                stdio: "timed out | hello",
                sse: "timed out | hello",
                websocket: "timed out | hello",
                http: "outcome unknown | hello",
            },
        ),
        several(
            "two answers to one call",
            script::first(|message| {
                ["one", "two"].map(|text| Action::Send(tool_result(message, text))).to_vec()
            }),
            drive::twice,
            Want::Same("one | hello"),
        ),
        row(
            "an error without an id",
            script::first(|_| vec![Action::Send(error(&Value::Null, &json!(-32600)))]),
            drive::unanswered,
            Want::Each {
                stdio: "timed out | hello",
                sse: "timed out | hello",
                websocket: "timed out | hello",
                http: "error -32600 | hello",
            },
        ),
        row(
            "an error whose code is no integer",
            script::first(|message| vec![Action::Send(error(&message["id"], &json!("E_NO")))]),
            drive::twice,
            Want::Same("error -32603 | hello"),
        ),
        several(
            "a ping with the number of one of our calls",
            script::first_after(|message| {
                vec![json!({"jsonrpc": "2.0", "id": message["id"], "method": "ping"}).to_string()]
            }),
            drive::pinged,
            Want::Same("hello, answered with {}"),
        ),
        row("a result that holds an id", script::first(nested), drive::twice, Want::Same("hello | hello")),
    ]
}

fn closing() -> Vec<Row> {
    vec![row(
        "close twice, and call after it",
        script::first(|_| vec![]),
        drive::closed_twice,
        Want::Same("closed: stopped | stopped, stopped, stopped | not sent: stopped, not sent: stopped"),
    )]
}

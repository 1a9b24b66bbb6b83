//! The ledger, played by hand: what it does about each message, in words.

use super::*;

const OPENING: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const OPENED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn describe(actions: Vec<Action>) -> String {
    let word = |act: Action| match act {
        Action::Send(Outbound::Send(OutboundMessage { epoch, head, body: _ })) => {
            let id = head.id.map_or_else(String::new, |it| format!("#{}", it & !FIRST_OWN_ID));
            let version = head.version.map_or("-", ProtocolVersion::as_str);
            format!("{}{id}@{} {version}", head.method, epoch.0)
        }
        Action::Send(Outbound::Cancel { id, notice }) => format!("abandon #{id} {}", notice.is_some()),
        Action::Frame(frame) => format!("frame {}", String::from_utf8_lossy(&frame)),
        Action::Fail(id, error) => format!("fail #{id} {}", error.message),
    };
    actions.into_iter().map(word).collect::<Vec<_>>().join("; ")
}

fn lost(why: &str) -> StreamError {
    StreamError::Lost(RequestError { status: None, message: why.to_owned(), error: None })
}

/// A ledger whose session is open, with calls 1 and 2 on their way.
fn open() -> RequestTracker {
    let mut ledger = RequestTracker::default();
    ledger.send(OPENING.into()).unwrap();
    let answer = r#"{"result":{"protocolVersion":"2025-06-18"},"jsonrpc":"2.0","id":0}"#;
    assert_eq!(describe(ledger.handle_frame(StreamId::Request(0, Epoch(0)), answer.into())), format!("frame {answer}"));
    assert_eq!(describe(ledger.send(OPENED.into()).unwrap()), "notifications/initialized@0 2025-06-18");
    for id in [1, 2] {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#);
        assert_eq!(describe(ledger.send(call.into()).unwrap()), format!("tools/call#{id}@0 2025-06-18"));
    }
    ledger
}

#[test]
fn an_answer_is_handed_on_once_and_a_strange_one_never() {
    let mut ledger = open();
    let frame = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(describe(ledger.handle_frame(StreamId::Shared, frame.into())), format!("frame {frame}"));
    for strange in [frame, r#"{"id":9,"result":{}}"#, r#"{"id":null,"error":{}}"#, "[[{}]]", "garbage"] {
        assert_eq!(describe(ledger.handle_frame(StreamId::Shared, strange.to_owned().into())), "");
    }
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    assert_eq!(describe(ledger.handle_frame(StreamId::Shared, ping.into())), format!("frame {ping}"));
    let refused = r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#;
    assert_eq!(describe(ledger.handle_frame(StreamId::Request(2, Epoch(0)), refused.into())), "fail #2 no");
}

#[test]
fn a_cancelled_request_is_abandoned_and_its_end_is_nobodys() {
    let mut ledger = open();
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(describe(ledger.send(cancel.into()).unwrap()), "abandon #1 true");
    assert_eq!(describe(ledger.stream_failed(1, lost("gone"))), "");
}

#[test]
fn a_lost_answer_is_an_unknown_outcome_and_a_refusal_is_the_servers_word() {
    let mut ledger = open();
    let want = "fail #1 the answer was lost, and it is not known whether the request ran: reset";
    assert_eq!(describe(ledger.stream_failed(1, lost("reset"))), want);
    let error = Some(RpcError::new(-5, "bad"));
    let refused = StreamError::Refused(RequestError { status: Some(400), message: "400".to_owned(), error });
    assert_eq!(describe(ledger.stream_failed(2, refused)), "fail #2 bad");
}

#[test]
fn a_forgotten_session_is_opened_once_for_all_and_held_calls_follow() {
    let mut ledger = open();
    let forgotten = || StreamError::NotExecuted(Epoch(0));
    assert_eq!(describe(ledger.stream_failed(1, forgotten())), "initialize#0@1 -");
    assert_eq!(describe(ledger.stream_failed(2, forgotten())), "");
    let third = r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#;
    assert_eq!(describe(ledger.send(third.into()).unwrap()), "");
    let answer = format!(r#"{{"id":{FIRST_OWN_ID},"result":{{"protocolVersion":"2025-03-26"}}}}"#);
    let want = "notifications/initialized@1 2025-03-26; tools/call#1@1 2025-03-26; \
                tools/call#2@1 2025-03-26; tools/list#3@1 2025-03-26";
    assert_eq!(describe(ledger.handle_frame(StreamId::Request(FIRST_OWN_ID, Epoch(0)), answer.into())), want);
    // One that learns of it late only has to be sent again; and again only so often.
    assert_eq!(describe(ledger.stream_failed(1, forgotten())), "tools/call#1@1 2025-03-26");
    let want = "fail #1 the server has forgotten the session, and did not run the request";
    assert_eq!(describe(ledger.stream_failed(1, forgotten())), want);
}

#[test]
fn a_session_that_cannot_be_opened_again_ends_all_that_waits_for_it() {
    let why = "the server had forgotten the session, and it could not be opened again: ";
    let mut ledger = open();
    ledger.stream_failed(1, StreamError::NotExecuted(Epoch(0)));
    ledger.stream_failed(2, StreamError::NotExecuted(Epoch(0)));
    let answer = format!(r#"{{"id":{FIRST_OWN_ID},"error":{{"code":-1,"message":"full"}}}}"#);
    let want = format!("fail #1 {why}full (code -1); fail #2 {why}full (code -1)");
    assert_eq!(describe(ledger.handle_frame(StreamId::Request(FIRST_OWN_ID, Epoch(0)), answer.into())), want);

    let mut ledger = open();
    ledger.stream_failed(1, StreamError::NotExecuted(Epoch(0)));
    assert!(describe(ledger.stream_failed(FIRST_OWN_ID, lost("reset"))).starts_with("fail #1"));
}

#[test]
fn the_end_ends_everything_and_nothing_is_sent_after_it() {
    let mut ledger = open();
    let ended = Disconnect::new(mcp_transport::DisconnectReason::PeerClosed);
    let why = "the server is no longer available: it closed the connection";
    assert_eq!(describe(ledger.ended(&ended)), format!("fail #1 {why}; fail #2 {why}"));
    assert_eq!(ledger.send(OPENED.into()).unwrap_err(), SendError::Closed);
}

#[test]
fn numbers_that_the_wire_cannot_keep_apart_are_refused() {
    for id in ["-1", "\"x\"", "1.5", "281474976710656"] {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert_eq!(RequestTracker::default().send(call.into()).unwrap_err(), SendError::Id, "{id}");
    }
    assert!(RequestTracker::default().send("[]".into()).is_err());
}

#[test]
fn an_answer_goes_to_the_session_that_asked() {
    let mut ledger = open();
    let ask = |ledger: &mut RequestTracker, stream| {
        let asked = r#"{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{}}"#;
        describe(ledger.handle_frame(stream, asked.into()))
    };
    let answered = |ledger: &mut RequestTracker, id: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        describe(ledger.send(body.into()).unwrap())
    };
    assert!(ask(&mut ledger, StreamId::Request(1, Epoch(0))).contains(r#""id":5"#));
    // The session is forgotten while the SDK asks its user, and the next one asks under the same number.
    ledger.stream_failed(1, StreamError::NotExecuted(Epoch(0)));
    let opened = format!(r#"{{"id":{FIRST_OWN_ID},"result":{{"protocolVersion":"2025-03-26"}}}}"#);
    ledger.handle_frame(StreamId::Request(FIRST_OWN_ID, Epoch(1)), opened.into());
    assert!(ask(&mut ledger, StreamId::Request(1, Epoch(1))).contains(r#""id":"another-1""#));
    assert_eq!(answered(&mut ledger, "5"), "@0 2025-03-26");
    assert_eq!(answered(&mut ledger, "\"another-1\""), "@1 2025-03-26");
    assert_eq!(answered(&mut ledger, "5"), "", "nobody asks any more");
    // On a wire with one session, likewise.
    assert!(ask(&mut ledger, StreamId::Shared).contains(r#""id":5"#));
    let back = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    assert_eq!(describe(ledger.handle_frame(StreamId::Notifications(Epoch(1)), back.into())), "");
    assert!(describe(ledger.handle_frame(StreamId::Shared, back.into())).contains(r#""requestId":5"#));
    assert_eq!(answered(&mut ledger, "5"), "");
}

#[test]
fn a_result_without_an_id_is_nobodys() {
    let mut ledger = open();
    for nobodys in [r#"{"id":null,"result":{}}"#, r#"{"result":{}}"#] {
        assert_eq!(describe(ledger.handle_frame(StreamId::Request(1, Epoch(0)), nobodys.into())), "");
    }
}

#[test]
fn a_server_that_asks_without_end_is_refused() {
    let mut ledger = RequestTracker::default();
    let ask = |id| Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
    for id in 0..1024 {
        assert!(describe(ledger.handle_frame(StreamId::Shared, ask(id))).starts_with("frame"));
    }
    assert_eq!(describe(ledger.handle_frame(StreamId::Shared, ask(1024))), "@0 -");
}

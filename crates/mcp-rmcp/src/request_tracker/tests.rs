//! The tracker with a script of messages; its actions are compared as text.

use mcp_host_transport::ErrorResponse;

use super::*;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn describe(actions: Vec<Action>) -> String {
    let text = |act: Action| match act {
        Action::Send(Outbound::Send(OutboundMessage { epoch, head, body: _, .. })) => {
            let id = head.id.map_or_else(String::new, |it| format!("#{}", it & !FIRST_OWN_ID));
            let version = head.version.map_or("-", ProtocolVersion::as_str);
            format!("{}{id}@{} {version}", head.method_name().unwrap_or_default(), epoch.0)
        }
        Action::Send(Outbound::Cancel { id, notice }) => format!("abandon #{id} {}", notice.is_some()),
        Action::Frame(frame) => format!("frame {}", String::from_utf8_lossy(&frame)),
        Action::Fail(id, error) => format!("fail #{id} {}", error.message),
    };
    actions.into_iter().map(text).collect::<Vec<_>>().join("; ")
}

fn lost_error(reason: &str) -> StreamError {
    StreamError::Lost(RequestError::new(reason.to_owned()))
}

/// A tracker with an open session and calls 1 and 2 in flight.
fn open_tracker() -> RequestTracker {
    let mut tracker = RequestTracker::default();
    tracker.send(INITIALIZE.into()).unwrap();
    let response = r#"{"result":{"protocolVersion":"2025-06-18"},"jsonrpc":"2.0","id":0}"#;
    assert_eq!(
        describe(tracker.handle_frame(StreamId::Request(0, Epoch(0)), response.into())),
        format!("frame {response}")
    );
    assert_eq!(describe(tracker.send(INITIALIZED.into()).unwrap()), "notifications/initialized@0 2025-06-18");
    for id in [1, 2] {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#);
        assert_eq!(describe(tracker.send(call.into()).unwrap()), format!("tools/call#{id}@0 2025-06-18"));
    }
    tracker
}

#[test]
fn response_is_passed_on_once_and_an_unmatched_one_never() {
    let mut tracker = open_tracker();
    let frame = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(describe(tracker.handle_frame(StreamId::Shared, frame.into())), format!("frame {frame}"));
    for unmatched in [frame, r#"{"id":9,"result":{}}"#, r#"{"id":null,"error":{}}"#, "[[{}]]", "garbage"] {
        assert_eq!(describe(tracker.handle_frame(StreamId::Shared, unmatched.to_owned().into())), "");
    }
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    assert_eq!(describe(tracker.handle_frame(StreamId::Shared, ping.into())), format!("frame {ping}"));
    let error = r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#;
    assert_eq!(describe(tracker.handle_frame(StreamId::Request(2, Epoch(0)), error.into())), "fail #2 no");
}

#[test]
fn cancelled_request_is_removed_and_its_end_is_ignored() {
    let mut tracker = open_tracker();
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(describe(tracker.send(cancel.into()).unwrap()), "abandon #1 true");
    assert_eq!(describe(tracker.fail_stream(1, lost_error("gone"))), "");
}

#[test]
fn lost_response_is_an_unknown_outcome_and_a_refusal_has_the_servers_error() {
    let mut tracker = open_tracker();
    let want = "fail #1 the response was lost, and it is not known whether the request ran: reset";
    assert_eq!(describe(tracker.fail_stream(1, lost_error("reset"))), want);
    let error = Some(RpcError::new(-5, "bad"));
    let error = StreamError::Refused({
        let mut response = ErrorResponse::new(400);
        response.error = error;
        response.into()
    });
    assert_eq!(describe(tracker.fail_stream(2, error)), "fail #2 bad");
}

#[test]
fn lost_session_is_reopened_once_and_queued_calls_follow() {
    let mut tracker = open_tracker();
    let forgotten = || StreamError::NotExecuted(Epoch(0));
    assert_eq!(describe(tracker.fail_stream(1, forgotten())), "initialize#0@1 -");
    assert_eq!(describe(tracker.fail_stream(2, forgotten())), "");
    let third = r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#;
    assert_eq!(describe(tracker.send(third.into()).unwrap()), "");
    let response = format!(r#"{{"id":{FIRST_OWN_ID},"result":{{"protocolVersion":"2025-03-26"}}}}"#);
    let want = "notifications/initialized@1 2025-03-26; tools/call#1@1 2025-03-26; \
                tools/call#2@1 2025-03-26; tools/list#3@1 2025-03-26";
    assert_eq!(
        describe(tracker.handle_frame(StreamId::Request(FIRST_OWN_ID, Epoch(0)), response.into())),
        want
    );
    // A call that fails in the old session is only sent again, a limited number of times.
    assert_eq!(describe(tracker.fail_stream(1, forgotten())), "tools/call#1@1 2025-03-26");
    let want = "fail #1 the server lost the session and did not run the request";
    assert_eq!(describe(tracker.fail_stream(1, forgotten())), want);
}

#[test]
fn failed_reopening_fails_all_queued_calls() {
    let reason = "the server lost the session, and reopening it failed: ";
    let mut tracker = open_tracker();
    tracker.fail_stream(1, StreamError::NotExecuted(Epoch(0)));
    tracker.fail_stream(2, StreamError::NotExecuted(Epoch(0)));
    let response = format!(r#"{{"id":{FIRST_OWN_ID},"error":{{"code":-1,"message":"full"}}}}"#);
    let want = format!("fail #1 {reason}full (code -1); fail #2 {reason}full (code -1)");
    assert_eq!(
        describe(tracker.handle_frame(StreamId::Request(FIRST_OWN_ID, Epoch(0)), response.into())),
        want
    );

    let mut tracker = open_tracker();
    tracker.fail_stream(1, StreamError::NotExecuted(Epoch(0)));
    assert!(describe(tracker.fail_stream(FIRST_OWN_ID, lost_error("reset"))).starts_with("fail #1"));
}

#[test]
fn disconnect_fails_all_calls_and_later_ones_are_refused() {
    let mut tracker = open_tracker();
    let ended = Disconnect::new(mcp_host_transport::DisconnectReason::PeerClosed);
    let reason = "the server is no longer available: it closed the connection";
    assert_eq!(describe(tracker.handle_disconnect(&ended)), format!("fail #1 {reason}; fail #2 {reason}"));
    assert_eq!(
        tracker.send(INITIALIZED.into()).unwrap_err(),
        super::invalid_message("the connection is over")
    );
}

#[test]
fn ambiguous_ids_are_refused() {
    for id in ["-1", "\"x\"", "1.5", "281474976710656"] {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert_eq!(
            RequestTracker::default().send(call.into()).unwrap_err(),
            super::invalid_message("a request id must be an integer below 2^48"),
            "{id}"
        );
    }
    assert!(RequestTracker::default().send("[]".into()).is_err());
}

#[test]
fn response_is_sent_to_the_session_of_its_request() {
    let mut tracker = open_tracker();
    let send_request = |tracker: &mut RequestTracker, stream| {
        let request = r#"{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{}}"#;
        describe(tracker.handle_frame(stream, request.into()))
    };
    let respond = |tracker: &mut RequestTracker, id: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        describe(tracker.send(body.into()).unwrap())
    };
    assert!(send_request(&mut tracker, StreamId::Request(1, Epoch(0))).contains(r#""id":5"#));
    // The session is lost while the SDK handles the request, and the next session sends a request with the same id.
    tracker.fail_stream(1, StreamError::NotExecuted(Epoch(0)));
    let response = format!(r#"{{"id":{FIRST_OWN_ID},"result":{{"protocolVersion":"2025-03-26"}}}}"#);
    tracker.handle_frame(StreamId::Request(FIRST_OWN_ID, Epoch(1)), response.into());
    assert!(send_request(&mut tracker, StreamId::Request(1, Epoch(1))).contains(r#""id":"another-1""#));
    assert_eq!(respond(&mut tracker, "5"), "@0 2025-03-26");
    assert_eq!(respond(&mut tracker, "\"another-1\""), "@1 2025-03-26");
    assert_eq!(respond(&mut tracker, "5"), "", "the request is finished");
    // The same on a transport with one session.
    assert!(send_request(&mut tracker, StreamId::Shared).contains(r#""id":5"#));
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    assert_eq!(describe(tracker.handle_frame(StreamId::Notifications(Epoch(1)), cancel.into())), "");
    assert!(describe(tracker.handle_frame(StreamId::Shared, cancel.into())).contains(r#""requestId":5"#));
    assert_eq!(respond(&mut tracker, "5"), "");
}

#[test]
fn result_without_an_id_is_dropped() {
    let mut tracker = open_tracker();
    for unmatched in [r#"{"id":null,"result":{}}"#, r#"{"result":{}}"#] {
        assert_eq!(describe(tracker.handle_frame(StreamId::Request(1, Epoch(0)), unmatched.into())), "");
    }
}

#[test]
fn number_of_server_requests_is_bounded() {
    let mut tracker = RequestTracker::default();
    let send_request = |id| Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
    for id in 0..1024 {
        assert!(describe(tracker.handle_frame(StreamId::Shared, send_request(id))).starts_with("frame"));
    }
    assert_eq!(describe(tracker.handle_frame(StreamId::Shared, send_request(1024))), "@0 -");
}

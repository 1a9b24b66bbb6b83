//! Interpretation of HTTP responses. No I/O.
//!
//! Servers report the same condition with different statuses and bodies. The rules are the narrowest that work with the
//! servers in use: a lost session is reported by 404, or by 400 with a message about it; an error with the id of the
//! request is its response, with any status. Words alone prove nothing about a request that may have an effect, in a
//! session in which the server has responded: a tool may use them too, and must not run twice.

use bytes::Bytes;
use mcp_host_model::{Method, MethodName, code};

use super::sessions::MessageContext;
use crate::error::session_words::{reports_lost_session, reports_missing_initialization};
pub(super) use crate::net::error_body::{ErrorBody, error_response, parse_error_body};
use crate::transport::scan::{ResponseId, ScannedFrame, scan};
use crate::transport::{MessageHead, RequestId};

/// The meaning of an error status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusMeaning {
    /// The body is the JSON-RPC response.
    Response,
    /// The server refused the message because it does not know the session.
    SessionLost,
    /// The server refused the message.
    Refused,
    /// The server may have processed the message.
    OutcomeUnknown,
}

/// Maximum number of messages in a body with one per line.
const MAX_LINES: usize = 1024;

/// Whether a frame contains the response to request `id`.
pub(super) fn contains_response(frame: &[u8], id: RequestId) -> bool {
    has_response(frame, &scan(frame), id)
}

/// Whether a scanned frame contains the response to request `id`. An error without an id counts, on the request's own
/// stream; a result without one does not.
pub(super) fn has_response(frame: &[u8], scanned: &ScannedFrame, id: RequestId) -> bool {
    match scanned {
        ScannedFrame::Response { id: ResponseId::Number(number), .. }
        | ScannedFrame::EmptyResponse(number) => *number == id,
        ScannedFrame::Response { id: ResponseId::Absent, is_error, .. } => *is_error,
        ScannedFrame::Batch(ranges) => ranges.iter().any(|range| {
            let item = &frame[range.clone()];
            item.first() == Some(&b'{') && contains_response(item, id)
        }),
        ScannedFrame::Response { id: ResponseId::Foreign, .. }
        | ScannedFrame::Request { .. }
        | ScannedFrame::Notification { .. }
        | ScannedFrame::Noise => false,
    }
}

/// The messages of a body with one per line, if the last is the response to request `id`. Some servers send
/// notifications before a response in this form. `None` for any other body.
pub(super) fn split_lines(body: &Bytes, id: RequestId) -> Option<Vec<Bytes>> {
    let text = body.trim_ascii_end();
    // The common case ends here: one document, possibly over many lines.
    let last_line = memchr::memrchr(b'\n', text)? + 1;
    if !contains_response(&text[last_line..], id) {
        return None;
    }
    let lines = text.split(|it| *it == b'\n').map(|it| body.slice_ref(it.trim_ascii()));
    let lines: Vec<Bytes> = lines.filter(|it| !it.is_empty()).take(MAX_LINES + 1).collect();
    let is_message =
        |it: &Bytes| it.first() == Some(&b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(it).is_ok();
    (lines.len() <= MAX_LINES && lines.iter().all(is_message)).then_some(lines)
}

/// Whether the text of an error is trusted to say that the session is lost, so that the message is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorTextTrust {
    /// The message has no effect, or the server has responded to none in its session: repeating it is harmless.
    Trusted,
    /// The message may have an effect. Whether the session is lost has to be checked.
    Untrusted,
}

impl ErrorTextTrust {
    /// Decides for a message.
    pub(super) fn for_message(head: &MessageHead) -> ErrorTextTrust {
        let has_no_effect =
            head.method.as_ref().and_then(MethodName::as_known).is_some_and(Method::is_read_only);
        if head.in_established_session && !has_no_effect {
            ErrorTextTrust::Untrusted
        } else {
            ErrorTextTrust::Trusted
        }
    }
}

/// Interprets an error status.
pub(super) fn classify_status(
    status: u16,
    error_body: &ErrorBody,
    context: MessageContext,
    text_trust: ErrorTextTrust,
) -> StatusMeaning {
    let error_code = error_body.error.as_ref().map(|it| it.code);
    let is_response = error_body.has_request_id && context != MessageContext::Handshake;
    let in_session = context == MessageContext::Session;
    let is_trusted = text_trust == ErrorTextTrust::Trusted;
    match status {
        401 | 403 => StatusMeaning::Refused,
        // Some servers respond to an unknown method with 404.
        404 if in_session && !(is_response && error_code == Some(code::METHOD_NOT_FOUND)) => {
            StatusMeaning::SessionLost
        }
        400 if in_session
            && is_trusted
            && reports_lost_session(&error_body.message)
            && !(is_response && error_code != Some(code::SERVER_ERROR)) =>
        {
            StatusMeaning::SessionLost
        }
        // A server without session ids can lose its state as well.
        400 if context == MessageContext::Sessionless
            && is_trusted
            && reports_missing_initialization(&error_body.message)
            && !is_response =>
        {
            StatusMeaning::SessionLost
        }
        _ if is_response => StatusMeaning::Response,
        // The response to an unknown method in the modern era; some servers omit the id.
        404 if context == MessageContext::Modern
            && error_body.has_no_id
            && error_code == Some(code::METHOD_NOT_FOUND) =>
        {
            StatusMeaning::Response
        }
        500.. => StatusMeaning::OutcomeUnknown,
        _ => StatusMeaning::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Redactor;
    use mcp_host_model::Secret;

    fn error_body(body: &'static str) -> ErrorBody {
        parse_error_body(
            &Bytes::from_static(body.as_bytes()),
            Some(7),
            &Redactor::new([Secret::from("hunter2")].iter()),
        )
    }

    #[track_caller]
    fn check_lines(body: &'static str, want: Option<usize>) {
        assert_eq!(split_lines(&Bytes::from_static(body.as_bytes()), 7).map(|it| it.len()), want, "{body}");
    }

    #[test]
    fn body_may_contain_one_message_per_line() {
        check_lines("{\"method\":\"n\"}\n\r\n{\"id\":7,\"result\":{}}\n", Some(2));
        check_lines("{\"id\":7,\"result\":{}}\n", None);
        check_lines("{\"id\":7,\n\"result\":{}\n}", None);
        check_lines("nonsense\n{\"id\":7,\"result\":{}}", None);
        check_lines("{\"method\":\"n\"}\n{\"id\":8,\"result\":{}}", None);
    }

    #[track_caller]
    fn check(status: u16, context: MessageContext, body: &'static str, want: StatusMeaning) {
        let got = classify_status(status, &error_body(body), context, ErrorTextTrust::Trusted);
        assert_eq!(got, want, "{status} {context:?} {body}");
    }

    const NO_SESSION: &str = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;
    const NOT_INITIALIZED: &str = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#;
    const INVALID_PARAMS: &str =
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"the session name is required"}}"#;
    const NO_METHOD: &str =
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}"#;

    #[test]
    fn lost_session_is_recognized() {
        use MessageContext::*;
        check(404, Session, "", StatusMeaning::SessionLost);
        check(
            404,
            Session,
            r#"{"error":{"code":-32001,"message":"Session not found"},"id":"server-error"}"#,
            StatusMeaning::SessionLost,
        );
        check(400, Session, NO_SESSION, StatusMeaning::SessionLost);
        check(400, Session, NOT_INITIALIZED, StatusMeaning::SessionLost);
        check(400, Session, "Invalid session ID", StatusMeaning::SessionLost);
        check(
            400,
            Session,
            r#"{"id":7,"error":{"code":-32000,"message":"No valid session ID"}}"#,
            StatusMeaning::SessionLost,
        );
        check(400, Sessionless, NOT_INITIALIZED, StatusMeaning::SessionLost);
    }

    // RPT-044
    #[test]
    fn words_prove_nothing_about_a_message_that_may_have_an_effect() {
        let check = |status, context, body, want| {
            let got = classify_status(status, &error_body(body), context, ErrorTextTrust::Untrusted);
            assert_eq!(got, want, "{status} {context:?} {body}");
        };
        check(400, MessageContext::Session, "your session expired", StatusMeaning::Refused);
        check(400, MessageContext::Session, NO_SESSION, StatusMeaning::Refused);
        check(400, MessageContext::Sessionless, NOT_INITIALIZED, StatusMeaning::Refused);
        check(404, MessageContext::Session, "", StatusMeaning::SessionLost);
        let head = |method: Method, in_established_session| MessageHead {
            in_established_session,
            ..MessageHead::new(Some(1), method, None)
        };
        assert_eq!(ErrorTextTrust::for_message(&head(Method::CallTool, true)), ErrorTextTrust::Untrusted);
        assert_eq!(ErrorTextTrust::for_message(&head(Method::CallTool, false)), ErrorTextTrust::Trusted);
        assert_eq!(ErrorTextTrust::for_message(&head(Method::ListTools, true)), ErrorTextTrust::Trusted);
    }

    #[test]
    fn other_errors_are_refusals() {
        use MessageContext::*;
        check(400, Session, "the JSON is wrong", StatusMeaning::Refused);
        check(400, Session, INVALID_PARAMS, StatusMeaning::Response);
        check(
            400,
            Session,
            r#"{"id":7,"error":{"code":-32000,"message":"tool failed: the browser session was closed by the user"}}"#,
            StatusMeaning::Response,
        );
        check(400, Session, "the field session_id is required", StatusMeaning::Refused);
        check(404, Session, NO_METHOD, StatusMeaning::Response);
        check(404, Sessionless, "", StatusMeaning::Refused);
        check(400, Sessionless, NO_SESSION, StatusMeaning::Refused);
        check(404, Modern, NO_METHOD, StatusMeaning::Response);
        check(404, Modern, "no such page", StatusMeaning::Refused);
        let without_id = r#"{"id":null,"error":{"code":-32601,"message":"Method not found"}}"#;
        check(404, Modern, without_id, StatusMeaning::Response);
        check(404, Sessionless, without_id, StatusMeaning::Refused);
        check(400, Modern, without_id, StatusMeaning::Refused);
        check(404, Modern, r#"{"id":8,"error":{"code":-32601,"message":"no"}}"#, StatusMeaning::Refused);
        check(400, Modern, NO_SESSION, StatusMeaning::Refused);
        check(401, Session, NO_SESSION, StatusMeaning::Refused);
        check(403, Modern, NO_METHOD, StatusMeaning::Refused);
        check(429, Session, "", StatusMeaning::Refused);
    }

    #[test]
    fn handshake_errors_are_refusals() {
        check(400, MessageContext::Handshake, NOT_INITIALIZED, StatusMeaning::Refused);
        check(404, MessageContext::Handshake, NO_METHOD, StatusMeaning::Refused);
        check(500, MessageContext::Handshake, NO_METHOD, StatusMeaning::OutcomeUnknown);
    }

    #[test]
    fn server_error_leaves_the_outcome_unknown() {
        check(500, MessageContext::Modern, "oops", StatusMeaning::OutcomeUnknown);
        check(503, MessageContext::Session, NOT_INITIALIZED, StatusMeaning::OutcomeUnknown);
        check(500, MessageContext::Modern, INVALID_PARAMS, StatusMeaning::Response);
    }

    #[test]
    fn response_is_recognized_by_its_id() {
        let check = |frame: &str, want| assert_eq!(contains_response(frame.as_bytes(), 7), want, "{frame}");
        check(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, true);
        check(r#"{"result":{"id":8},"id":"7"}"#, true);
        check(r#"{"error":{"code":1,"message":""},"id":null}"#, true);
        check(r#"{"result":{},"id":null}"#, false);
        check(r#"{"result":{}}"#, false);
        check(r#"[{"result":{}},{"id":7,"result":1}]"#, true);
        check(r#"[{"id":8,"result":1},{"id":7,"result":1}]"#, true);
        check(r#"[[{"id":7,"result":1}]]"#, false);
        check(r#"{"id":8,"result":{}}"#, false);
        check(r#"{"id":7,"method":"ping"}"#, false);
        check("", false);
    }
}

//! Parses HTTP error responses.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderMap;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use mcp_host_model::RpcError;
use serde::Deserialize;

use crate::error::request_error::{AccessRefusal, ErrorResponse, ResponseSign};
use crate::error::retry_after::RetryAfter;
use crate::redact::Redactor;
use crate::transport::RequestId;
use crate::transport::scan::{ResponseId, ScannedFrame, scan};

/// Maximum size in bytes of the text of a body that an error message quotes.
const MAX_QUOTED_BYTES: usize = 200;
/// Maximum size in bytes of the message of a JSON-RPC error.
const MAX_RPC_MESSAGE_BYTES: usize = 800;

/// The content of an error response's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorBody {
    /// Its JSON-RPC error.
    pub(crate) error: Option<RpcError>,
    /// Whether the error has the id of the request.
    pub(crate) has_request_id: bool,
    /// Whether the id of the error is missing or `null`.
    pub(crate) has_no_id: bool,
    /// The error's message, or the body's text.
    pub(crate) message: String,
}

/// Parses the body of an error response and removes secrets. `id` is the id of the request, if it has one.
pub fn parse_error_body(body: &Bytes, id: Option<RequestId>, redactor: &Redactor) -> ErrorBody {
    if let ScannedFrame::Response { id: response_id, is_error: true, payload_start, .. } = scan(body)
        && let Ok(error) =
            RpcError::deserialize(&mut serde_json::Deserializer::from_slice(&body[payload_start..]))
    {
        let message = redactor.clean(&error.message, MAX_RPC_MESSAGE_BYTES);
        // Data with a secret is dropped: after a change it would be wrong.
        let data = error.data.filter(|data| redactor.redact_json(data.as_str()).is_none());
        let has_no_id = response_id == ResponseId::Absent;
        let has_request_id =
            matches!((response_id, id), (ResponseId::Number(number), Some(id)) if number == id);
        return ErrorBody {
            error: Some(RpcError { code: error.code, message: message.clone(), data }),
            has_request_id,
            has_no_id,
            message,
        };
    }
    // Redacted before the lines are joined, because a line break may interrupt a secret.
    let text = redactor.clean(&String::from_utf8_lossy(body), usize::MAX);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ErrorBody {
        error: None,
        has_request_id: false,
        has_no_id: false,
        message: redactor.clean(&line, MAX_QUOTED_BYTES),
    }
}

/// Builds the error of a response from its status, headers and body.
pub fn error_response(
    status: u16,
    headers: &HeaderMap,
    body: ErrorBody,
    redactor: &Redactor,
) -> ErrorResponse {
    let status_code = http::StatusCode::from_u16(status).ok();
    ErrorResponse {
        status,
        reason: status_code.and_then(|status| status.canonical_reason()).unwrap_or_default(),
        retry_after: retry_after(headers, SystemTime::now()),
        access: matches!(status, 401 | 403).then(|| match challenge_schemes(headers, redactor) {
            // Every credential is a secret, so without secrets no credential is configured.
            schemes if schemes.is_empty() && status == 403 && redactor.is_empty() => {
                AccessRefusal::NoCredential
            }
            schemes => AccessRefusal::Challenge(schemes),
        }),
        sign: response_sign(&body.message),
        text: if body.error.is_none() { body.message } else { String::new() },
        error: body.error,
    }
}

/// Recognizes error messages of widespread servers.
fn response_sign(text: &str) -> Option<ResponseSign> {
    const WANT_TLS: [&str; 3] = [
        "HTTP request to an HTTPS server",
        "HTTP request was sent to HTTPS port",
        "speaking plain HTTP to an SSL",
    ];
    const WANT_SESSION: [&str; 4] = ["session id", "session-id", "sessionid", "no transport found"];
    if WANT_TLS.iter().any(|words| text.contains(words)) {
        return Some(ResponseSign::WantsTls);
    }
    let text = text.to_ascii_lowercase();
    WANT_SESSION.iter().any(|words| text.contains(words)).then_some(ResponseSign::WantsSession)
}

/// When the server accepts another request, by the `Retry-After` of its response: a number of seconds, or a date.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<RetryAfter> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(RetryAfter::new(Duration::from_secs(seconds)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let delay = date.duration_since(now).unwrap_or_default();
    let date = Some(httpdate::fmt_http_date(date));
    Some(RetryAfter { date, ..RetryAfter::new(delay) })
}

/// The schemes of a response's challenges, without their parameters. A server may echo a secret in place of a scheme.
fn challenge_schemes(headers: &HeaderMap, redactor: &Redactor) -> Vec<String> {
    let mut res = Vec::new();
    for value in headers.get_all(WWW_AUTHENTICATE) {
        // Redacted before it is cut: the beginning of a secret would not be recognized.
        let value = redactor.clean(&String::from_utf8_lossy(value.as_bytes()), usize::MAX);
        let is_scheme = |character: char| character.is_ascii_alphanumeric() || character == '-';
        let end = value.find(|character| !is_scheme(character)).unwrap_or(value.len());
        let scheme = &value[..end];
        if !scheme.is_empty() && scheme.len() <= 32 && !res.iter().any(|known| known == scheme) {
            res.push(scheme.to_owned());
        }
    }
    res
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use mcp_host_model::Secret;

    fn redactor() -> Redactor {
        Redactor::new([Secret::from("hunter2")].iter())
    }

    fn parse(body: &'static str) -> ErrorBody {
        parse_error_body(&Bytes::from_static(body.as_bytes()), Some(7), &redactor())
    }

    const NO_SESSION: &str = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;

    #[test]
    fn message_has_no_secret_and_fits_a_line() {
        let none = HeaderMap::new();
        let describe = |status, body| error_response(status, &none, body, &redactor());
        let check = |status, body| describe(status, parse(body)).to_string();
        assert_eq!(
            check(502, "<html>\n\n  hunter2\u{7} </html>"),
            "the server answered HTTP 502 Bad Gateway: <html> *** </html>"
        );
        let no_session = describe(400, parse(NO_SESSION));
        assert_eq!(no_session.sign, Some(ResponseSign::WantsSession));
        assert_eq!(no_session.text, "");
        assert_eq!(check(599, ""), "the server answered HTTP 599");
        let long = parse_error_body(&Bytes::from(vec![b'x'; 1000]), None, &redactor());
        assert!(describe(400, long).to_string().len() < 260);
        let error = parse(r#"{"id":1,"error":{"code":1,"message":"no hunter2","data":{"a":"hunter2"}}}"#)
            .error
            .unwrap();
        assert_eq!((error.message.as_str(), error.data), ("no ***", None));
    }

    #[track_caller]
    fn check_retry_after(value: &'static str, want: &str) {
        let headers = [(RETRY_AFTER, HeaderValue::from_static(value))].into_iter().collect();
        let got = error_response(429, &headers, parse(""), &redactor()).to_string();
        assert_eq!(got, format!("the server answered HTTP 429 Too Many Requests{want}"));
    }

    #[test]
    fn time_of_the_next_attempt_is_reported() {
        check_retry_after("30", " (try again in 30 s)");
        check_retry_after(
            "Wed, 21 Oct 2026 07:28:00 GMT",
            " (try again after Wed, 21 Oct 2026 07:28:00 GMT)",
        );
        check_retry_after("soon", "");
    }

    // RPT-063
    #[test]
    fn wait_is_read_from_seconds_and_from_a_date_and_is_bounded() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_792_567_640);
        let check = |value: &str, want: Option<u64>| {
            let headers = [(RETRY_AFTER, HeaderValue::from_str(value).unwrap())].into_iter().collect();
            assert_eq!(retry_after(&headers, now).map(|after| after.wait().as_secs()), want, "{value}");
        };
        check("30", Some(30));
        check(" 0 ", Some(0));
        check("99999999999", Some(600));
        check("Wed, 21 Oct 2026 07:28:00 GMT", Some(40));
        check("Wed, 21 Oct 2020 07:28:00 GMT", Some(0));
        check("-1", None);
        check("soon", None);
    }

    #[test]
    fn challenge_is_reported_by_its_scheme() {
        let mut headers = HeaderMap::new();
        headers.append(
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"secret\", error=\"invalid_token\""),
        );
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("Basic"));
        assert_eq!(
            error_response(401, &headers, parse(""), &redactor()).to_string(),
            "the server answered HTTP 401 Unauthorized: it requires authorization (Bearer, Basic)"
        );
        assert_eq!(
            error_response(403, &HeaderMap::new(), parse(""), &redactor()).to_string(),
            "the server answered HTTP 403 Forbidden: it requires authorization"
        );
        assert_eq!(
            error_response(403, &HeaderMap::new(), parse("no"), &Redactor::new([].iter())).to_string(),
            "the server answered HTTP 403 Forbidden: it refuses access, and no credential is configured: no"
        );
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("x-hunter2-1"));
        assert_eq!(
            error_response(401, &headers, parse(""), &redactor()).to_string(),
            "the server answered HTTP 401 Unauthorized: it requires authorization (x-)"
        );
    }
}

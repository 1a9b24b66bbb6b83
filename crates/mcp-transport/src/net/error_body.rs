//! Parses and describes HTTP error responses.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{RETRY_AFTER as RETRY_AFTER_HEADER, WWW_AUTHENTICATE};
use mcp_host_model::RpcError;
use serde::Deserialize;

use crate::error::{NO_CREDENTIAL, RETRY_AFTER};
use crate::redact::Redactor;
use crate::rpc::scan::{ResponseId, ScannedFrame, scan};
use crate::transport::RequestId;

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
pub fn parse(body: &Bytes, id: Option<RequestId>, redactor: &Redactor) -> ErrorBody {
    if let ScannedFrame::Response { id: named, is_error: true, payload_start: payload } = scan(body)
        && let Ok(error) = RpcError::deserialize(&mut serde_json::Deserializer::from_slice(&body[payload..]))
    {
        let message = redactor.clean(&error.message, MAX_RPC_MESSAGE_BYTES);
        // Data with a secret is dropped: after a change it would be wrong.
        let data = error.data.filter(|data| data.as_str() == redactor.clean(data.as_str(), usize::MAX));
        let has_no_id = named == ResponseId::Absent;
        let has_request_id = matches!((named, id), (ResponseId::Number(number), Some(id)) if number == id);
        return ErrorBody {
            error: Some(RpcError { code: error.code, message: message.clone(), data }),
            has_request_id,
            has_no_id,
            message,
        };
    }
    let text = String::from_utf8_lossy(body);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ErrorBody {
        error: None,
        has_request_id: false,
        has_no_id: false,
        message: redactor.clean(&line, MAX_QUOTED_BYTES),
    }
}

/// Describes the status, `Retry-After`, the challenges and the text of the body. A JSON-RPC error is reported separately.
pub fn describe_response(status: u16, headers: &HeaderMap, body: &ErrorBody, redactor: &Redactor) -> String {
    let status_code = http::StatusCode::from_u16(status).ok();
    let reason = status_code.and_then(|status| status.canonical_reason()).unwrap_or_default();
    let mut res = format!("the server answered HTTP {status} {reason}").trim_end().to_owned();
    if let Some(after) = retry_after(headers, redactor) {
        res.push_str(&format!(" {RETRY_AFTER}{after})"));
    }
    if matches!(status, 401 | 403) {
        let schemes = challenge_schemes(headers, redactor);
        res.push_str(&match schemes.is_empty() {
            // Every credential is a secret, so without secrets no credential is configured.
            true if status == 403 && redactor.is_empty() => {
                format!(": it refuses access, and {NO_CREDENTIAL}")
            }
            true => ": it requires authorization".to_owned(),
            false => format!(": it requires authorization ({})", schemes.join(", ")),
        });
    }
    if body.error.is_none() && !body.message.is_empty() {
        res.push_str(&format!(": {}", body.message));
    }
    res
}

/// When the request may be repeated, by the `Retry-After` of a response: `in 30 s`, `after Wed, 21 Oct 2026 07:28:00 GMT`.
fn retry_after(headers: &HeaderMap, redactor: &Redactor) -> Option<String> {
    let value = String::from_utf8_lossy(headers.get(RETRY_AFTER_HEADER)?.as_bytes()).into_owned();
    match value.trim().parse::<u64>() {
        Ok(seconds) => Some(format!("in {seconds} s")),
        // Every HTTP date contains `:`.
        Err(_) if value.contains(':') => Some(format!("after {}", redactor.clean(value.trim(), 40))),
        Err(_) => None,
    }
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

    fn parsed(body: &'static str) -> ErrorBody {
        parse(&Bytes::from_static(body.as_bytes()), Some(7), &redactor())
    }

    const NO_SESSION: &str = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;

    #[test]
    fn message_has_no_secret_and_fits_a_line() {
        let none = HeaderMap::new();
        let check = |status, body| describe_response(status, &none, &parsed(body), &redactor());
        assert_eq!(
            check(502, "<html>\n\n  hunter2\u{7} </html>"),
            "the server answered HTTP 502 Bad Gateway: <html> *** </html>"
        );
        assert_eq!(check(400, NO_SESSION), "the server answered HTTP 400 Bad Request");
        assert_eq!(check(599, ""), "the server answered HTTP 599");
        assert!(
            describe_response(
                400,
                &none,
                &parse(&Bytes::from(vec![b'x'; 1000]), None, &redactor()),
                &redactor()
            )
            .len()
                < 260
        );
        let error = parsed(r#"{"id":1,"error":{"code":1,"message":"no hunter2","data":{"a":"hunter2"}}}"#)
            .error
            .unwrap();
        assert_eq!((error.message.as_str(), error.data), ("no ***", None));
    }

    #[track_caller]
    fn check_retry_after(value: &'static str, want: &str) {
        let headers = [(RETRY_AFTER_HEADER, HeaderValue::from_static(value))].into_iter().collect();
        let got = describe_response(429, &headers, &parsed(""), &redactor());
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

    #[test]
    fn challenge_is_reported_by_its_scheme() {
        let mut headers = HeaderMap::new();
        headers.append(
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"secret\", error=\"invalid_token\""),
        );
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("Basic"));
        assert_eq!(
            describe_response(401, &headers, &parsed(""), &redactor()),
            "the server answered HTTP 401 Unauthorized: it requires authorization (Bearer, Basic)"
        );
        assert_eq!(
            describe_response(403, &HeaderMap::new(), &parsed(""), &redactor()),
            "the server answered HTTP 403 Forbidden: it requires authorization"
        );
        assert_eq!(
            describe_response(403, &HeaderMap::new(), &parsed("no"), &Redactor::new([].iter())),
            "the server answered HTTP 403 Forbidden: it refuses access, and no credential is configured: no"
        );
        let said_back = HeaderValue::from_static("x-hunter2-1");
        headers.insert(WWW_AUTHENTICATE, said_back);
        assert_eq!(
            describe_response(401, &headers, &parsed(""), &redactor()),
            "the server answered HTTP 401 Unauthorized: it requires authorization (x-)"
        );
    }
}

//! What a response that is no success says: its JSON-RPC error or its text, and its status in words.

use bytes::Bytes;
use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;
use mcp_model::RpcError;
use serde::Deserialize;

use crate::redact::Redactor;
use crate::rpc::scan::{Id, ScannedFrame, scan};
use crate::transport::RequestId;

/// The most of a body that a message repeats, in bytes.
const MAX_QUOTED_BYTES: usize = 200;

/// What an error's body says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    /// Its JSON-RPC error.
    pub(crate) error: Option<RpcError>,
    /// That error names the request's own id.
    pub(crate) names_request: bool,
    /// It names no request at all.
    pub(crate) names_no_request: bool,
    /// The error's message, or else the body's text.
    pub(crate) message: String,
}

/// Reads the body of an error. What it says is cleaned of secrets.
pub(crate) fn parse(body: &Bytes, id: Option<RequestId>, redactor: &Redactor) -> ErrorBody {
    if let ScannedFrame::Response { id: named, is_error: true, payload } = scan(body)
        && let Ok(error) = RpcError::deserialize(&mut serde_json::Deserializer::from_slice(&body[payload..]))
    {
        let message = redactor.clean(&error.message, 4 * MAX_QUOTED_BYTES);
        // Data that would have to be changed is no data any more.
        let data = error.data.filter(|it| it.as_str() == redactor.clean(it.as_str(), usize::MAX));
        let unnamed = named == Id::Absent;
        let ours = matches!((named, id), (Id::Number(number), Some(id)) if number == id);
        return ErrorBody {
            error: Some(RpcError { code: error.code, message: message.clone(), data }),
            names_request: ours,
            names_no_request: unnamed,
            message,
        };
    }
    let text = String::from_utf8_lossy(body);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ErrorBody {
        error: None,
        names_request: false,
        names_no_request: false,
        message: redactor.clean(&line, MAX_QUOTED_BYTES),
    }
}

/// A status in words, with what the body says where that is no JSON-RPC error: that one is told apart.
pub(crate) fn describe_response(
    status: u16,
    headers: &HeaderMap,
    said: &ErrorBody,
    redactor: &Redactor,
) -> String {
    let reason =
        http::StatusCode::from_u16(status).ok().and_then(|it| it.canonical_reason()).unwrap_or_default();
    let mut res = format!("the server answered HTTP {status} {reason}").trim_end().to_owned();
    if matches!(status, 401 | 403) {
        let schemes = challenge_schemes(headers, redactor);
        res.push_str(&match schemes.is_empty() {
            true => ": it wants authorization".to_owned(),
            false => format!(": it wants authorization ({})", schemes.join(", ")),
        });
    }
    if said.error.is_none() && !said.message.is_empty() {
        res.push_str(&format!(": {}", said.message));
    }
    res
}

/// The schemes that a response challenges us to use, nothing else of the challenge. What stands in a scheme's place may
/// be anything, what we have sent as well.
fn challenge_schemes(headers: &HeaderMap, redactor: &Redactor) -> Vec<String> {
    let mut res = Vec::new();
    for value in headers.get_all(WWW_AUTHENTICATE) {
        // Cleaned as a whole: what is cut off before would be the beginning of a secret that nobody knows any more.
        let value = redactor.clean(&String::from_utf8_lossy(value.as_bytes()), usize::MAX);
        let end = value.find(|it: char| !it.is_ascii_alphanumeric() && it != '-').unwrap_or(value.len());
        let scheme = &value[..end];
        if !scheme.is_empty() && scheme.len() <= 32 && !res.iter().any(|it| it == scheme) {
            res.push(scheme.to_owned());
        }
    }
    res
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use mcp_model::Secret;

    fn redactor() -> Redactor {
        Redactor::new([Secret::from("hunter2")].iter())
    }

    fn said(body: &'static str) -> ErrorBody {
        parse(&Bytes::from_static(body.as_bytes()), Some(7), &redactor())
    }

    const NO_SESSION: &str = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;

    #[test]
    fn words_hold_no_secret_and_fit_a_line() {
        let none = HeaderMap::new();
        let check = |status, body| describe_response(status, &none, &said(body), &redactor());
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
        let error = said(r#"{"id":1,"error":{"code":1,"message":"no hunter2","data":{"a":"hunter2"}}}"#)
            .error
            .unwrap();
        assert_eq!((error.message.as_str(), error.data), ("no ***", None));
    }

    #[test]
    fn a_challenge_is_told_by_its_scheme() {
        let mut headers = HeaderMap::new();
        headers.append(
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"secret\", error=\"invalid_token\""),
        );
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("Basic"));
        assert_eq!(
            describe_response(401, &headers, &said(""), &redactor()),
            "the server answered HTTP 401 Unauthorized: it wants authorization (Bearer, Basic)"
        );
        assert_eq!(
            describe_response(403, &HeaderMap::new(), &said(""), &redactor()),
            "the server answered HTTP 403 Forbidden: it wants authorization"
        );
        let said_back = HeaderValue::from_static("x-hunter2-1");
        headers.insert(WWW_AUTHENTICATE, said_back);
        assert_eq!(
            describe_response(401, &headers, &said(""), &redactor()),
            "the server answered HTTP 401 Unauthorized: it wants authorization (x-)"
        );
    }
}

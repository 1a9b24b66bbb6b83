//! Request headers of MCP over HTTP. The client's own headers override configured ones.
//!
//! Error messages never contain header values. They may contain header names, which are not secret.

#[cfg(any(feature = "http", test))]
use base64::Engine as _;
#[cfg(any(feature = "http", test))]
use base64::engine::general_purpose::STANDARD;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_host_model::UrlEndpoint;

use super::url_endpoint;
use crate::error::ConnectError;

/// The session id, in the legacy era.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The negotiated protocol version.
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method, in the modern era.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The name of the tool or prompt, or the URI, in the modern era.
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The id of the last event of a stream that is resumed.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Headers that are set by the client. A configured value is not sent.
const OWN_HEADERS: [HeaderName; 8] =
    [CONTENT_TYPE, ACCEPT, ACCEPT_ENCODING, SESSION_ID, PROTOCOL_VERSION, METHOD, NAME, LAST_EVENT_ID];

/// Headers that determine the framing and the destination of a message. A configured value could break the connection,
/// allow request smuggling or change the destination.
const FORBIDDEN_HEADERS: [HeaderName; 3] = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING];

/// The headers of a POST: the configured ones, checked, and ours, without those of a session.
pub(super) fn post_headers(endpoint: &UrlEndpoint) -> Result<HeaderMap, ConnectError> {
    let mut post = url_endpoint::configured_headers(endpoint, &OWN_HEADERS, &FORBIDDEN_HEADERS)?;
    // Set to the body's length for each request. It is the first of our own, because each request searches for it.
    post.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    post.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    post.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    // Without the header, a server may choose any coding.
    post.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let agent = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
    post.entry(USER_AGENT).or_insert(HeaderValue::from_static(agent));
    Ok(post)
}

/// The headers of a GET or DELETE, from those of a POST.
pub(crate) fn get_or_delete_headers(mut post: HeaderMap) -> HeaderMap {
    post.remove(CONTENT_TYPE);
    post.remove(CONTENT_LENGTH);
    post.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    post
}

/// Encodes a text as a header value: unchanged if that is safe, otherwise in base64 as revision 2026-07-28 specifies.
#[cfg(any(feature = "http", test))]
pub(crate) fn encode_header_value(text: &str) -> HeaderValue {
    let is_plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) && text.trim() == text;
    // A peer would decode this text, so it is encoded again.
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_plain
        && !looks_encoded
        && let Ok(value) = HeaderValue::from_str(text)
    {
        return value;
    }
    let encoded = format!("=?base64?{}?=", STANDARD.encode(text));
    HeaderValue::try_from(encoded).expect("base64 is plain ASCII")
}

/// Adds an argument that a tool's schema maps to a header. It replaces a configured header of that name.
#[cfg(feature = "http")]
pub(crate) fn insert_header_param(param: &crate::transport::HeaderParam, headers: &mut HeaderMap) {
    let name = HeaderName::try_from(format!("mcp-param-{}", param.name)).expect("the name is an HTTP token");
    let mut value = encode_header_value(&param.value);
    value.set_sensitive(true);
    headers.insert(name, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_host_model::Secret;
    use url::Url;

    fn endpoint(headers: &[(&str, &str)]) -> UrlEndpoint {
        let mut endpoint = UrlEndpoint::new(Url::parse("https://example.com/mcp").unwrap());
        endpoint.headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::from(*value))).collect();
        endpoint
    }

    /// Checks the headers that are sent besides those of every request, or the error.
    #[track_caller]
    fn check(headers: &[(&str, &str)], want: &str) {
        let got = match post_headers(&endpoint(headers)) {
            Err(error) => error.to_string(),
            Ok(post) => {
                let always = [CONTENT_TYPE, ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, USER_AGENT];
                let own = post.iter().filter(|(name, _)| !always.contains(name));
                let words =
                    own.map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value.as_bytes())));
                words.collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(got, want);
    }

    #[test]
    fn hd_121_configured_headers_are_sent_and_ours_win() {
        check(&[("Authorization", "Bearer b"), ("x-é", "1")], "\"x-é\" is not a valid header name");
        check(&[("X-A", "1"), ("x-a", "2"), ("X-B", "grün")], "x-a=1 x-a=2 x-b=grün");
        check(
            &[
                ("Accept", "text/html"),
                ("Accept-Encoding", "zstd"),
                ("mcp-session-id", "s"),
                ("MCP-Protocol-Version", "1"),
                ("X-A", "1"),
            ],
            "x-a=1",
        );
        let post = post_headers(&endpoint(&[("Content-Type", "text/plain"), ("User-Agent", "me")])).unwrap();
        assert_eq!(post[CONTENT_TYPE], "application/json");
        assert_eq!(post[USER_AGENT], "me");
    }

    #[test]
    fn hd_022_forbidden_header_is_refused_without_its_value() {
        check(&[("Host", "h")], "the header Host cannot be configured");
        check(&[("content-length", "9")], "the header content-length cannot be configured");
        check(&[("Transfer-Encoding", "chunked")], "the header Transfer-Encoding cannot be configured");
        check(
            &[("X", "secret\r\nY: 1")],
            "the value of the header X contains characters that are not allowed",
        );
        check(&[("X Y", "1")], "\"X Y\" is not a valid header name");
        check(&[("", "1")], "\"\" is not a valid header name");
    }

    #[test]
    fn name_that_is_no_header_value_is_encoded() {
        let check = |plain: &str, want: &str| assert_eq!(encode_header_value(plain), want, "{plain:?}");
        check("get_weather", "get_weather");
        check("file:///a b?c", "file:///a b?c");
        check("", "");
        check("grün", "=?base64?Z3LDvG4=?=");
        check(" a", "=?base64?IGE=?=");
        check("a\nb", "=?base64?YQpi?=");
        check("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?=");
    }
}

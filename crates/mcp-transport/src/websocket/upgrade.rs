//! The upgrade from HTTP: sends its request and checks its response.
//!
//! The subprotocol `mcp` is offered. A server that chooses none is accepted with a warning, because many do not support
//! subprotocols. One that chooses another is refused, as RFC 6455 specifies.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use mcp_host_model::UrlEndpoint;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use url::{Position, Url};

use super::endpoint::WebSocketEndpoint;
use crate::error::ConnectError;
use crate::error::request_error::RequestError;
use crate::net::http1::{Request, RequestBody, net_failure, send_upgrade, take_upgraded};
use crate::net::stream::NetStream;
use crate::net::{error_body, url_endpoint};

/// The subprotocol of MCP over WebSocket.
const SUBPROTOCOL: &str = "mcp";

/// Maximum number of bytes that are read of the body of an error response.
const MAX_ERROR_BODY_BYTES: usize = 4 << 10;

/// Timeout of reading the body of an error response. The body only adds to the status.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// The headers of the handshake, which cannot be configured.
const HANDSHAKE_HEADERS: [HeaderName; 10] = [
    HOST,
    CONNECTION,
    UPGRADE,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION,
    SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_ACCEPT,
];

/// Why a response does not open a WebSocket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UpgradeError {
    /// Its status is not 101. Its body may contain the reason.
    WrongStatus,
    /// It has status 101, but is invalid.
    Invalid(String),
}

/// The path and query of the request.
pub(super) fn request_target(url: &Url) -> Result<Uri, ConnectError> {
    url[Position::BeforePath..Position::AfterQuery]
        .parse::<PathAndQuery>()
        .map(Uri::from)
        .map_err(|_| ConnectError::Invalid("the URL's path is not valid in a request".to_owned()))
}

/// The headers of the request except its key: those of the handshake, the configured ones, the URL's credentials,
/// and `User-Agent`.
pub(super) fn upgrade_headers(endpoint: &UrlEndpoint) -> Result<HeaderMap, ConnectError> {
    let url = &endpoint.url;
    let host = HeaderValue::try_from(&url[Position::BeforeHost..Position::AfterPort])
        .map_err(|_| ConnectError::Invalid("the URL's host is not valid in a request".to_owned()))?;
    let mut res = HeaderMap::new();
    // The host first, as servers expect it.
    res.insert(HOST, host);
    res.insert(UPGRADE, HeaderValue::from_static("websocket"));
    res.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    res.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    res.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    res.extend(url_endpoint::configured_headers(endpoint, &[], &HANDSHAKE_HEADERS)?);
    if let Some(credentials) = url_endpoint::basic_credentials(url) {
        let mut value = HeaderValue::try_from(format!("Basic {credentials}")).expect("base64 is plain ASCII");
        value.set_sensitive(true);
        res.entry(AUTHORIZATION).or_insert(value);
    }
    let agent = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
    res.entry(USER_AGENT).or_insert(HeaderValue::from_static(agent));
    Ok(res)
}

/// Requests the upgrade. Returns the stream with the bytes that the server sent after its response. Fails with the
/// server's reason if it opens no WebSocket.
pub(super) async fn upgrade(
    endpoint: &WebSocketEndpoint,
    stream: NetStream,
) -> Result<(NetStream, Bytes), RequestError> {
    let key = generate_key();
    let broken = |error: &hyper::Error| RequestError::NoWebSocket {
        server: endpoint.label.clone(),
        failure: net_failure(error),
    };
    let mut tasks = JoinSet::new();
    let response = send_upgrade(stream, upgrade_request(endpoint, &key), &mut tasks)
        .await
        .map_err(|error| broken(&error))?;
    let status = response.status();
    let invalid = |why: &str| invalid_response(endpoint, status, why);
    match check_response(status, response.headers(), &derive_accept_key(key.as_bytes())) {
        Ok(subprotocol) => {
            if subprotocol.is_none() {
                tracing::warn!("{} chose no subprotocol; assuming `{SUBPROTOCOL}`", endpoint.label);
            }
            take_upgraded(response).await.map_err(|_| invalid("it closed the connection"))
        }
        Err(UpgradeError::Invalid(why)) => Err(invalid(&why)),
        Err(UpgradeError::WrongStatus) => {
            let (head, body) = response.into_parts();
            let body = read_beginning(body).await;
            Err(status_error(endpoint, head.status, &head.headers, &body))
        }
    }
}

/// Reads the beginning of a body, up to a limit of bytes and of time.
async fn read_beginning(mut body: Incoming) -> Bytes {
    let mut res = BytesMut::new();
    let read = async {
        while res.len() < MAX_ERROR_BODY_BYTES
            && let Some(Ok(frame)) = body.frame().await
        {
            let data = frame.into_data().unwrap_or_default();
            res.extend_from_slice(&data[..data.len().min(MAX_ERROR_BODY_BYTES - res.len())]);
        }
    };
    // The body only adds to the status, so a part of it, or none, is enough.
    let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, read).await;
    res.freeze()
}

/// The upgrade request with this `Sec-WebSocket-Key`.
fn upgrade_request(endpoint: &WebSocketEndpoint, key: &str) -> Request {
    let mut request = Request::new(RequestBody::default());
    *request.uri_mut() = endpoint.target.clone();
    *request.headers_mut() = endpoint.headers.clone();
    let key = HeaderValue::try_from(key).expect("base64 is plain ASCII");
    request.headers_mut().insert(SEC_WEBSOCKET_KEY, key);
    request
}

/// Checks a response; `accept` is the expected `Sec-WebSocket-Accept`. Returns the subprotocol that the server
/// chose.
pub(super) fn check_response(
    status: StatusCode,
    headers: &HeaderMap,
    accept: &str,
) -> Result<Option<&'static str>, UpgradeError> {
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return Err(UpgradeError::WrongStatus);
    }
    let invalid = |message: &str| Err(UpgradeError::Invalid(message.to_owned()));
    if !has_token(headers, &UPGRADE, "websocket") || !has_token(headers, &CONNECTION, "upgrade") {
        return invalid("its response switches to another protocol");
    }
    if headers.get(SEC_WEBSOCKET_ACCEPT).is_none_or(|it| it.as_bytes() != accept.as_bytes()) {
        return invalid("its response does not match the request (Sec-WebSocket-Accept)");
    }
    if headers.contains_key(SEC_WEBSOCKET_EXTENSIONS) {
        return invalid("it chose an extension that was not offered");
    }
    let mut chosen = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    match (chosen.next(), chosen.next()) {
        (None, _) => Ok(None),
        (Some(chosen), None) if chosen.as_bytes() == SUBPROTOCOL.as_bytes() => Ok(Some(SUBPROTOCOL)),
        (Some(_), _) => invalid("it chose another subprotocol than `mcp`"),
    }
}

/// Whether a list header contains this token, in any case.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|it| it.trim().eq_ignore_ascii_case(token))
}

/// The error for a response whose status is not 101.
fn status_error(
    endpoint: &WebSocketEndpoint,
    status: StatusCode,
    headers: &HeaderMap,
    body: &Bytes,
) -> RequestError {
    let error_body = error_body::parse_error_body(body, None, &endpoint.redactor);
    let error = error_body::error_response(status.as_u16(), headers, error_body, &endpoint.redactor);
    // These statuses alone do not say that the upgrade failed.
    match status.as_u16() {
        200..=399 | 426 => invalid_response(endpoint, status, &error.to_string()),
        _ => error.into(),
    }
}

fn invalid_response(endpoint: &WebSocketEndpoint, status: StatusCode, why: &str) -> RequestError {
    RequestError::InvalidResponse {
        status: status.as_u16(),
        problem: format!("{} did not open a WebSocket: {why}", endpoint.label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_host_model::Secret;

    fn endpoint(url: &str) -> UrlEndpoint {
        UrlEndpoint::new(Url::parse(url).unwrap())
    }

    /// Checks a response: status, then `name: value` fields. `ACCEPT` is the expected `Sec-WebSocket-Accept`.
    #[track_caller]
    fn check(status: u16, fields: &[&str], want: Result<Option<&str>, &str>) {
        let mut headers = HeaderMap::new();
        for field in fields {
            let (name, value) = field.split_once(": ").unwrap();
            headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        let got = check_response(status, &headers, "ACCEPT");
        let got = got.map_err(|it| match it {
            UpgradeError::WrongStatus => "another response".to_owned(),
            UpgradeError::Invalid(message) => message,
        });
        assert_eq!(got, want.map_err(str::to_owned));
    }

    const GOOD: [&str; 3] =
        ["upgrade: WebSocket", "connection: keep-alive, Upgrade", "sec-websocket-accept: ACCEPT"];

    fn good_and<'a>(more: &[&'a str]) -> Vec<&'a str> {
        GOOD.iter().chain(more).copied().collect()
    }

    #[test]
    fn hd_123_upgrade_response_is_checked() {
        check(101, &good_and(&["sec-websocket-protocol: mcp"]), Ok(Some("mcp")));
        check(101, &GOOD, Ok(None));
        let other = Err("it chose another subprotocol than `mcp`");
        check(101, &good_and(&["sec-websocket-protocol: graphql-ws"]), other);
        check(101, &good_and(&["sec-websocket-protocol: mcp", "sec-websocket-protocol: x"]), other);
        check(101, &good_and(&["sec-websocket-protocol: MCP"]), other);
        check(
            101,
            &good_and(&["sec-websocket-extensions: permessage-deflate"]),
            Err("it chose an extension that was not offered"),
        );
        check(101, &GOOD[..2], Err("its response does not match the request (Sec-WebSocket-Accept)"));
        check(101, &GOOD[1..], Err("its response switches to another protocol"));
        check(200, &GOOD, Err("another response"));
    }

    /// Checks the request for a URL with these headers. Headers that every request has are left out.
    #[track_caller]
    fn check_request(url: &str, configured: &[(&str, &str)], want: &[&str]) {
        let mut endpoint = endpoint(url);
        endpoint.headers =
            configured.iter().map(|(name, value)| ((*name).to_owned(), Secret::from(*value))).collect();
        let dial = super::super::WebSocketDial::new(&endpoint, &Default::default());
        let got = match dial {
            Err(error) => vec![error.to_string()],
            Ok(dial) => {
                let request = upgrade_request(&dial.0, "KEY");
                let fields = request.headers().iter();
                let fields = fields
                    .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
                let always = ["upgrade:", "connection:", "sec-websocket-", "user-agent: mcp-host-transport"];
                let own = fields.filter(|it| !always.iter().any(|always| it.starts_with(always)));
                [format!("{} {}", request.method(), request.uri())].into_iter().chain(own).collect()
            }
        };
        assert_eq!(got, want);
    }

    #[test]
    fn hd_fr006_request_has_the_urls_path_and_the_headers() {
        check_request("ws://a.example", &[], &["GET /", "host: a.example"]);
        check_request(
            "wss://user:p%40ss@a.example:8443/x/y?q=1#f",
            &[("X-A", "grün")],
            &["GET /x/y?q=1", "host: a.example:8443", "x-a: grün", "authorization: Basic dXNlcjpwQHNz"],
        );
        check_request(
            "ws://user:pw@[::1]:80/a b",
            &[("Authorization", "Bearer b"), ("User-Agent", "me")],
            &["GET /a%20b", "host: [::1]", "authorization: Bearer b", "user-agent: me"],
        );
        check_request("ws://a", &[("Host", "b")], &["the header Host cannot be configured"]);
        check_request(
            "ws://a",
            &[("sec-websocket-key", "b")],
            &["the header sec-websocket-key cannot be configured"],
        );
        check_request(
            "ws://a",
            &[("X", "secret\r\nY: 1")],
            &["the value of the header X contains characters that are not allowed"],
        );
        check_request("http://a/x", &[], &["http://a/x is not a ws or wss URL"]);
    }

    #[test]
    fn configured_session_is_refused() {
        let mut endpoint = endpoint("ws://a");
        endpoint.session_id = Some(Secret::from("s"));
        let refused = super::super::WebSocketDial::new(&endpoint, &Default::default());
        assert_eq!(refused.err().unwrap().to_string(), "a WebSocket has no session that could be resumed");
    }
}

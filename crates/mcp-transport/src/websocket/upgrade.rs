//! The upgrade from HTTP: what is asked, and what the answer means.
//!
//! The subprotocol `mcp` is offered. A server that chooses none is taken at its word, with a warning, for many know
//! nothing of subprotocols; one that chooses another is refused, as RFC 6455 says.

use bytes::{Bytes, BytesMut};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mcp_model::UrlEndpoint;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use url::{Position, Url};

use super::Place;
use crate::error::ConnectError;
use crate::error::end::Fault;
use crate::net::connect::Stream;
use crate::net::head::{self, Head};
use crate::net::{configured, error_body};

/// The subprotocol of MCP over WebSocket.
const SUBPROTOCOL: &str = "mcp";

/// The headers that are the handshake itself: a configured one would break it.
const OURS: [HeaderName; 10] = [
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

/// What a server that opens the WebSocket chose.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subprotocol {
    Ours,
    None,
}

/// What of an answer is no WebSocket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is another answer altogether, and its body may say why.
    Status,
    /// It claims to be one.
    Broken(String),
}

/// The path and query that are asked for.
pub(super) fn target(url: &Url) -> Result<String, ConnectError> {
    let target = &url[Position::BeforePath..Position::AfterQuery];
    // What a URL escapes leaves no space or control character; a request of two lines must not depend on that.
    match target.bytes().all(|it| it.is_ascii_graphic()) && target.starts_with('/') {
        true => Ok(target.to_owned()),
        false => Err(ConnectError::Invalid("the URL's path cannot be asked for".to_owned())),
    }
}

/// The headers of the request, but for its key: the configured ones, who stands in the URL, and ours.
pub(super) fn headers(endpoint: &UrlEndpoint) -> Result<HeaderMap, ConnectError> {
    let mut res = configured::headers(endpoint, &[], &OURS)?;
    let url = &endpoint.url;
    if let Some(credentials) = configured::credentials(url) {
        let mut value = HeaderValue::try_from(format!("Basic {credentials}")).expect("base64 is plain ASCII");
        value.set_sensitive(true);
        res.entry(AUTHORIZATION).or_insert(value);
    }
    let agent = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
    res.entry(USER_AGENT).or_insert(HeaderValue::from_static(agent));
    res.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    res.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    res.insert(UPGRADE, HeaderValue::from_static("websocket"));
    res.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let host = HeaderValue::try_from(host)
        .map_err(|_| ConnectError::Invalid("the URL's host cannot be asked for".to_owned()))?;
    res.insert(HOST, host);
    Ok(res)
}

/// Asks for the upgrade. Gives what the server sent after its answer, or why there is no WebSocket.
pub(super) async fn ask(place: &Place, stream: &mut dyn Stream) -> Result<BytesMut, Fault> {
    let refused = |status, message| Fault { status, message, error: None };
    let key = generate_key();
    let failed = |words: String| refused(None, format!("{} did not open a WebSocket: {words}", place.label));
    let mut stream = stream;
    let asked = request(place, &key);
    let sent = async {
        stream.write_all(&asked).await?;
        stream.flush().await
    };
    // A server that answers before it has read all may have closed its end: what it says counts.
    let sent = sent.await;
    let mut buffer = BytesMut::new();
    let head = loop {
        let head = head::read(&mut stream, &mut buffer).await.map_err(|words| match &sent {
            Ok(()) => failed(words),
            Err(error) => failed(crate::net::tls::io_words(error)),
        })?;
        // Another answer follows.
        if !head.is_interim() {
            break head;
        }
    };
    match judge(&head, &derive_accept_key(key.as_bytes())) {
        Ok(Subprotocol::Ours) => Ok(buffer),
        Ok(Subprotocol::None) => {
            tracing::warn!("{} chose no subprotocol; it is taken to speak `{SUBPROTOCOL}`", place.label);
            Ok(buffer)
        }
        Err(Refusal::Broken(words)) => Err(refused(Some(head.status.as_u16()), failed(words).message)),
        Err(Refusal::Status) => {
            let body = tokio::time::timeout(super::open::EXPLAINING, head.beginning(&mut stream, buffer));
            // What matters is the status.
            let body = body.await.unwrap_or_default();
            Err(refusal(place, &head, &body))
        }
    }
}

fn request(place: &Place, key: &str) -> Vec<u8> {
    let mut res = format!("GET {} HTTP/1.1\r\n", place.target).into_bytes();
    let mut field = |name: &[u8], value: &[u8]| {
        res.extend_from_slice(name);
        res.extend_from_slice(b": ");
        res.extend_from_slice(value);
        res.extend_from_slice(b"\r\n");
    };
    // Host first, as servers expect it. Some look at the case of a name.
    let first = [
        (HOST, "Host"),
        (UPGRADE, "Upgrade"),
        (CONNECTION, "Connection"),
        (SEC_WEBSOCKET_VERSION, "Sec-WebSocket-Version"),
        (SEC_WEBSOCKET_PROTOCOL, "Sec-WebSocket-Protocol"),
    ];
    for (name, written) in &first {
        field(written.as_bytes(), place.headers[name].as_bytes());
    }
    field(b"Sec-WebSocket-Key", key.as_bytes());
    for (name, value) in place.headers.iter().filter(|(name, _)| first.iter().all(|it| it.0 != **name)) {
        field(name.as_str().as_bytes(), value.as_bytes());
    }
    res.extend_from_slice(b"\r\n");
    res
}

/// What an answer means.
pub(super) fn judge(head: &Head, accept: &str) -> Result<Subprotocol, Refusal> {
    if head.status != StatusCode::SWITCHING_PROTOCOLS {
        return Err(Refusal::Status);
    }
    let broken = |words: &str| Err(Refusal::Broken(words.to_owned()));
    if !head.has_token(&UPGRADE, "websocket") || !head.has_token(&CONNECTION, "upgrade") {
        return broken("its answer changes to another protocol");
    }
    if head.headers().get(SEC_WEBSOCKET_ACCEPT).is_none_or(|it| it.as_bytes() != accept.as_bytes()) {
        return broken("its answer does not fit the question (Sec-WebSocket-Accept)");
    }
    if head.headers().contains_key(SEC_WEBSOCKET_EXTENSIONS) {
        return broken("it chose an extension that was not offered");
    }
    let mut chosen = head.headers().get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    match (chosen.next(), chosen.next()) {
        (None, _) => Ok(Subprotocol::None),
        (Some(chosen), None) if chosen.as_bytes() == SUBPROTOCOL.as_bytes() => Ok(Subprotocol::Ours),
        (Some(_), _) => broken("it chose another subprotocol than `mcp`"),
    }
}

/// An answer that is no WebSocket, in words.
fn refusal(place: &Place, head: &Head, body: &Bytes) -> Fault {
    let said = error_body::read(body, None, &place.redactor);
    let mut message = error_body::words(head.status.as_u16(), head.headers(), &said, &place.redactor);
    if matches!(head.status.as_u16(), 200..=399 | 426) {
        message = format!("{} did not open a WebSocket: {message}", place.label);
    }
    Fault { status: Some(head.status.as_u16()), message, error: said.error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_model::Secret;

    fn endpoint(url: &str) -> UrlEndpoint {
        UrlEndpoint::new(Url::parse(url).unwrap())
    }

    /// What an answer means: status, then `name: value` fields; `ACCEPT` is the right one.
    #[track_caller]
    fn check(status: u16, fields: &[&str], want: Result<Subprotocol, &str>) {
        let mut headers = HeaderMap::new();
        for field in fields {
            let (name, value) = field.split_once(": ").unwrap();
            headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        let got = judge(&Head::made(status, headers), "ACCEPT");
        let got = got.map_err(|it| match it {
            Refusal::Status => "another answer".to_owned(),
            Refusal::Broken(words) => words,
        });
        assert_eq!(got, want.map_err(str::to_owned));
    }

    const GOOD: [&str; 3] =
        ["upgrade: WebSocket", "connection: keep-alive, Upgrade", "sec-websocket-accept: ACCEPT"];

    fn and<'a>(more: &[&'a str]) -> Vec<&'a str> {
        GOOD.iter().chain(more).copied().collect()
    }

    #[test]
    fn hd_123_the_answer_to_the_upgrade_is_judged() {
        check(101, &and(&["sec-websocket-protocol: mcp"]), Ok(Subprotocol::Ours));
        check(101, &GOOD, Ok(Subprotocol::None));
        let other = Err("it chose another subprotocol than `mcp`");
        check(101, &and(&["sec-websocket-protocol: graphql-ws"]), other.clone_words());
        check(101, &and(&["sec-websocket-protocol: mcp", "sec-websocket-protocol: x"]), other.clone_words());
        check(101, &and(&["sec-websocket-protocol: MCP"]), other);
        check(
            101,
            &and(&["sec-websocket-extensions: permessage-deflate"]),
            Err("it chose an extension that was not offered"),
        );
        check(101, &GOOD[..2], Err("its answer does not fit the question (Sec-WebSocket-Accept)"));
        check(101, &GOOD[1..], Err("its answer changes to another protocol"));
        check(200, &GOOD, Err("another answer"));
    }

    trait CloneWords {
        fn clone_words(&self) -> Self;
    }

    impl CloneWords for Result<Subprotocol, &'static str> {
        fn clone_words(&self) -> Self {
            self.as_ref().map(|_| Subprotocol::None).map_err(|it| *it)
        }
    }

    /// The request for a URL with these headers, without what is always there.
    #[track_caller]
    fn check_request(url: &str, configured: &[(&str, &str)], want: &[&str]) {
        let mut endpoint = endpoint(url);
        endpoint.headers =
            configured.iter().map(|(name, value)| ((*name).to_owned(), Secret::from(*value))).collect();
        let place = super::super::WebSocketDial::new(&endpoint, &Default::default());
        let got = match place {
            Err(error) => vec![error.to_string()],
            Ok(dial) => {
                let text = String::from_utf8(request(&dial.0, "KEY")).unwrap();
                let text = text.strip_suffix("\r\n\r\n").unwrap().to_owned();
                let always = ["Upgrade:", "Connection:", "Sec-WebSocket-", "user-agent: mcp-transport"];
                let own = text.split("\r\n").filter(|it| !always.iter().any(|always| it.starts_with(always)));
                own.map(str::to_owned).collect()
            }
        };
        assert_eq!(got, want);
    }

    #[test]
    fn hd_fr006_the_request_is_for_the_url_and_has_the_headers() {
        check_request("ws://a.example", &[], &["GET / HTTP/1.1", "Host: a.example"]);
        check_request(
            "wss://user:p%40ss@a.example:8443/x/y?q=1#f",
            &[("X-A", "grün")],
            &[
                "GET /x/y?q=1 HTTP/1.1",
                "Host: a.example:8443",
                "x-a: grün",
                "authorization: Basic dXNlcjpwQHNz",
            ],
        );
        check_request(
            "ws://user:pw@[::1]:80/a b",
            &[("Authorization", "Bearer b"), ("User-Agent", "me")],
            &["GET /a%20b HTTP/1.1", "Host: [::1]", "authorization: Bearer b", "user-agent: me"],
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
            &["the value of the header X holds characters that no header can"],
        );
        check_request("http://a/x", &[], &["http://a/x is no ws or wss URL"]);
    }

    #[test]
    fn a_session_to_take_up_is_refused() {
        let mut endpoint = endpoint("ws://a");
        endpoint.session_id = Some(Secret::from("s"));
        let refused = super::super::WebSocketDial::new(&endpoint, &Default::default());
        assert_eq!(refused.err().unwrap().to_string(), "a WebSocket has no session that could be taken up");
    }
}

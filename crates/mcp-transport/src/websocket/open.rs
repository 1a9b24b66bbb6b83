//! Opening a WebSocket within one timeout: TCP, proxy tunnel, TLS, upgrade.

use hyper_util::client::proxy::matcher::Matcher;
use mcp_host_model::internal::is_loopback;
use parking_lot::Mutex;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::activity::ActivityStream;
use super::endpoint::WebSocketEndpoint;
use super::{socket, upgrade};
use crate::error::net_failure::NetFailure;
use crate::error::request_error::RequestError;
use crate::net::connect::{self, StreamConnector, StreamUse};
use crate::net::proxy;

/// The current step of opening.
#[derive(Clone, Copy)]
enum OpenStep {
    Connecting,
    ProxyTunnel,
    TlsHandshake,
    Upgrade,
}

/// Opens a WebSocket. Cancel-safe.
pub(super) async fn open_socket(
    endpoint: &WebSocketEndpoint,
) -> Result<WebSocketStream<ActivityStream>, RequestError> {
    open_with_proxies(endpoint, &Matcher::from_system()).await
}

/// Opens a WebSocket through the proxy that `proxies` choose, if any.
async fn open_with_proxies(
    endpoint: &WebSocketEndpoint,
    proxies: &Matcher,
) -> Result<WebSocketStream<ActivityStream>, RequestError> {
    let step = Mutex::new(OpenStep::Connecting);
    match tokio::time::timeout(endpoint.connect_timeout, try_open(endpoint, proxies, &step)).await {
        Ok(opened) => opened,
        Err(_) => {
            let late = |what: &str| format!("{what} within {} s", endpoint.connect_timeout.as_secs_f64());
            Err(not_connected(
                endpoint,
                match *step.lock() {
                    OpenStep::Connecting => NetFailure::Other(late("no connection")),
                    OpenStep::ProxyTunnel => NetFailure::Proxy(late("no response from the proxy")),
                    OpenStep::TlsHandshake => NetFailure::Other(late("no end of the TLS handshake")),
                    OpenStep::Upgrade => NetFailure::Other(late("no response to the upgrade")),
                },
            ))
        }
    }
}

/// Opens a WebSocket without a timeout. Sets `step` to the current step.
async fn try_open(
    endpoint: &WebSocketEndpoint,
    proxies: &Matcher,
    step: &Mutex<OpenStep>,
) -> Result<WebSocketStream<ActivityStream>, RequestError> {
    let failed = |failure| not_connected(endpoint, failure);
    let set_step = |next| *step.lock() = next;
    let url = &endpoint.url;
    let proxy = if is_loopback(url) { None } else { proxy::find_proxy(proxies, url).map_err(failed)? };
    let connector = StreamConnector {
        url,
        proxy: proxy.as_ref(),
        stream_use: StreamUse::WebSocket,
        authorities: &endpoint.authorities,
        tls_config: None,
    };
    let on_step = |step| {
        set_step(match step {
            connect::ConnectStep::ProxyTunnel => OpenStep::ProxyTunnel,
            connect::ConnectStep::TlsHandshake => OpenStep::TlsHandshake,
        });
    };
    let stream = connector.connect(&on_step).await.map_err(failed)?;
    set_step(OpenStep::Upgrade);
    let (stream, rest) = match upgrade::upgrade(endpoint, stream).await {
        Err(error @ RequestError::NoWebSocket { .. }) if proxy.is_none() => {
            let speaks_tls = connect::speaks_tls(url, &endpoint.authorities).await;
            let failure = NetFailure::SpeaksTls(error.to_string());
            return Err(if speaks_tls { failed(failure) } else { error });
        }
        upgraded => upgraded?,
    };
    let config = socket::socket_config(endpoint.max_message_bytes);
    Ok(WebSocketStream::from_partially_read(
        ActivityStream::new(stream, endpoint.max_message_bytes),
        rest.to_vec(),
        Role::Client,
        Some(config),
    )
    .await)
}

fn not_connected(endpoint: &WebSocketEndpoint, failure: NetFailure) -> RequestError {
    RequestError::NotConnected { server: endpoint.label.clone(), failure }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use mcp_host_model::{Limits, UrlEndpoint};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

    use std::time::Duration;

    use super::super::WebSocketDial;
    use super::*;
    use crate::net::tests::read_head;
    use crate::net::url_endpoint::UrlOptions;

    /// Opens a WebSocket at `url` through a proxy that responds with `answer` and then acts as the server. Returns the
    /// request to the proxy, and the result.
    async fn open_through_proxy(url: &str, answer: &str) -> (String, Result<String, String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxies = format!("user:hunter2@{}", listener.local_addr().unwrap());
        let matcher = Matcher::builder().all(proxies).build();
        let mut limits = Limits::default();
        limits.connect = Duration::from_millis(300);
        let options = UrlOptions { limits, ..UrlOptions::default() };
        let WebSocketDial(endpoint) =
            WebSocketDial::new(&UrlEndpoint::new(url.parse().unwrap()), &options).unwrap();
        let proxy = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read_head(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            let upgrade = read_head(&mut stream).await;
            if let Some(key) = upgrade.lines().find_map(|it| it.strip_prefix("Sec-Websocket-Key: ")) {
                let accept = derive_accept_key(key.as_bytes());
                let head =
                    "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ";
                let mut response = format!("{head}{accept}\r\n\r\n").into_bytes();
                // The first message may follow the response in one write.
                response.extend(b"\x01\x02he\x80\x03llo");
                stream.write_all(&response).await.unwrap();
                let _ = stream.read_u8().await;
            }
            request
        };
        let opening = async {
            match open_with_proxies(&endpoint, &matcher).await {
                Ok(mut socket) => Ok(socket.next().await.unwrap().unwrap().into_text().unwrap().to_string()),
                Err(error) => Err(error.to_string()),
            }
        };
        let (request, opened) = tokio::join!(proxy, opening);
        let port = listener.local_addr().unwrap().port().to_string();
        (request, opened.map_err(|it| it.replace(&port, "PORT")))
    }

    #[tokio::test]
    async fn websocket_is_opened_through_a_proxy_tunnel() {
        let (request, opened) =
            open_through_proxy("ws://mcp.example:8080/ws?key=1", "HTTP/1.1 200 Connected\r\nVia: x\r\n\r\n")
                .await;
        let want = "CONNECT mcp.example:8080 HTTP/1.1\r\nHost: mcp.example:8080\r\nProxy-Authorization: Basic \
                    dXNlcjpodW50ZXIy\r\n\r\n";
        assert_eq!((request.as_str(), opened.as_deref()), (want, Ok("hello")));
    }

    #[tokio::test]
    async fn hd_sc5_proxy_refusal_is_reported_without_its_password() {
        for (answer, want) in [
            ("HTTP/1.1 407 No\r\n\r\n", "requires authorization (HTTP 407)"),
            ("HTTP/1.1 502 No\r\n\r\n", "refused the tunnel (HTTP 502)"),
            ("HTTP/1.1 200 Connected\r\n\r\n<html>", "sent data before the tunnel was used"),
        ] {
            let (_, opened) = open_through_proxy("wss://mcp.example/ws", answer).await;
            let want = format!("cannot connect to wss://mcp.example/ws: the proxy 127.0.0.1:PORT {want}");
            assert_eq!(opened, Err(want));
        }
        let (_, opened) = open_through_proxy("wss://mcp.example/ws", "HTTP/1.1 200 Connected\r\n\r\n").await;
        let want = "cannot connect to wss://mcp.example/ws: no end of the TLS handshake within 0.3 s";
        assert_eq!(opened, Err(want.to_owned()));
    }
}

//! From a URL to an open WebSocket, within one limit of time: TCP, a proxy's tunnel, TLS, the upgrade.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use url::Host;

use super::observed::{Observed, Stream};
use super::proxy::Speaks;
use super::{Place, proxy, reach, socket, upgrade};
use crate::Fault;
use crate::web::{nearby, tls};

/// How long the body of a refusal may take: what matters is the status.
pub(super) const EXPLAINING: Duration = Duration::from_secs(1);

/// How far an opening has come.
#[derive(Clone, Copy)]
enum Step {
    Connecting,
    Tunnelling,
    Securing,
    Asking,
}

/// Opens a WebSocket. Dropping the future gives it up.
pub(super) async fn open(place: &Place) -> Result<WebSocketStream<Observed>, Fault> {
    open_by(place, &Matcher::from_system()).await
}

async fn open_by(place: &Place, proxies: &Matcher) -> Result<WebSocketStream<Observed>, Fault> {
    let step = Mutex::new(Step::Connecting);
    match tokio::time::timeout(place.connect, attempt(place, proxies, &step)).await {
        Ok(opened) => opened,
        Err(_) => {
            let why = match *step.lock().unwrap_or_else(PoisonError::into_inner) {
                Step::Connecting => "no connection",
                Step::Tunnelling => "no answer from the proxy",
                Step::Securing => "no end of the TLS handshake",
                Step::Asking => "no answer to the upgrade",
            };
            let limit = place.connect.as_secs_f64();
            Err(unreachable(place, &format!("{why} within {limit} s")))
        }
    }
}

async fn attempt(
    place: &Place,
    proxies: &Matcher,
    step: &Mutex<Step>,
) -> Result<WebSocketStream<Observed>, Fault> {
    let failed = |why: String| unreachable(place, &why);
    let reached = |next| *step.lock().unwrap_or_else(PoisonError::into_inner) = next;
    let stream = connect(place, proxies, &reached).await.map_err(failed)?;
    let mut stream = Observed::new(stream);
    reached(Step::Asking);
    let rest = upgrade::ask(place, &mut stream).await?;
    let settings = socket::settings(place.message_bytes);
    Ok(WebSocketStream::from_partially_read(stream, rest.to_vec(), Role::Client, Some(settings)).await)
}

/// A stream to the server, over TLS where the URL says so.
async fn connect(
    place: &Place,
    proxies: &Matcher,
    reached: &impl Fn(Step),
) -> Result<Box<dyn Stream>, String> {
    let url = &place.url;
    let host = url.host().ok_or_else(|| "the URL names no host".to_owned())?.to_owned();
    let port = url.port_or_known_default().ok_or_else(|| "the URL names no port".to_owned())?;
    let proxy = match nearby::is_loopback(url) {
        true => None,
        false => proxy::find(proxies, url)?,
    };
    let mut stream: Box<dyn Stream> = match proxy {
        None => Box::new(reach::connect(&host, port).await?),
        Some(proxy) => {
            let told = |it| format!("{}: {it}", proxy.label());
            let tcp = reach::connect(&proxy.host, proxy.port).await.map_err(told)?;
            reached(Step::Tunnelling);
            match &proxy.speaks {
                Speaks::Socks(socks) => Box::new(socks.through(tcp, url).await.map_err(told)?),
                Speaks::Http(known) => {
                    let mut stream: Box<dyn Stream> = Box::new(tcp);
                    proxy.tunnel(&mut *stream, known.as_ref(), url).await?;
                    stream
                }
                Speaks::Https(known) => {
                    let mut stream = secure(place, &proxy.host, Box::new(tcp)).await.map_err(told)?;
                    proxy.tunnel(&mut *stream, known.as_ref(), url).await?;
                    stream
                }
            }
        }
    };
    if url.scheme() == "wss" {
        reached(Step::Securing);
        stream = secure(place, &host, stream).await?;
    }
    Ok(stream)
}

/// TLS over a stream, with a certificate for `host`.
async fn secure(
    place: &Place,
    host: &Host<String>,
    stream: Box<dyn Stream>,
) -> Result<Box<dyn Stream>, String> {
    let name = match host {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|_| "the host's name can stand in no certificate".to_owned())?,
        Host::Ipv4(address) => ServerName::IpAddress((*address).into()),
        Host::Ipv6(address) => ServerName::IpAddress((*address).into()),
    };
    let config = tls::client_config(&place.authorities)?;
    let secured = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    Ok(Box::new(secured.map_err(|it| tls::io_words(&it))?))
}

fn unreachable(place: &Place, why: &str) -> Fault {
    let message = place.redactor.clean(&format!("cannot connect to {}: {why}", place.label), 600);
    Fault { status: None, message, error: None }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use mcp_model::{Limits, UrlEndpoint};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

    use super::super::WebSocketDial;
    use super::*;
    use crate::DialOptions;

    async fn head(stream: &mut TcpStream) -> String {
        let mut res = Vec::new();
        while !res.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => res.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8_lossy(&res).into_owned()
    }

    /// Opens a WebSocket at `url` through a proxy that answers so, and is the server behind itself. What the proxy was
    /// asked, and what came of it.
    async fn through(url: &str, answer: &str) -> (String, Result<String, String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxies = format!("user:hunter2@{}", listener.local_addr().unwrap());
        let matcher = Matcher::builder().all(proxies).build();
        let limits = Limits { connect: Duration::from_millis(300), ..Limits::default() };
        let options = DialOptions { limits, ..DialOptions::default() };
        let WebSocketDial(place) =
            WebSocketDial::new(&UrlEndpoint::new(url.parse().unwrap()), &options).unwrap();
        let proxy = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let asked = head(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            let upgrade = head(&mut stream).await;
            if let Some(key) = upgrade.lines().find_map(|it| it.strip_prefix("Sec-WebSocket-Key: ")) {
                let accept = derive_accept_key(key.as_bytes());
                let head =
                    "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ";
                let mut said = format!("{head}{accept}\r\n\r\n").into_bytes();
                // Its first message comes with the answer, as it may.
                said.extend(b"\x01\x02he\x80\x03llo");
                stream.write_all(&said).await.unwrap();
                let _ = stream.read_u8().await;
            }
            asked
        };
        let opening = async {
            match open_by(&place, &matcher).await {
                Ok(mut socket) => Ok(socket.next().await.unwrap().unwrap().into_text().unwrap().to_string()),
                Err(fault) => Err(fault.message),
            }
        };
        let (asked, opened) = tokio::join!(proxy, opening);
        let port = listener.local_addr().unwrap().port().to_string();
        (asked, opened.map_err(|it| it.replace(&port, "PORT")))
    }

    #[tokio::test]
    async fn a_websocket_is_opened_through_a_tunnel() {
        let (asked, opened) =
            through("ws://mcp.example:8080/ws?key=1", "HTTP/1.1 200 Connected\r\nVia: x\r\n\r\n").await;
        let want = "CONNECT mcp.example:8080 HTTP/1.1\r\nHost: mcp.example:8080\r\nProxy-Authorization: Basic \
                    dXNlcjpodW50ZXIy\r\n\r\n";
        assert_eq!((asked.as_str(), opened.as_deref()), (want, Ok("hello")));
    }

    #[tokio::test]
    async fn hd_sc5_a_proxy_that_refuses_is_told_without_its_password() {
        for (answer, want) in [
            ("HTTP/1.1 407 No\r\n\r\n", "wants authorization (HTTP 407)"),
            ("HTTP/1.1 502 No\r\n\r\n", "refuses to connect (HTTP 502)"),
            ("HTTP/1.1 200 Connected\r\n\r\n<html>", "sent more than an answer"),
        ] {
            let (_, opened) = through("wss://mcp.example/ws", answer).await;
            let want = format!("cannot connect to wss://mcp.example/ws: the proxy 127.0.0.1:PORT {want}");
            assert_eq!(opened, Err(want));
        }
        let (_, opened) = through("wss://mcp.example/ws", "HTTP/1.1 200 Connected\r\n\r\n").await;
        let want = "cannot connect to wss://mcp.example/ws: no end of the TLS handshake within 0.3 s";
        assert_eq!(opened, Err(want.to_owned()));
    }
}

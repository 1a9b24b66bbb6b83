//! From a URL to a stream of bytes to its server, the same for every wire: TCP, a proxy where one stands before the
//! server, TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

#[cfg(any(feature = "http", feature = "sse"))]
use http::HeaderValue;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::{Host, Url};

use super::address_policy;
use super::proxy::{Proxy, Speaks};
use super::tls::{self, Authorities};

/// How long a connection for requests is silent before the system asks whether its peer is still there, how long it waits
/// between two questions, and how often it asks.
const ALIVE: Duration = Duration::from_secs(15);
const QUESTIONS: u32 = 3;

/// How long what was sent on one may stay without the peer's system confirming it.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const CONFIRMED: Duration = Duration::from_secs(30);

/// What bytes can be sent over and come from.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A stream to a server.
pub(crate) enum Line {
    Tcp(TcpStream),
    Tls(Box<TlsStream<Line>>),
    /// A tunnel through a proxy that is spoken to over TLS.
    Through(Box<dyn Stream>),
}

/// How far the way has been gone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Tunnelling,
    Securing,
}

/// What goes over a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carries {
    /// Requests: an HTTP proxy can be asked for each, and the system watches over a peer that has gone.
    Requests,
    /// A conversation: an HTTP proxy has to let it through, and the wire itself watches over its peer.
    Conversation,
}

/// The way to a server.
pub(crate) struct Way<'a> {
    pub(crate) url: &'a Url,
    pub(crate) proxy: Option<&'a Proxy>,
    pub(crate) carries: Carries,
    /// Trusted besides the system's.
    pub(crate) authorities: &'a Authorities,
    /// How the server itself is spoken to over TLS; made of the authorities where it is not given.
    pub(crate) config: Option<&'a Arc<ClientConfig>>,
}

/// Is TLS spoken to this server?
pub(crate) fn is_secured(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "wss")
}

/// The HTTP proxy that is asked for each request to this URL, and as whom; `None` where requests go to the server itself.
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) fn asked<'a>(proxy: Option<&'a Proxy>, url: &Url) -> Option<Option<&'a HeaderValue>> {
    match &proxy.filter(|_| !is_secured(url))?.speaks {
        Speaks::Http(known) | Speaks::Https(known) => Some(known.as_ref()),
        Speaks::Socks(_) => None,
    }
}

impl Way<'_> {
    /// Goes it. Says in words why it cannot be gone. Dropping the future gives it up.
    pub(crate) async fn go(&self, reached: &(impl Fn(Step) + Sync)) -> Result<Line, String> {
        let url = self.url;
        let host = url.host().ok_or_else(|| "the URL names no host".to_owned())?.to_owned();
        let port = url.port_or_known_default().ok_or_else(|| "the URL names no port".to_owned())?;
        let line = match self.proxy {
            None => Line::Tcp(self.reach(&host, port).await?),
            Some(proxy) => self.through(proxy, reached).await?,
        };
        if !is_secured(url) {
            return Ok(line);
        }
        reached(Step::Securing);
        match self.config {
            Some(config) => secure(Arc::clone(config), &host, line).await,
            None => secure(Arc::new(tls::client_config(self.authorities)?), &host, line).await,
        }
    }

    async fn reach(&self, host: &Host<String>, port: u16) -> Result<TcpStream, String> {
        let stream = address_policy::connect(host, port).await?;
        if self.carries == Carries::Requests {
            watch(&stream);
        }
        Ok(stream)
    }

    async fn through(&self, proxy: &Proxy, reached: &(impl Fn(Step) + Sync)) -> Result<Line, String> {
        let told = |it| format!("{}: {it}", proxy.label());
        let tcp = self.reach(&proxy.host, proxy.port).await.map_err(told)?;
        reached(Step::Tunnelling);
        let (line, known) = match &proxy.speaks {
            Speaks::Socks(socks) => return Ok(Line::Tcp(socks.through(tcp, self.url).await.map_err(told)?)),
            Speaks::Http(known) => (Line::Tcp(tcp), known),
            Speaks::Https(known) => {
                let config = Arc::new(tls::client_config(self.authorities)?);
                let line = secure(config, &proxy.host, Line::Tcp(tcp)).await.map_err(told)?;
                (Line::Through(Box::new(line)), known)
            }
        };
        if self.carries == Carries::Conversation || is_secured(self.url) {
            return proxy.tunnel(line, known.as_ref(), self.url).await;
        }
        Ok(line)
    }
}

/// Has the system look after a connection on which nothing comes. Where it cannot, a peer that has gone is noticed later.
fn watch(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let alive = TcpKeepalive::new().with_time(ALIVE).with_interval(ALIVE).with_retries(QUESTIONS);
    let _ = socket.set_tcp_keepalive(&alive);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let _ = socket.set_tcp_user_timeout(Some(CONFIRMED));
}

/// TLS over a stream, with a certificate for `host`.
async fn secure(config: Arc<ClientConfig>, host: &Host<String>, line: Line) -> Result<Line, String> {
    let name = match host {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|_| "the host's name can stand in no certificate".to_owned())?,
        Host::Ipv4(address) => ServerName::IpAddress((*address).into()),
        Host::Ipv6(address) => ServerName::IpAddress((*address).into()),
    };
    let secured = TlsConnector::from(config).connect(name, line).await;
    Ok(Line::Tls(Box::new(secured.map_err(|it| tls::io_words(&it))?)))
}

impl Line {
    /// Was it agreed upon to speak HTTP/2?
    #[cfg(any(feature = "http", feature = "sse"))]
    pub(crate) fn speaks_http2(&self) -> bool {
        match self {
            Line::Tls(it) => it.get_ref().1.alpn_protocol() == Some(b"h2"),
            Line::Tcp(_) | Line::Through(_) => false,
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Line::Tcp(it) => Pin::new(it).poll_read(context, into),
            Line::Tls(it) => Pin::new(it).poll_read(context, into),
            Line::Through(it) => Pin::new(it).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Line::Tcp(it) => Pin::new(it).poll_write(context, bytes),
            Line::Tls(it) => Pin::new(it).poll_write(context, bytes),
            Line::Through(it) => Pin::new(it).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Line::Tcp(it) => Pin::new(it).poll_write_vectored(context, bytes),
            Line::Tls(it) => Pin::new(it).poll_write_vectored(context, bytes),
            Line::Through(it) => Pin::new(it).poll_write_vectored(context, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Line::Tcp(it) => it.is_write_vectored(),
            Line::Tls(it) => it.is_write_vectored(),
            Line::Through(it) => it.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Line::Tcp(it) => Pin::new(it).poll_flush(context),
            Line::Tls(it) => Pin::new(it).poll_flush(context),
            Line::Through(it) => Pin::new(it).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Line::Tcp(it) => Pin::new(it).poll_shutdown(context),
            Line::Tls(it) => Pin::new(it).poll_shutdown(context),
            Line::Through(it) => Pin::new(it).poll_shutdown(context),
        }
    }
}

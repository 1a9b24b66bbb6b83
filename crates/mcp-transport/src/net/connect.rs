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

use super::proxy::{Proxy, ProxyProtocol};
use super::tcp;
use super::tls::{self, Authorities};

/// How long a connection for requests is silent before the system asks whether its peer is still there, how long it waits
/// between two questions, and how often it asks.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 3;

/// How long what was sent on one may stay without the peer's system confirming it.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(30);

/// What bytes can be sent over and come from.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// A stream to a server.
pub(crate) enum NetStream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<NetStream>>),
    /// A tunnel through a proxy that is spoken to over TLS.
    Tunnel(Box<dyn ByteStream>),
}

/// How far the way has been gone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ConnectStep {
    Tunnelling,
    Securing,
}

/// What goes over a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamUse {
    /// Requests: an HTTP proxy can be asked for each, and the system watches over a peer that has gone.
    Requests,
    /// A conversation: an HTTP proxy has to let it through, and the wire itself watches over its peer.
    WebSocket,
}

/// The way to a server.
pub(crate) struct Connector<'a> {
    pub(crate) url: &'a Url,
    pub(crate) proxy: Option<&'a Proxy>,
    pub(crate) stream_use: StreamUse,
    /// Trusted besides the system's.
    pub(crate) authorities: &'a Authorities,
    /// How the server itself is spoken to over TLS; made of the authorities where it is not given.
    pub(crate) tls_config: Option<&'a Arc<ClientConfig>>,
}

/// Is TLS spoken to this server?
pub(crate) fn uses_tls(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "wss")
}

/// The HTTP proxy that is asked for each request to this URL, and as whom; `None` where requests go to the server itself.
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) fn forward_proxy<'a>(proxy: Option<&'a Proxy>, url: &Url) -> Option<Option<&'a HeaderValue>> {
    match &proxy.filter(|_| !uses_tls(url))?.protocol {
        ProxyProtocol::Http(known) | ProxyProtocol::Https(known) => Some(known.as_ref()),
        ProxyProtocol::Socks(_) => None,
    }
}

impl Connector<'_> {
    /// Goes it. Says in words why it cannot be gone. Dropping the future gives it up.
    pub(crate) async fn connect(&self, reached: &(impl Fn(ConnectStep) + Sync)) -> Result<NetStream, String> {
        let url = self.url;
        let host = url.host().ok_or_else(|| "the URL names no host".to_owned())?.to_owned();
        let port = url.port_or_known_default().ok_or_else(|| "the URL names no port".to_owned())?;
        let line = match self.proxy {
            None => NetStream::Tcp(self.connect_tcp(&host, port).await?),
            Some(proxy) => self.connect_through_proxy(proxy, reached).await?,
        };
        if !uses_tls(url) {
            return Ok(line);
        }
        reached(ConnectStep::Securing);
        match self.tls_config {
            Some(config) => start_tls(Arc::clone(config), &host, line).await,
            None => start_tls(Arc::new(tls::client_config(self.authorities)?), &host, line).await,
        }
    }

    async fn connect_tcp(&self, host: &Host<String>, port: u16) -> Result<TcpStream, String> {
        let stream = tcp::connect(host, port).await?;
        if self.stream_use == StreamUse::Requests {
            enable_keepalive(&stream);
        }
        Ok(stream)
    }

    async fn connect_through_proxy(
        &self,
        proxy: &Proxy,
        reached: &(impl Fn(ConnectStep) + Sync),
    ) -> Result<NetStream, String> {
        let told = |it| format!("{}: {it}", proxy.label());
        let tcp = self.connect_tcp(&proxy.host, proxy.port).await.map_err(told)?;
        reached(ConnectStep::Tunnelling);
        let (line, known) = match &proxy.protocol {
            ProxyProtocol::Socks(socks) => {
                return Ok(NetStream::Tcp(socks.connect(tcp, self.url).await.map_err(told)?));
            }
            ProxyProtocol::Http(known) => (NetStream::Tcp(tcp), known),
            ProxyProtocol::Https(known) => {
                let config = Arc::new(tls::client_config(self.authorities)?);
                let line = start_tls(config, &proxy.host, NetStream::Tcp(tcp)).await.map_err(told)?;
                (NetStream::Tunnel(Box::new(line)), known)
            }
        };
        if self.stream_use == StreamUse::WebSocket || uses_tls(self.url) {
            return proxy.tunnel(line, known.as_ref(), self.url).await;
        }
        Ok(line)
    }
}

/// Has the system look after a connection on which nothing comes. Where it cannot, a peer that has gone is noticed later.
fn enable_keepalive(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let alive = TcpKeepalive::new()
        .with_time(KEEPALIVE_INTERVAL)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    let _ = socket.set_tcp_keepalive(&alive);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let _ = socket.set_tcp_user_timeout(Some(ACKNOWLEDGE_TIMEOUT));
}

/// TLS over a stream, with a certificate for `host`.
async fn start_tls(
    config: Arc<ClientConfig>,
    host: &Host<String>,
    line: NetStream,
) -> Result<NetStream, String> {
    let name = match host {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|_| "the host's name can stand in no certificate".to_owned())?,
        Host::Ipv4(address) => ServerName::IpAddress((*address).into()),
        Host::Ipv6(address) => ServerName::IpAddress((*address).into()),
    };
    let secured = TlsConnector::from(config).connect(name, line).await;
    Ok(NetStream::Tls(Box::new(secured.map_err(|it| tls::describe_io(&it))?)))
}

impl NetStream {
    /// Was it agreed upon to speak HTTP/2?
    #[cfg(any(feature = "http", feature = "sse"))]
    pub(crate) fn speaks_http2(&self) -> bool {
        match self {
            NetStream::Tls(it) => it.get_ref().1.alpn_protocol() == Some(b"h2"),
            NetStream::Tcp(_) | NetStream::Tunnel(_) => false,
        }
    }
}

impl AsyncRead for NetStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            NetStream::Tcp(it) => Pin::new(it).poll_read(context, into),
            NetStream::Tls(it) => Pin::new(it).poll_read(context, into),
            NetStream::Tunnel(it) => Pin::new(it).poll_read(context, into),
        }
    }
}

impl AsyncWrite for NetStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            NetStream::Tcp(it) => Pin::new(it).poll_write(context, bytes),
            NetStream::Tls(it) => Pin::new(it).poll_write(context, bytes),
            NetStream::Tunnel(it) => Pin::new(it).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            NetStream::Tcp(it) => Pin::new(it).poll_write_vectored(context, bytes),
            NetStream::Tls(it) => Pin::new(it).poll_write_vectored(context, bytes),
            NetStream::Tunnel(it) => Pin::new(it).poll_write_vectored(context, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            NetStream::Tcp(it) => it.is_write_vectored(),
            NetStream::Tls(it) => it.is_write_vectored(),
            NetStream::Tunnel(it) => it.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            NetStream::Tcp(it) => Pin::new(it).poll_flush(context),
            NetStream::Tls(it) => Pin::new(it).poll_flush(context),
            NetStream::Tunnel(it) => Pin::new(it).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            NetStream::Tcp(it) => Pin::new(it).poll_shutdown(context),
            NetStream::Tls(it) => Pin::new(it).poll_shutdown(context),
            NetStream::Tunnel(it) => Pin::new(it).poll_shutdown(context),
        }
    }
}

//! Connecting to the server of a URL: TCP, a proxy if there is one, TLS.

use std::sync::Arc;
use std::time::Duration;

#[cfg(any(feature = "http", feature = "sse"))]
use http::HeaderValue;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::proxy::{Proxy, ProxyProtocol};
use super::stream::NetStream;
use super::tcp;
use super::tls::{self, Authorities, uses_tls};
use crate::error::net_failure::NetFailure;

/// The idle time before TCP keep-alive probes an HTTP connection, and the interval between probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The number of unanswered probes that end the connection.
const KEEPALIVE_RETRIES: u32 = 3;

/// Maximum time that sent bytes of an HTTP connection stay unacknowledged.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(30);

/// A step of connecting that is reported, after TCP.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ConnectStep {
    ProxyTunnel,
    TlsHandshake,
}

/// The use of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamUse {
    /// Requests: an HTTP proxy forwards each of them, and TCP keep-alive detects a dead peer.
    Requests,
    /// A WebSocket: an HTTP proxy has to open a tunnel, and pings detect a dead peer.
    WebSocket,
}

/// Connects to the server of a URL.
pub(crate) struct StreamConnector<'a> {
    pub(crate) url: &'a Url,
    pub(crate) proxy: Option<&'a Proxy>,
    pub(crate) stream_use: StreamUse,
    /// Trusted in addition to the system's.
    pub(crate) authorities: &'a Authorities,
    /// TLS configuration for the server. Built from `authorities` if it is `None`.
    pub(crate) tls_config: Option<&'a Arc<ClientConfig>>,
}

/// The `Proxy-Authorization` of requests to this URL that an HTTP proxy forwards. `None` if no HTTP proxy forwards
/// them; `Some(None)` if the proxy needs no authorization.
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) fn proxy_authorization<'a>(
    proxy: Option<&'a Proxy>,
    url: &Url,
) -> Option<Option<&'a HeaderValue>> {
    match &proxy.filter(|_| !uses_tls(url))?.protocol {
        ProxyProtocol::Http(authorization) | ProxyProtocol::Https(authorization) => {
            Some(authorization.as_ref())
        }
        ProxyProtocol::Socks(_) => None,
    }
}

impl StreamConnector<'_> {
    /// Connects, and reports each step after TCP. Cancel-safe.
    pub(crate) async fn connect(
        &self,
        on_step: &(impl Fn(ConnectStep) + Sync),
    ) -> Result<NetStream, NetFailure> {
        let url = self.url;
        let host = url.host().ok_or("the URL has no host")?.to_owned();
        let port = url.port_or_known_default().ok_or("the URL has no port")?;
        let stream = match self.proxy {
            None => Box::new(self.connect_tcp(&host, port).await?),
            Some(proxy) => self.connect_through_proxy(proxy, on_step).await?,
        };
        if !uses_tls(url) {
            return Ok(stream);
        }
        on_step(ConnectStep::TlsHandshake);
        match self.tls_config {
            Some(config) => start_tls(Arc::clone(config), &host, stream).await,
            None => start_tls(Arc::new(tls::client_config(self.authorities).await?), &host, stream).await,
        }
    }

    async fn connect_tcp(&self, host: &Host<String>, port: u16) -> Result<TcpStream, NetFailure> {
        let stream = tcp::connect(host, port).await?;
        if self.stream_use == StreamUse::Requests {
            enable_keepalive(&stream);
        }
        Ok(stream)
    }

    async fn connect_through_proxy(
        &self,
        proxy: &Proxy,
        on_step: &(impl Fn(ConnectStep) + Sync),
    ) -> Result<NetStream, NetFailure> {
        let failed = |failure| proxy.connection_failure(failure);
        let tcp = self.connect_tcp(&proxy.host, proxy.port).await.map_err(failed)?;
        on_step(ConnectStep::ProxyTunnel);
        let (stream, authorization): (NetStream, _) = match &proxy.protocol {
            ProxyProtocol::Socks(socks) => {
                return Ok(Box::new(socks.connect(tcp, self.url).await.map_err(failed)?));
            }
            ProxyProtocol::Http(authorization) => (Box::new(tcp), authorization),
            ProxyProtocol::Https(authorization) => {
                let config = Arc::new(tls::client_config(self.authorities).await?);
                let stream = start_tls(config, &proxy.host, Box::new(tcp)).await.map_err(failed)?;
                (stream, authorization)
            }
        };
        if self.stream_use == StreamUse::WebSocket || uses_tls(self.url) {
            return proxy.tunnel(stream, authorization.as_ref(), self.url).await;
        }
        Ok(stream)
    }
}

/// Timeout of [`speaks_tls`].
const TLS_PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Whether the port of a URL without TLS speaks TLS. For the message about a server that did not respond;
/// sends no request.
pub(crate) async fn speaks_tls(url: &Url, authorities: &Authorities) -> bool {
    let mut tls_url = url.clone();
    let port = url.port_or_known_default();
    let scheme = if matches!(url.scheme(), "ws" | "wss") { "wss" } else { "https" };
    if uses_tls(url) || tls_url.set_scheme(scheme).is_err() || tls_url.set_port(port).is_err() {
        return false;
    }
    let stream_use = StreamUse::Requests;
    let connector = StreamConnector { url: &tls_url, proxy: None, stream_use, authorities, tls_config: None };
    match tokio::time::timeout(TLS_PROBE_TIMEOUT, connector.connect(&|_| {})).await {
        Ok(Ok(_)) => true,
        Ok(Err(failure)) => failure.is_from_tls_server(),
        Err(_) => false,
    }
}

/// Enables TCP keep-alive. If the system refuses it, a dead peer is detected later.
fn enable_keepalive(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_INTERVAL)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    let _ = socket.set_tcp_keepalive(&keepalive);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let _ = socket.set_tcp_user_timeout(Some(ACKNOWLEDGE_TIMEOUT));
}

/// Starts TLS on a stream, with a certificate for `host`.
async fn start_tls(
    config: Arc<ClientConfig>,
    host: &Host<String>,
    stream: NetStream,
) -> Result<NetStream, NetFailure> {
    let name = match host {
        Host::Domain(name) => {
            ServerName::try_from(name.clone()).map_err(|_| "the host's name is not valid in a certificate")?
        }
        Host::Ipv4(address) => ServerName::IpAddress((*address).into()),
        Host::Ipv6(address) => ServerName::IpAddress((*address).into()),
    };
    let stream = TlsConnector::from(config).connect(name, stream).await;
    Ok(Box::new(stream.map_err(|error| tls::root_cause(&error))?))
}

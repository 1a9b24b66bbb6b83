//! SOCKS proxies, versions 4 and 5. hyper-util implements the protocol.
//!
//! With `socks4` and `socks5` names are resolved here, with `socks4a` and `socks5h` by the proxy, as in curl.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;
use url::{Host, Url};

use crate::error::net_failure::NetFailure;

/// The settings of a SOCKS proxy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SocksProxy {
    version: SocksVersion,
    name_resolution: NameResolution,
    /// User and password.
    credentials: Option<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocksVersion {
    Four,
    Five,
}

/// Where host names are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameResolution {
    Local,
    Proxy,
}

impl SocksProxy {
    /// The settings for the scheme of a proxy's URL; `None` for another scheme.
    pub(crate) fn from_scheme(scheme: &str, credentials: Option<(&str, &str)>) -> Option<SocksProxy> {
        let (version, name_resolution) = match scheme {
            "socks4" => (SocksVersion::Four, NameResolution::Local),
            "socks4a" => (SocksVersion::Four, NameResolution::Proxy),
            "socks5" => (SocksVersion::Five, NameResolution::Local),
            "socks5h" => (SocksVersion::Five, NameResolution::Proxy),
            _ => return None,
        };
        let credentials = credentials.map(|(user, password)| (user.to_owned(), password.to_owned()));
        Some(SocksProxy { version, name_resolution, credentials })
    }

    /// Opens a tunnel to the URL's host over a connection to the proxy.
    ///
    /// The client must send first on the tunnel: bytes that arrive together with the proxy's response are lost.
    pub(crate) async fn connect(&self, stream: TcpStream, url: &Url) -> Result<TcpStream, NetFailure> {
        let invalid = || NetFailure::from("the URL has no host and port for a SOCKS request");
        let (host, port) = url.host().zip(url.port_or_known_default()).ok_or_else(invalid)?;
        let host = match (host, self.name_resolution) {
            (Host::Domain(name), NameResolution::Local) => {
                let addresses = tokio::net::lookup_host((name, port)).await.ok();
                // Version 4 supports IPv4 only.
                let usable =
                    |address: &std::net::SocketAddr| self.version == SocksVersion::Five || address.is_ipv4();
                let address = addresses.and_then(|mut addresses| addresses.find(usable));
                let address = address.ok_or("the host name cannot be resolved")?;
                match address.ip() {
                    std::net::IpAddr::V4(address) => address.to_string(),
                    std::net::IpAddr::V6(address) => format!("[{address}]"),
                }
            }
            (host, _) => host.to_string(),
        };
        let target: Uri = format!("ws://{host}:{port}").parse().map_err(|_| invalid())?;
        let connected = ConnectedStream(Some(TokioIo::new(stream)));
        // The connection exists already, so the proxy's address is not used.
        let proxy = Uri::from_static("socks://proxy");
        let tunnel = match self.version {
            SocksVersion::Four => {
                SocksV4::new(proxy, connected).call(target).await.map_err(|error| error.to_string())
            }
            SocksVersion::Five => {
                let mut socks = SocksV5::new(proxy, connected);
                if let Some((user, password)) = &self.credentials {
                    socks = socks.with_auth(user.clone(), password.clone());
                }
                socks.call(target).await.map_err(|error| error.to_string())
            }
        };
        tunnel.map(TokioIo::into_inner).map_err(NetFailure::Other)
    }
}

/// An open connection in the form of a connector, as hyper-util expects it.
struct ConnectedStream(Option<TokioIo<TcpStream>>);

impl Service<Uri> for ConnectedStream {
    type Response = TokioIo<TcpStream>;
    type Error = Infallible;
    type Future = Ready<Result<TokioIo<TcpStream>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(Ok(self.0.take().expect("it is called once")))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Connects through a proxy, which reads this number of bytes and then sends this reply, for each of `replies`.
    /// Checks what is received through the tunnel, or the error. Returns the bytes that the proxy received.
    async fn check(
        socks: SocksProxy,
        url: &str,
        replies: &[(usize, &[u8])],
        want: Result<&str, &str>,
    ) -> Vec<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let proxy = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut received = Vec::new();
            for (request_bytes, reply) in replies {
                let mut request = vec![0; *request_bytes];
                stream.read_exact(&mut request).await.unwrap();
                received.extend(request);
                stream.write_all(reply).await.unwrap();
            }
            received
        };
        let url = Url::parse(url).unwrap();
        let client = async {
            let mut stream = socks.connect(stream, &url).await?;
            stream.write_all(b"?").await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            Ok::<_, NetFailure>(text)
        };
        let (received, outcome) = tokio::join!(proxy, client);
        match want {
            Ok(want) => assert_eq!(outcome.as_deref(), Ok(want)),
            Err(want) => {
                assert!(outcome.clone().is_err_and(|it| it.to_string().contains(want)), "{outcome:?}")
            }
        }
        received
    }

    /// The reply of a SOCKS 5 proxy that has connected to the server.
    const CONNECTED: &[u8] = b"\x05\x00\x00\x01\0\0\0\0\0\0";
    /// The server behind the proxy reads a byte and sends a text.
    const SERVER_REPLY: (usize, &[u8]) = (1, b"hello");

    #[tokio::test]
    async fn socks5_request_has_a_name_or_an_address() {
        let socks = |scheme| SocksProxy::from_scheme(scheme, None).unwrap();
        let replies: [(usize, &[u8]); 3] = [(3, b"\x05\x00"), (18, CONNECTED), SERVER_REPLY];
        let received = check(socks("socks5h"), "ws://mcp.example:81/", &replies, Ok("hello")).await;
        assert_eq!(received, b"\x05\x01\x00\x05\x01\x00\x03\x0bmcp.example\x00\x51?");
        let replies: [(usize, &[u8]); 3] = [(3, b"\x05\x00"), (10, CONNECTED), SERVER_REPLY];
        let received = check(socks("socks5"), "wss://10.0.0.1/", &replies, Ok("hello")).await;
        assert_eq!(received, b"\x05\x01\x00\x05\x01\x00\x01\x0a\x00\x00\x01\x01\xbb?");
    }

    #[tokio::test]
    async fn socks5_refusal_is_reported_without_the_password() {
        let with_password = SocksProxy::from_scheme("socks5h", Some(("Ann", "hunter2"))).unwrap();
        let replies: [(usize, &[u8]); 4] =
            [(3, b"\x05\x02"), (13, b"\x01\x00"), (18, CONNECTED), SERVER_REPLY];
        let received = check(with_password.clone(), "ws://mcp.example:81/", &replies, Ok("hello")).await;
        assert_eq!(&received[..16], b"\x05\x01\x02\x01\x03Ann\x07hunter2");
        let replies: [(usize, &[u8]); 2] = [(3, b"\x05\x02"), (13, b"\x01\x01")];
        check(with_password, "ws://mcp.example:81/", &replies, Err("credentials not accepted")).await;
    }

    #[tokio::test]
    async fn socks4_request_is_sent() {
        let replies: [(usize, &[u8]); 2] = [(9, b"\x00\x5a\0\0\0\0\0\0"), SERVER_REPLY];
        let socks = SocksProxy::from_scheme("socks4", None).unwrap();
        let received = check(socks, "ws://10.0.0.1:81/", &replies, Ok("hello")).await;
        assert_eq!(received, b"\x04\x01\x00\x51\x0a\x00\x00\x01\x00?");
    }
}

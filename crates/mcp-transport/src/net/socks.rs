//! The way through a SOCKS proxy: versions 4 and 5, as the environment's URL says.
//!
//! The conversation is hyper-util's. With `socks4` and `socks5` names are looked up
//! here, with `socks4a` and `socks5h` by the proxy, as curl has it.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;
use url::{Host, Url};

/// How a SOCKS proxy is spoken to.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SocksProxy {
    version: SocksVersion,
    name_resolution: NameResolution,
    /// A user and a password.
    credentials: Option<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocksVersion {
    Four,
    Five,
}

/// Who looks names up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameResolution {
    Local,
    Proxy,
}

impl SocksProxy {
    /// What the scheme of a proxy's URL means; `None` for another one.
    pub(crate) fn from_scheme(scheme: &str, user: Option<(&str, &str)>) -> Option<SocksProxy> {
        let (version, names) = match scheme {
            "socks4" => (SocksVersion::Four, NameResolution::Local),
            "socks4a" => (SocksVersion::Four, NameResolution::Proxy),
            "socks5" => (SocksVersion::Five, NameResolution::Local),
            "socks5h" => (SocksVersion::Five, NameResolution::Proxy),
            _ => return None,
        };
        let user = user.map(|(user, password)| (user.to_owned(), password.to_owned()));
        Some(SocksProxy { version, name_resolution: names, credentials: user })
    }

    /// Makes of a connection to the proxy one to the URL's host, over which we speak first: what came through it with the
    /// proxy's own answer would be lost. Says in words why it cannot.
    pub(crate) async fn connect(&self, stream: TcpStream, url: &Url) -> Result<TcpStream, String> {
        let unusable = || "the URL names no host and port that it could be asked for".to_owned();
        let (host, port) = url.host().zip(url.port_or_known_default()).ok_or_else(unusable)?;
        let host = match (host, self.name_resolution) {
            (Host::Domain(name), NameResolution::Local) => {
                let found = tokio::net::lookup_host((name, port)).await.ok();
                // Version 4 has no other addresses.
                let usable = |it: &std::net::SocketAddr| self.version == SocksVersion::Five || it.is_ipv4();
                let address = found.and_then(|mut it| it.find(usable));
                let address = address.ok_or_else(|| "the host name cannot be resolved".to_owned())?;
                match address.ip() {
                    std::net::IpAddr::V4(it) => it.to_string(),
                    std::net::IpAddr::V6(it) => format!("[{it}]"),
                }
            }
            (host, _) => host.to_string(),
        };
        let place: Uri = format!("ws://{host}:{port}").parse().map_err(|_| unusable())?;
        let given = ConnectedStream(Some(TokioIo::new(stream)));
        // It is connected to already; where it is does not matter any more.
        let proxy = Uri::from_static("socks://proxy");
        let reached = match self.version {
            SocksVersion::Four => SocksV4::new(proxy, given).call(place).await.map_err(|it| it.to_string()),
            SocksVersion::Five => {
                let mut socks = SocksV5::new(proxy, given);
                if let Some((user, password)) = &self.credentials {
                    socks = socks.with_auth(user.clone(), password.clone());
                }
                socks.call(place).await.map_err(|it| it.to_string())
            }
        };
        reached.map(TokioIo::into_inner)
    }
}

/// A connection that is there, as something that connects.
struct ConnectedStream(Option<TokioIo<TcpStream>>);

impl Service<Uri> for ConnectedStream {
    type Response = TokioIo<TcpStream>;
    type Error = Infallible;
    type Future = Ready<Result<TokioIo<TcpStream>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(Ok(self.0.take().expect("it is asked for once")))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What a proxy hears that answers so, piece by piece, and what comes of it.
    async fn check(
        socks: SocksProxy,
        url: &str,
        says: &[(usize, &[u8])],
        want: Result<&str, &str>,
    ) -> Vec<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let proxy = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            for (hears, said) in says {
                let mut piece = vec![0; *hears];
                stream.read_exact(&mut piece).await.unwrap();
                heard.extend(piece);
                stream.write_all(said).await.unwrap();
            }
            heard
        };
        let url = Url::parse(url).unwrap();
        let reaching = async {
            let mut stream = socks.connect(stream, &url).await?;
            stream.write_all(b"?").await.unwrap();
            let mut beyond = String::new();
            stream.read_to_string(&mut beyond).await.unwrap();
            Ok::<_, String>(beyond)
        };
        let (heard, reached) = tokio::join!(proxy, reaching);
        match want {
            Ok(want) => assert_eq!(reached.as_deref(), Ok(want)),
            Err(want) => assert!(reached.clone().is_err_and(|it| it.contains(want)), "{reached:?}"),
        }
        heard
    }

    const REACHED: &[u8] = b"\x05\x00\x00\x01\0\0\0\0\0\0";
    const BEYOND: (usize, &[u8]) = (1, b"hello");

    #[tokio::test]
    async fn version_5_is_asked_by_name_or_by_address() {
        let by = |scheme| SocksProxy::from_scheme(scheme, None).unwrap();
        let says: [(usize, &[u8]); 3] = [(3, b"\x05\x00"), (18, REACHED), BEYOND];
        let heard = check(by("socks5h"), "ws://mcp.example:81/", &says, Ok("hello")).await;
        assert_eq!(heard, b"\x05\x01\x00\x05\x01\x00\x03\x0bmcp.example\x00\x51?");
        let says: [(usize, &[u8]); 3] = [(3, b"\x05\x00"), (10, REACHED), BEYOND];
        let heard = check(by("socks5"), "wss://10.0.0.1/", &says, Ok("hello")).await;
        assert_eq!(heard, b"\x05\x01\x00\x05\x01\x00\x01\x0a\x00\x00\x01\x01\xbb?");
    }

    #[tokio::test]
    async fn version_5_is_told_who_asks_and_its_refusal_is_told_without_the_password() {
        let somebody = SocksProxy::from_scheme("socks5h", Some(("Ann", "hunter2"))).unwrap();
        let says: [(usize, &[u8]); 4] = [(3, b"\x05\x02"), (13, b"\x01\x00"), (18, REACHED), BEYOND];
        let heard = check(somebody.clone(), "ws://mcp.example:81/", &says, Ok("hello")).await;
        assert_eq!(&heard[..16], b"\x05\x01\x02\x01\x03Ann\x07hunter2");
        let says: [(usize, &[u8]); 2] = [(3, b"\x05\x02"), (13, b"\x01\x01")];
        check(somebody, "ws://mcp.example:81/", &says, Err("credentials not accepted")).await;
    }

    #[tokio::test]
    async fn version_4_is_asked_in_its_own_way() {
        let says: [(usize, &[u8]); 2] = [(9, b"\x00\x5a\0\0\0\0\0\0"), BEYOND];
        let socks = SocksProxy::from_scheme("socks4", None).unwrap();
        let heard = check(socks, "ws://10.0.0.1:81/", &says, Ok("hello")).await;
        assert_eq!(heard, b"\x04\x01\x00\x51\x0a\x00\x00\x01\x00?");
    }
}

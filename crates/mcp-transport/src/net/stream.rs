//! A stream of bytes to a server: TCP, TLS, or a tunnel.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A stream of bytes in both directions, encrypted or not.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Whether HTTP/2 was negotiated.
    #[cfg(any(feature = "http", feature = "sse"))]
    fn is_http2(&self) -> bool {
        false
    }
}

impl ByteStream for TcpStream {}

impl ByteStream for TlsStream<NetStream> {
    #[cfg(any(feature = "http", feature = "sse"))]
    fn is_http2(&self) -> bool {
        self.get_ref().1.alpn_protocol() == Some(b"h2")
    }
}

#[cfg(test)]
impl ByteStream for tokio::io::DuplexStream {}

/// A stream to a server.
pub(crate) type NetStream = Box<dyn ByteStream>;

//! A stream of bytes to a server: TCP, TLS, or a tunnel.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A stream of bytes in both directions.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// A stream to a server.
pub(crate) enum NetStream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<NetStream>>),
    /// Through a proxy that is itself reached over TLS.
    Tunnel(Box<dyn ByteStream>),
}

impl NetStream {
    /// Whether HTTP/2 was negotiated.
    #[cfg(any(feature = "http", feature = "sse"))]
    pub(crate) fn is_http2(&self) -> bool {
        match self {
            NetStream::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
            NetStream::Tcp(_) | NetStream::Tunnel(_) => false,
        }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut dyn ByteStream> {
        match self.get_mut() {
            NetStream::Tcp(stream) => Pin::new(stream),
            NetStream::Tls(stream) => Pin::new(stream),
            NetStream::Tunnel(stream) => Pin::new(stream),
        }
    }
}

impl AsyncRead for NetStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, into)
    }
}

impl AsyncWrite for NetStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        // As TCP and TLS.
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}

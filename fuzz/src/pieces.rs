//! A connection in memory that returns its bytes in pieces, because a reader must not depend on where they are cut.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream with all bytes that returns at most this many at once and accepts every write.
pub(crate) struct Pieces<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) length: usize,
}

/// The result of a future that never waits; panics if it does.
pub(crate) fn at_once<T>(reading: impl Future<Output = T>) -> T {
    match pin!(reading).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(res) => res,
        Poll::Pending => panic!("bytes that are there are not waited for"),
    }
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = self.length.min(self.rest.len()).min(buf.remaining());
        let (piece, rest) = self.rest.split_at(length);
        buf.put_slice(piece);
        self.rest = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pieces<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

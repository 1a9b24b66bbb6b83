//! The byte stream below hyper. It times out if the client sends no request or does not read. It counts bytes, and
//! closes in a way that lets the client read the last response.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::http::connection::active_requests::ActiveRequests;
use crate::metrics::counters::Counters;

/// How long the stream reads and discards input after its write side was closed. Closing a socket with unread
/// input resets the connection, and a client that is still sending would lose the response.
const LINGER: Duration = Duration::from_secs(1);

/// The time limits for a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimits {
    /// The time to send the head of a request, from the start of the connection or the end of the last response.
    pub(crate) head_timeout: Duration,
    /// The time that a single write may be blocked because the client does not read.
    pub(crate) write_timeout: Duration,
}

/// A stream that fails when its time limits are exceeded.
#[derive(Debug)]
pub(crate) struct TimedStream<S> {
    stream: S,
    limits: TimeLimits,
    /// Counts the bytes.
    counters: Arc<Counters>,
    /// The requests that are being handled. While there are any, the wait for the next one is not limited.
    requests: ActiveRequests,
    /// The timer of a blocked write.
    write_timer: Option<Pin<Box<Sleep>>>,
    /// The timer of the wait for the next request. Reused, because a reset is cheaper than a new timer.
    request_timer: Option<Pin<Box<Sleep>>>,
    /// Whether `request_timer` runs. It does not while a request is handled or a write is blocked.
    is_request_timer_running: bool,
    /// The timer that ends [`TimedStream::poll_linger`]; `None` until the write side is closed.
    linger: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedStream<S> {
    pub(crate) fn new(
        stream: S,
        limits: TimeLimits,
        counters: Arc<Counters>,
        requests: ActiveRequests,
    ) -> TimedStream<S> {
        TimedStream {
            stream,
            limits,
            counters,
            requests,
            write_timer: None,
            request_timer: None,
            is_request_timer_running: false,
            linger: None,
        }
    }

    /// Becomes ready with an error when the client took too long to send the head of a request.
    fn poll_request_timeout(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if !self.requests.is_empty() || self.write_timer.is_some() {
            self.is_request_timer_running = false;
            return Poll::Pending;
        }
        let limit = self.limits.head_timeout;
        let timer = self.request_timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !std::mem::replace(&mut self.is_request_timer_running, true)
            && let Some(deadline) = Instant::now().checked_add(limit)
        {
            timer.as_mut().reset(deadline);
        }
        let timed_out = || io::Error::new(io::ErrorKind::TimedOut, "the client sends no request");
        timer.as_mut().poll(cx).map(|()| timed_out())
    }

    /// Turns a write that was blocked for too long into an error.
    fn limit_write<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.write_timer.take().is_some() {
                self.requests.set_write_blocked(false);
            }
            return written;
        }
        self.requests.set_write_blocked(true);
        let limit = self.limits.write_timeout;
        let timer = self.write_timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        timer
            .as_mut()
            .poll(cx)
            .map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }

    /// Counts a write and limits its time. A completed write restarts the wait for the next request.
    fn track_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let written = self.limit_write(cx, written);
        if let Poll::Ready(Ok(bytes)) = written {
            self.counters.count_sent_bytes(bytes);
            // The wait for the next request begins after the response. hyper does not poll a read after this
            // write, so the timer is set here.
            self.is_request_timer_running = false;
            if let Poll::Ready(error) = self.poll_request_timeout(cx) {
                return Poll::Ready(Err(error));
            }
        }
        written
    }
}

impl<S: AsyncRead + Unpin> TimedStream<S> {
    /// Reads and discards until the client closes its side, for a limited time.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let TimedStream { stream, linger, .. } = self;
        let linger = linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        let mut buffer = [MaybeUninit::uninit(); 4096];
        while Instant::now() < linger.deadline() {
            let mut buffer = ReadBuf::uninit(&mut buffer);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return linger.as_mut().poll(cx),
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_pending() {
            return self.poll_request_timeout(cx).map(Err);
        }
        self.counters.count_received_bytes(buf.filled().len() - filled);
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.track_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.track_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.limit_write(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
            ready!(self.limit_write(cx, shut))?;
        }
        self.poll_linger(cx).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn timed<S>(stream: S) -> TimedStream<S> {
        let limits = TimeLimits { head_timeout: LIMIT, write_timeout: LIMIT };
        TimedStream::new(stream, limits, Arc::new(Counters::new()), ActiveRequests::default())
    }

    #[tokio::test(start_paused = true)]
    async fn unread_writes_time_out_and_slow_ones_do_not() {
        let (near, mut far) = duplex(4);
        let mut near = timed(near);
        let reading = async {
            let mut bytes = [0; 1];
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                far.read_exact(&mut bytes).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(near.write_all(b"12345678"), reading);
        written.unwrap();
        near.write_all(b"1234").await.unwrap();
        let error = near.write_all(b"5").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn request_head_times_out() {
        let (near, mut far) = duplex(4);
        let mut near = timed(near);
        let start = Instant::now();
        far.write_all(b"G").await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), b'G');
        let error = near.read_u8().await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed()), (io::ErrorKind::TimedOut, LIMIT));
    }

    #[tokio::test(start_paused = true)]
    async fn request_timeout_begins_after_the_response() {
        let (near, _far) = duplex(4);
        let mut near = timed(near);
        let start = Instant::now();
        let pause = Duration::from_secs(10);
        assert!(tokio::time::timeout(pause, near.read_u8()).await.is_err());
        near.write_all(b"1").await.unwrap();
        assert_eq!(near.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed(), pause + LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn closed_stream_lingers_for_a_limited_time() {
        let (near, mut far) = duplex(4);
        let mut near = timed(near);
        let start = Instant::now();
        let sending = async {
            while far.write_all(b"x").await.is_ok() {
                sleep(LINGER / 10).await;
            }
        };
        let closing = async {
            near.shutdown().await.unwrap();
            drop(near);
        };
        tokio::join!(closing, tokio::time::timeout(LIMIT, sending)).1.unwrap();
        assert!(start.elapsed() <= 2 * LINGER, "{:?}", start.elapsed());
    }
}

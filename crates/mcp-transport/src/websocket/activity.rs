//! A stream that tells when bytes last went through it.
//!
//! A message of many megabytes takes its time: whether a peer still sends and still reads is seen in the bytes, long
//! before a whole message has come or gone.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::keep_alive::LastRead;
use crate::net::connect::NetStream;

/// A stream under observation.
pub(super) struct ActivityStream {
    stream: NetStream,
    traffic: Arc<Activity>,
}

/// What was seen of a stream. Only the task that drives the stream writes it, so that no order is needed.
pub(super) struct Activity {
    start: Instant,
    reads: AtomicU64,
    /// Nanoseconds since `start`.
    read: AtomicU64,
    written: AtomicU64,
}

impl ActivityStream {
    pub(super) fn new(stream: NetStream) -> ActivityStream {
        let zero = || AtomicU64::new(0);
        let traffic = Activity { start: Instant::now(), reads: zero(), read: zero(), written: zero() };
        ActivityStream { stream, traffic: Arc::new(traffic) }
    }

    pub(super) fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.traffic)
    }
}

impl Activity {
    /// When something was last read; the beginning where nothing was.
    pub(super) fn last_read(&self) -> LastRead {
        LastRead { at: self.moment(&self.read), reads: self.reads.load(Ordering::Relaxed) }
    }

    /// When bytes were last taken from us; the beginning where none were.
    pub(super) fn last_write(&self) -> Instant {
        self.moment(&self.written)
    }

    fn moment(&self, nanoseconds: &AtomicU64) -> Instant {
        self.start + Duration::from_nanos(nanoseconds.load(Ordering::Relaxed))
    }

    fn record(&self, nanoseconds: &AtomicU64) {
        // Enough for centuries.
        let since = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        nanoseconds.store(since, Ordering::Relaxed);
    }
}

impl AsyncRead for ActivityStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        if into.filled().len() > before {
            self.traffic.reads.fetch_add(1, Ordering::Relaxed);
            self.traffic.record(&self.traffic.read);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ActivityStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.traffic.record(&self.traffic.written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

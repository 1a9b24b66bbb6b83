//! A stream that records when bytes were last read and written.
//!
//! A message of many megabytes takes time. Bytes show whether a peer still sends and reads, long before a message is
//! complete.

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

/// A stream with its activity.
pub(super) struct ActivityStream {
    stream: NetStream,
    activity: Arc<Activity>,
}

/// The activity of a stream. Only the task that drives the stream writes it, so relaxed ordering suffices.
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
        let activity = Activity { start: Instant::now(), reads: zero(), read: zero(), written: zero() };
        ActivityStream { stream, activity: Arc::new(activity) }
    }

    pub(super) fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }
}

impl Activity {
    /// The last read; the start if there was none.
    pub(super) fn last_read(&self) -> LastRead {
        LastRead { at: self.instant(&self.read), reads: self.reads.load(Ordering::Relaxed) }
    }

    /// When bytes were last written; the start if none were.
    pub(super) fn last_write(&self) -> Instant {
        self.instant(&self.written)
    }

    fn instant(&self, nanoseconds: &AtomicU64) -> Instant {
        self.start + Duration::from_nanos(nanoseconds.load(Ordering::Relaxed))
    }

    fn record(&self, nanoseconds: &AtomicU64) {
        // 64 bits last for centuries.
        let since = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        nanoseconds.store(since, Ordering::Relaxed);
    }
}

impl AsyncRead for ActivityStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        if into.filled().len() > before {
            self.activity.reads.fetch_add(1, Ordering::Relaxed);
            self.activity.record(&self.activity.read);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ActivityStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.activity.record(&self.activity.written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

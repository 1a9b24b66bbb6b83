//! A stream that records when bytes were last read and written.
//!
//! The times of bytes show that the peer is alive before a large message is complete.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::keep_alive::LastRead;
use crate::net::stream::NetStream;

/// Reading fails after this multiple of the limit plus [`MIN_ENDLESS_BYTES`] without a complete message. Raw bytes are
/// counted, because frame headers and empty frames do not count towards the message limit.
const ENDLESS_FACTOR: usize = 4;

/// Number of bytes without a complete message that is allowed with any limit.
const MIN_ENDLESS_BYTES: usize = 1 << 20;

/// A stream that updates an [`Activity`].
pub(super) struct ActivityStream {
    stream: NetStream,
    /// Reading fails after this number of bytes without a message.
    max_bytes: usize,
    activity: Arc<Activity>,
}

/// The activity of a stream. One task reads and writes, so the lock is never contended.
pub(super) struct Activity(Mutex<ActivityTimes>);

/// The times of the last read and the last write.
#[derive(Clone, Copy)]
struct ActivityTimes {
    last_read: LastRead,
    last_write: Instant,
    /// Bytes read since the last message.
    message_bytes: usize,
}

impl ActivityStream {
    /// A stream of messages of at most `max_message_bytes`.
    pub(super) fn new(stream: NetStream, max_message_bytes: usize) -> ActivityStream {
        let at = Instant::now();
        let times = ActivityTimes { last_read: LastRead { at, reads: 0 }, last_write: at, message_bytes: 0 };
        let max_bytes = max_message_bytes.saturating_mul(ENDLESS_FACTOR).saturating_add(MIN_ENDLESS_BYTES);
        ActivityStream { stream, max_bytes, activity: Arc::new(Activity(Mutex::new(times))) }
    }

    pub(super) fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }
}

impl Activity {
    /// The last read; the start if there was none.
    pub(super) fn last_read(&self) -> LastRead {
        self.0.lock().last_read
    }

    /// Records that a message is complete.
    pub(super) fn record_message(&self) {
        self.0.lock().message_bytes = 0;
    }

    /// When bytes were last written; the start if none were.
    pub(super) fn last_write(&self) -> Instant {
        self.0.lock().last_write
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
            let mut times = self.activity.0.lock();
            times.last_read = LastRead { at: Instant::now(), reads: times.last_read.reads + 1 };
            times.message_bytes += into.filled().len() - before;
            if times.message_bytes > self.max_bytes {
                let message = format!("a message does not end ({} bytes so far)", times.message_bytes);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, message)));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ActivityStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.activity.0.lock().last_write = Instant::now();
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

//! One WebSocket, read and written at the same time by the two halves of one task.
//!
//! The lock is taken for a poll and given back before it returns; since one task does all the polling, nobody ever
//! waits for it. The library keeps the wakers of reading and writing apart, and answers pings while it reads.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::{SinkExt, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::activity::ActivityStream;

/// How much is gathered before it is written, and how large one piece of a message is: between two pieces there is
/// room for a ping, a pong, or a close.
pub(super) const FRAME_BYTES: usize = 64 << 10;

/// The most that waits in the library to be written. What comes on top is ours, a piece at a time, and pongs: a peer
/// that pings and does not read gets none piled up for it.
const MAX_UNWRITTEN_BYTES: usize = 1 << 20;

/// How much is read at once.
const READ_BUFFER_BYTES: usize = 32 << 10;

/// An open WebSocket.
pub(super) struct Socket(Mutex<WebSocketStream<ActivityStream>>);

/// How a socket of ours is set up, with the largest message that it takes. One that is larger ends the connection: the
/// library stops at the head of a frame that it does not take, and cannot go on behind it; RFC 6455 has the code 1009 for
/// this, so that the peer knows why.
pub(super) fn settings(message_bytes: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(FRAME_BYTES)
        .max_write_buffer_size(MAX_UNWRITTEN_BYTES)
        .max_message_size(Some(message_bytes))
        .max_frame_size(Some(message_bytes))
}

impl Socket {
    pub(super) fn new(stream: WebSocketStream<ActivityStream>) -> Socket {
        Socket(Mutex::new(stream))
    }

    /// The next message; `None` at the end. Cancel-safe.
    pub(super) async fn next(&self) -> Option<Result<Message, Error>> {
        poll_fn(|context| self.lock().poll_next_unpin(context)).await
    }

    /// Resolves when a message can be taken. Cancel-safe.
    pub(super) async fn ready(&self) -> Result<(), Error> {
        poll_fn(|context| self.lock().poll_ready_unpin(context)).await
    }

    /// Takes a message to be written. `WriteBufferFull` gives it back.
    pub(super) fn put(&self, message: Message) -> Result<(), Error> {
        self.lock().start_send_unpin(message)
    }

    /// Writes all that was taken. Cancel-safe.
    pub(super) async fn flush(&self) -> Result<(), Error> {
        poll_fn(|context| self.lock().poll_flush_unpin(context)).await
    }

    /// Ends the stream below, without a word of the WebSocket's own.
    pub(super) async fn shutdown(self) {
        let mut stream = self.0.into_inner().unwrap_or_else(PoisonError::into_inner).into_inner();
        // It is over either way.
        let _ = stream.shutdown().await;
    }

    fn lock(&self) -> MutexGuard<'_, WebSocketStream<ActivityStream>> {
        // A panic inside the library ends the connection's task, and with it the socket.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! A WebSocket that one task reads and writes concurrently.
//!
//! The lock is held during a poll only. One task does all the polling, so the lock is never contended.
//! tungstenite keeps separate wakers for reading and writing, and answers pings while it reads.

use std::future::poll_fn;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::activity::{Activity, ActivityStream};

/// Maximum size of a frame, and of the bytes that are gathered for a write. Between two frames of a message,
/// a ping, pong or close can be sent.
pub(super) const FRAME_BYTES: usize = 64 << 10;

/// Maximum number of bytes that tungstenite buffers for writing: our frames, one at a time, and pongs. Pongs for a peer
/// that does not read are therefore bounded.
const MAX_UNWRITTEN_BYTES: usize = 1 << 20;

/// Size of the read buffer.
const READ_BUFFER_BYTES: usize = 32 << 10;

/// An open WebSocket.
pub(super) struct Socket {
    stream: Mutex<WebSocketStream<ActivityStream>>,
    activity: Arc<Activity>,
}

/// The configuration of a socket with this maximum message size. A larger message ends the connection with code 1009:
/// tungstenite stops at the head of a too large frame and cannot skip it.
pub(super) fn socket_config(max_message_bytes: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(FRAME_BYTES)
        .max_write_buffer_size(MAX_UNWRITTEN_BYTES)
        .max_message_size(Some(max_message_bytes))
        .max_frame_size(Some(max_message_bytes))
}

impl Socket {
    pub(super) fn new(stream: WebSocketStream<ActivityStream>) -> Socket {
        let activity = stream.get_ref().activity();
        Socket { stream: Mutex::new(stream), activity }
    }

    /// Reads the next message; `None` at the end. Cancel-safe.
    pub(super) async fn next(&self) -> Option<Result<Message, Error>> {
        let next = poll_fn(|context| self.stream.lock().poll_next_unpin(context)).await;
        self.activity.record_message();
        next
    }

    /// Waits until a message can be written. Cancel-safe.
    pub(super) async fn wait_until_ready(&self) -> Result<(), Error> {
        poll_fn(|context| self.stream.lock().poll_ready_unpin(context)).await
    }

    /// Adds a message to the write buffer. The error `WriteBufferFull` returns it.
    pub(super) fn start_send(&self, message: Message) -> Result<(), Error> {
        self.stream.lock().start_send_unpin(message)
    }

    /// Writes all buffered messages. Cancel-safe.
    pub(super) async fn flush(&self) -> Result<(), Error> {
        poll_fn(|context| self.stream.lock().poll_flush_unpin(context)).await
    }

    /// Shuts the underlying stream down, without a close frame.
    pub(super) async fn shutdown(self) {
        let mut stream = self.stream.into_inner().into_inner();
        // The result does not matter.
        let _ = stream.shutdown().await;
    }
}

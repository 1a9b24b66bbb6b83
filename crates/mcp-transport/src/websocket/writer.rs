//! Writes messages in frames, many in one write, with pings between them.
//!
//! A large message is sent in several frames, so that pings and pongs need not wait for its end. A peer that accepts no
//! bytes for too long times out.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::activity::Activity;
use super::keep_alive::{KeepAlive, KeepAliveAction};
use super::socket::{FRAME_BYTES, Socket};
use crate::error::disconnect::DisconnectReason;
use crate::transport::{Outbound, OutboundQueue};

/// Maximum number of messages that are taken from the queue at once.
const MAX_BATCH_MESSAGES: usize = 256;

/// Writes messages and keeps the connection alive.
pub(super) struct SocketWriter<'a> {
    pub(super) socket: &'a Socket,
    pub(super) activity: Arc<Activity>,
    pub(super) keep_alive: KeepAlive,
    /// Maximum time without progress in writing.
    pub(super) write_timeout: Duration,
}

/// Why writing ended.
#[derive(Debug)]
pub(super) enum WriteError {
    /// The connection is closed; the last messages of the peer may contain the reason.
    Disconnected(String),
    /// The peer does not respond or accepts no bytes.
    Unresponsive(DisconnectReason),
}

impl SocketWriter<'_> {
    /// Writes until writing fails or the engine has ended.
    pub(super) async fn run(&mut self, outbound: &mut OutboundQueue) -> Result<(), WriteError> {
        let mut batch = Vec::with_capacity(MAX_BATCH_MESSAGES);
        loop {
            let until = self.keep_connection_alive().await?;
            tokio::select! {
                count = outbound.next_many(&mut batch, MAX_BATCH_MESSAGES) => {
                    if count == 0 {
                        return Ok(());
                    }
                    outbound.fill_batch(&mut batch, MAX_BATCH_MESSAGES).await;
                    for entry in batch.drain(..) {
                        match entry {
                            Outbound::Send(message) => self.write_message(message.body).await?,
                            Outbound::Cancel { id: _, notice: Some(notice) } => self.write_message(notice).await?,
                            Outbound::Cancel { id: _, notice: None } => {}
                        }
                    }
                    self.flush().await?;
                }
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Sends a ping if one is due. Returns when to check again.
    async fn keep_connection_alive(&mut self) -> Result<Instant, WriteError> {
        loop {
            let last_read = self.activity.last_read();
            match self.keep_alive.next_action(last_read, Instant::now()) {
                KeepAliveAction::Wait(until) => return Ok(until),
                KeepAliveAction::Ping => {
                    self.put(Message::Ping(Bytes::new())).await?;
                    self.flush().await?;
                    self.keep_alive.record_ping(Instant::now(), last_read.reads);
                }
                KeepAliveAction::Dead(after) => {
                    let message = format!("it did not respond to a ping for {} s", after.as_secs_f64());
                    return Err(WriteError::Unresponsive(DisconnectReason::Broken(message)));
                }
            }
        }
    }

    async fn write_message(&mut self, mut body: Bytes) -> Result<(), WriteError> {
        let mut data = Data::Text;
        while body.len() > FRAME_BYTES {
            let frame = body.split_to(FRAME_BYTES);
            self.put(Message::Frame(Frame::message(frame, OpCode::Data(data), false))).await?;
            data = Data::Continue;
            self.keep_connection_alive().await?;
        }
        self.put(Message::Frame(Frame::message(body, OpCode::Data(data), true))).await
    }

    /// Adds a message to the write buffer, and waits until it has room.
    async fn put(&self, mut message: Message) -> Result<(), WriteError> {
        loop {
            self.with_write_timeout(self.socket.wait_until_ready()).await?;
            match self.socket.start_send(message) {
                Ok(()) => return Ok(()),
                // Pongs fill the buffer: write them first.
                Err(Error::WriteBufferFull(unsent)) => {
                    message = *unsent;
                    self.flush().await?;
                }
                Err(error) => return Err(disconnected(&error)),
            }
        }
    }

    async fn flush(&self) -> Result<(), WriteError> {
        self.with_write_timeout(self.socket.flush()).await
    }

    /// Waits for `action` as long as the peer accepts bytes.
    async fn with_write_timeout(
        &self,
        action: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), WriteError> {
        let mut action = pin!(action);
        let mut last_progress = Instant::now();
        loop {
            match tokio::time::timeout_at(last_progress + self.write_timeout, &mut action).await {
                Ok(done) => return done.map_err(|it| disconnected(&it)),
                Err(_) if self.activity.last_write() > last_progress => {
                    last_progress = self.activity.last_write();
                }
                Err(_) => {
                    return Err(WriteError::Unresponsive(DisconnectReason::Stalled(self.write_timeout)));
                }
            }
        }
    }
}

fn disconnected(error: &Error) -> WriteError {
    WriteError::Disconnected(match error {
        Error::Io(error) => format!("writing to it failed: {error}"),
        other => format!("writing to it failed: {other}"),
    })
}

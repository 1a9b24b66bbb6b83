//! The way to the peer: messages in pieces, many in one write, and pings between them.
//!
//! A message larger than a piece goes out in several frames, so that what is urgent need not wait for its end. A peer
//! that takes no byte for too long is given up.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::observed::Traffic;
use super::pulse::{Beat, Pulse};
use super::socket::{PIECE, Socket};
use crate::error::disconnect::DisconnectReason;
use crate::transport::{Outbound, OutboundQueue};

/// How many messages are taken from the queue at once.
const BATCH: usize = 256;

/// Writes messages and keeps the connection alive.
pub(super) struct Writer<'a> {
    pub(super) socket: &'a Socket,
    pub(super) traffic: Arc<Traffic>,
    pub(super) pulse: Pulse,
    /// How long the peer may take no byte.
    pub(super) stall: Duration,
}

/// Why nothing more is written.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// The connection is no longer there; what was read last says more.
    Gone(String),
    /// The peer is to be given up.
    CancelNotice(DisconnectReason),
}

impl Writer<'_> {
    /// Writes until it cannot, or until the engine is gone.
    pub(super) async fn run(&mut self, out: &mut OutboundQueue) -> Result<(), Unwritten> {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let until = self.beat().await?;
            tokio::select! {
                count = out.next_many(&mut batch, BATCH) => {
                    if count == 0 {
                        return Ok(());
                    }
                    out.fill_batch(&mut batch, BATCH).await;
                    for out in batch.drain(..) {
                        match out {
                            Outbound::Send(message) => self.message(message.body).await?,
                            Outbound::Cancel { id: _, notice: Some(notice) } => self.message(notice).await?,
                            Outbound::Cancel { id: _, notice: None } => {}
                        }
                    }
                    self.flush().await?;
                }
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Does what keeps the connection alive. Returns when to look again.
    async fn beat(&mut self) -> Result<Instant, Unwritten> {
        loop {
            let heard = self.traffic.heard();
            match self.pulse.look(heard, Instant::now()) {
                Beat::Rest(until) => return Ok(until),
                Beat::Ask => {
                    self.put(Message::Ping(Bytes::new())).await?;
                    self.flush().await?;
                    self.pulse.asked(Instant::now(), heard.reads);
                }
                Beat::Dead(after) => {
                    let message = format!("it has not answered a ping for {} s", after.as_secs_f64());
                    return Err(Unwritten::CancelNotice(DisconnectReason::Broken(message)));
                }
            }
        }
    }

    async fn message(&mut self, mut body: Bytes) -> Result<(), Unwritten> {
        let mut kind = Data::Text;
        while body.len() > PIECE {
            let piece = body.split_to(PIECE);
            self.put(Message::Frame(Frame::message(piece, OpCode::Data(kind), false))).await?;
            kind = Data::Continue;
            self.beat().await?;
        }
        self.put(Message::Frame(Frame::message(body, OpCode::Data(kind), true))).await
    }

    async fn put(&self, message: Message) -> Result<(), Unwritten> {
        let mut message = message;
        loop {
            self.unless_stalled(self.socket.ready()).await?;
            match self.socket.put(message) {
                Ok(()) => return Ok(()),
                // Pongs fill it: they go first.
                Err(Error::WriteBufferFull(back)) => {
                    message = *back;
                    self.flush().await?;
                }
                Err(error) => return Err(gone(&error)),
            }
        }
    }

    async fn flush(&self) -> Result<(), Unwritten> {
        self.unless_stalled(self.socket.flush()).await
    }

    /// Waits for `action` as long as the peer takes bytes.
    async fn unless_stalled(&self, action: impl Future<Output = Result<(), Error>>) -> Result<(), Unwritten> {
        let mut action = pin!(action);
        let mut since = Instant::now();
        loop {
            match tokio::time::timeout_at(since + self.stall, &mut action).await {
                Ok(done) => return done.map_err(|it| gone(&it)),
                Err(_) if self.traffic.written() > since => since = self.traffic.written(),
                Err(_) => return Err(Unwritten::CancelNotice(DisconnectReason::Stalled(self.stall))),
            }
        }
    }
}

fn gone(error: &Error) -> Unwritten {
    Unwritten::Gone(match error {
        Error::Io(error) => format!("writing to it failed: {error}"),
        other => format!("writing to it failed: {other}"),
    })
}

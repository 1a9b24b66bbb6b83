//! Reads a WebSocket: messages are delivered, everything else becomes evidence.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::socket::Socket;
use crate::error::disconnect::DisconnectReason;
use crate::error::evidence::CloseStatus;
use crate::redact::Redactor;
use crate::rpc::rate_limiter::RateLimiter;
use crate::transport::{FrameSink, StreamId};

/// Reads messages and delivers them to the engine.
pub(super) struct SocketReader<'a> {
    socket: &'a Socket,
    /// The engine, which receives the messages of the server.
    inbound: Arc<dyn FrameSink>,
    redactor: &'a Redactor,
    rate_limiter: RateLimiter,
    /// Reading is paused until this time.
    paused_until: Option<Instant>,
    /// Number of bytes that are not JSON-RPC.
    pub(super) noise_bytes: u64,
    /// The first message that is not JSON-RPC.
    pub(super) noise_sample: Option<String>,
    /// How the peer closed the connection.
    pub(super) close_status: Option<CloseStatus>,
}

/// Why reading ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadEnd {
    pub(super) reason: DisconnectReason,
    /// The code of our close frame; `None` if the peer has sent its own, or has disconnected.
    pub(super) close_code: Option<CloseCode>,
}

impl<'a> SocketReader<'a> {
    pub(super) fn new(
        socket: &'a Socket,
        inbound: Arc<dyn FrameSink>,
        redactor: &'a Redactor,
    ) -> SocketReader<'a> {
        let rate_limiter = RateLimiter::new(Instant::now());
        SocketReader {
            socket,
            inbound,
            redactor,
            rate_limiter,
            paused_until: None,
            noise_bytes: 0,
            noise_sample: None,
            close_status: None,
        }
    }

    /// Reads until the peer closes or violates the protocol, with pauses by the rate limit. Cancel-safe.
    pub(super) async fn run(&mut self) -> ReadEnd {
        loop {
            if let Some(until) = self.paused_until {
                tokio::time::sleep_until(until).await;
                self.paused_until = None;
            }
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => self.deliver(text.into()),
                Some(Ok(Message::Binary(bytes))) => match str::from_utf8(&bytes) {
                    Ok(_) => self.deliver(bytes),
                    Err(_) => self.record_noise(&bytes),
                },
                // tungstenite answers pings. A pong only counts as activity. Raw frames are never read.
                Some(Ok(Message::Ping(bytes) | Message::Pong(bytes))) => {
                    self.rate_limiter.charge(1, bytes.len())
                }
                Some(Ok(Message::Frame(_))) => {}
                Some(Ok(Message::Close(frame))) => {
                    self.close_status = Some(close_status(frame.as_ref(), self.redactor));
                    return ReadEnd { reason: DisconnectReason::PeerClosed, close_code: None };
                }
                Some(Err(error)) => return self.end_for_error(&error),
                None => return ReadEnd { reason: DisconnectReason::PeerClosed, close_code: None },
            }
            if self.rate_limiter.has_uncharged() {
                self.paused_until = self.rate_limiter.pause_until(Instant::now());
            }
            // One read may contain many small messages.
            tokio::task::consume_budget().await;
        }
    }

    /// Passes a message to the engine, and records anything else as noise.
    fn deliver(&mut self, mut message: Bytes) {
        // Some servers start each message with a byte order mark.
        if message.starts_with(b"\xEF\xBB\xBF") {
            message = message.slice(3..);
        }
        match message.iter().find(|it| !it.is_ascii_whitespace()) {
            Some(b'{' | b'[') => {
                let bytes = message.len();
                self.rate_limiter.record(self.inbound.deliver(StreamId::Shared, message), bytes);
            }
            Some(_) | None => self.record_noise(&message),
        }
    }

    /// Records bytes that are not JSON-RPC.
    fn record_noise(&mut self, bytes: &[u8]) {
        self.noise_bytes += bytes.len() as u64;
        self.rate_limiter.charge(1, bytes.len());
        self.inbound.record_noise_text(bytes);
        // Only the beginning is cleaned, because a message may be long.
        let beginning = &bytes[..bytes.len().min(4096)];
        self.noise_sample
            .get_or_insert_with(|| self.redactor.clean(&String::from_utf8_lossy(beginning), 120));
    }

    /// Why reading ended, for an error of tungstenite.
    fn end_for_error(&mut self, error: &Error) -> ReadEnd {
        let broken = |message: String, code| ReadEnd {
            reason: DisconnectReason::Broken(message),
            close_code: Some(code),
        };
        match error {
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => self.end_for_disconnect(),
            Error::Io(error) if is_disconnect(error) => self.end_for_disconnect(),
            Error::Io(error) => {
                let message =
                    format!("reading from it failed: {}", self.redactor.clean(&error.to_string(), 200));
                ReadEnd { reason: DisconnectReason::Broken(message), close_code: None }
            }
            Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => {
                let message = format!("it sent a message of at least {size} bytes; the limit is {max_size}");
                broken(message, CloseCode::Size)
            }
            Error::Utf8(_) => broken("it sent text that is not UTF-8".to_owned(), CloseCode::Invalid),
            other => broken(format!("it violated the protocol: {other}"), CloseCode::Protocol),
        }
    }

    /// Records that the peer has disconnected without a close frame.
    fn end_for_disconnect(&mut self) -> ReadEnd {
        self.close_status.get_or_insert(CloseStatus::NoFrame);
        ReadEnd { reason: DisconnectReason::PeerClosed, close_code: None }
    }
}

/// Whether the peer, or an intermediary, has closed the connection.
fn is_disconnect(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof
    )
}

/// The status of a close frame, without secrets.
fn close_status(frame: Option<&CloseFrame>, redactor: &Redactor) -> CloseStatus {
    let Some(CloseFrame { code, reason }) = frame else { return CloseStatus::NoCode };
    CloseStatus::Code { code: u16::from(*code), reason: redactor.clean(reason, 200) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_host_model::Secret;

    #[track_caller]
    fn check(code: u16, reason: &str, want: &str) {
        let redactor = Redactor::new([Secret::from("hunter2")].iter());
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        assert_eq!(close_status(Some(&frame), &redactor).to_string(), want);
    }

    #[test]
    fn hd_sc5_close_frame_is_described_without_secrets() {
        check(1000, "", "with code 1000 (normal)");
        check(1011, "oops", r#"with code 1011 (internal error): "oops""#);
        check(1008, "no \u{1b}[31mhunter2\u{7}\u{202e}\n", r#"with code 1008 (policy violation): "no *** ""#);
        check(4321, "\"ours\"", r#"with code 4321: "\"ours\"""#);
        assert_eq!(close_status(None, &Redactor::new([].iter())).to_string(), "without a code");
    }
}

//! An open WebSocket, from its first message to its end.

use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::activity::ActivityStream;
use super::keep_alive::KeepAlive;
use super::reader::{ReadEnd, Reader};
use super::socket::Socket;
use super::writer::{WriteError, Writer};
use super::{PING_AFTER, WebSocketEndpoint};
use crate::error::disconnect::{Disconnect, DisconnectReason, Evidence};
use crate::transport::Link;

/// How long the end may take when we did not ask for it.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long what the peer said before its end may take to be read.
const FINAL_READ_TIMEOUT: Duration = Duration::from_millis(100);

/// Carries messages until the end, and parts politely within the time there is.
pub(super) async fn run(
    place: &WebSocketEndpoint,
    stream: WebSocketStream<ActivityStream>,
    link: Link,
) -> Disconnect {
    let Link { outbound: mut out, inbound: inbox, shutdown: mut stop } = link;
    let traffic = stream.get_ref().activity();
    let socket = Socket::new(stream);
    let mut reader = Reader::new(&socket, inbox, &place.redactor);
    let pulse = KeepAlive::new(PING_AFTER, place.pong_timeout);
    let mut writer =
        Writer { socket: &socket, traffic, keep_alive: pulse, write_timeout: place.write_timeout };
    let soon = || Instant::now() + CLOSE_TIMEOUT;

    // In no fixed order: all of it draws on one budget of the task, and a flood in one direction must not use up that
    // of the other.
    let (over, deadline) = tokio::select! {
        deadline = stop.requested() => (stopped(), deadline),
        over = reader.run() => (over, soon()),
        unwritten = writer.run(&mut out) => match unwritten {
            // The engine is gone: nobody waits for a polite end.
            Ok(()) => (stopped(), Instant::now()),
            Err(WriteError::CancelNotice(reason)) => (ReadEnd { reason, close_code: Some(CloseCode::Policy) }, soon()),
            // What it said before it went tells more.
            Err(WriteError::Disconnected(message)) => match tokio::time::timeout(FINAL_READ_TIMEOUT, reader.run()).await {
                Ok(over) => (over, soon()),
                Err(_) => (ReadEnd { reason: DisconnectReason::Broken(message), close_code: None }, soon()),
            },
        },
    };
    close(&socket, &mut reader, over.close_code, deadline).await;
    let evidence = Evidence {
        close: reader.close.take(),
        noise_bytes: reader.noise,
        noise_sample: reader.noise_sample.take(),
        ..Evidence::default()
    };
    let _ = tokio::time::timeout_at(deadline.min(soon()), socket.shutdown()).await;
    Disconnect { reason: over.reason, evidence }
}

fn stopped() -> ReadEnd {
    ReadEnd { reason: DisconnectReason::Stopped, close_code: Some(CloseCode::Normal) }
}

/// Says the last word, or lets the answer to the peer's go out, and reads on meanwhile: answers that still come are
/// delivered, and a peer that writes is not left hanging.
async fn close(socket: &Socket, reader: &mut Reader<'_>, farewell: Option<CloseCode>, deadline: Instant) {
    let both = async {
        let Some(code) = farewell else {
            // The answer to a close frame is queued already. A peer that is gone fails this at once.
            let _ = socket.flush().await;
            return;
        };
        // Refused only where the socket is closed, or pongs fill it: then there is no last word.
        if socket.put(Message::Close(Some(CloseFrame { code, reason: "".into() }))).is_err() {
            return;
        }
        tokio::select! {
            _ = reader.run() => {}
            () = async {
                let _ = socket.flush().await;
                std::future::pending().await
            } => {}
        }
    };
    let _ = tokio::time::timeout_at(deadline, both).await;
}

#[cfg(test)]
mod tests;

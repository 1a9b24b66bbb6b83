//! An open WebSocket connection: reading, writing and closing.

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

/// Maximum duration of the close if no shutdown was requested.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum time for reading the last messages of a peer that cannot be written to.
const FINAL_READ_TIMEOUT: Duration = Duration::from_millis(100);

/// Sends and receives messages until the end, and closes within the deadline.
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

    // Not biased: all branches share the task's budget, and a flood in one direction must not starve the other.
    let (over, deadline) = tokio::select! {
        deadline = stop.requested() => (stopped(), deadline),
        over = reader.run() => (over, soon()),
        unwritten = writer.run(&mut out) => match unwritten {
            // The engine has ended: nothing waits for a close handshake.
            Ok(()) => (stopped(), Instant::now()),
            Err(WriteError::CancelNotice(reason)) => (ReadEnd { reason, close_code: Some(CloseCode::Policy) }, soon()),
            // Its last messages may contain the reason.
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

/// Sends the close frame, or flushes the answer to the peer's. Reads meanwhile: responses are still delivered, and a
/// writing peer is not blocked.
async fn close(socket: &Socket, reader: &mut Reader<'_>, farewell: Option<CloseCode>, deadline: Instant) {
    let both = async {
        let Some(code) = farewell else {
            // The answer to a close frame is queued already. This fails at once if the peer is gone.
            let _ = socket.flush().await;
            return;
        };
        // Fails only if the socket is closed or full of pongs: then no close frame is sent.
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

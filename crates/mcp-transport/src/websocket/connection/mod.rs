//! An open WebSocket connection: reading, writing and closing.

use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::activity::ActivityStream;
use super::endpoint::WebSocketEndpoint;
use super::keep_alive::{KeepAlive, PING_AFTER};
use super::reader::{ReadEnd, SocketReader};
use super::socket::Socket;
use super::writer::{SocketWriter, WriteError};
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::error::evidence::Evidence;
use crate::transport::Link;

/// Maximum duration of the close if no shutdown was requested.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum time for reading the last messages of a peer that cannot be written to.
const FINAL_READ_TIMEOUT: Duration = Duration::from_millis(100);

/// Sends and receives messages until the end, and closes within the deadline.
pub(super) async fn run_connection(
    endpoint: &WebSocketEndpoint,
    stream: WebSocketStream<ActivityStream>,
    link: Link,
) -> Disconnect {
    let Link { mut outbound, inbound, shutdown: mut shutdown_signal } = link;
    let activity = stream.get_ref().activity();
    let socket = Socket::new(stream);
    let mut reader = SocketReader::new(&socket, inbound, &endpoint.redactor);
    let keep_alive = KeepAlive::new(PING_AFTER, endpoint.pong_timeout);
    let mut writer =
        SocketWriter { socket: &socket, activity, keep_alive, write_timeout: endpoint.write_timeout };
    let close_deadline = || Instant::now() + CLOSE_TIMEOUT;

    // Not biased: all branches share the task's budget, and a flood in one direction must not starve the other.
    let (end, deadline) = tokio::select! {
        deadline = shutdown_signal.requested() => (end_for_shutdown(), deadline),
        end = reader.run() => (end, close_deadline()),
        written = writer.run(&mut outbound) => match written {
            // The engine has ended: nothing waits for a close handshake.
            Ok(()) => (end_for_shutdown(), Instant::now()),
            Err(WriteError::Unresponsive(reason)) => (ReadEnd { reason, close_code: Some(CloseCode::Policy) },
                close_deadline()),
            // Its last messages may contain the reason.
            Err(WriteError::Disconnected(message)) => match tokio::time::timeout(FINAL_READ_TIMEOUT,
                reader.run()).await {
                Ok(end) => (end, close_deadline()),
                Err(_) => (ReadEnd { reason: DisconnectReason::Broken(message), close_code: None }, close_deadline()),
            },
        },
    };
    close(&socket, &mut reader, end.close_code, deadline).await;
    let evidence = Evidence {
        close: reader.close_status.take(),
        noise_bytes: reader.noise_bytes,
        noise_sample: reader.noise_sample.take(),
        ..Evidence::default()
    };
    let _ = tokio::time::timeout_at(deadline.min(close_deadline()), socket.shutdown()).await;
    Disconnect { reason: end.reason, evidence }
}

fn end_for_shutdown() -> ReadEnd {
    ReadEnd { reason: DisconnectReason::Stopped, close_code: Some(CloseCode::Normal) }
}

/// Sends the close frame, or flushes the answer to the peer's. Reads meanwhile: responses are still delivered, and a
/// writing peer is not blocked.
async fn close(
    socket: &Socket,
    reader: &mut SocketReader<'_>,
    close_code: Option<CloseCode>,
    deadline: Instant,
) {
    let closing = async {
        let Some(code) = close_code else {
            // The answer to a close frame is queued already. This fails at once if the peer has disconnected.
            let _ = socket.flush().await;
            return;
        };
        // Fails only if the socket is closed or full of pongs: then no close frame is sent.
        if socket.start_send(Message::Close(Some(CloseFrame { code, reason: "".into() }))).is_err() {
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
    let _ = tokio::time::timeout_at(deadline, closing).await;
}

#[cfg(test)]
mod tests;

//! The diagnostic probe of a server that refuses a transport.

use std::time::Duration;

use mcp_host_model::TransportKind;

use crate::error::request_error::RequestError;
use crate::session::connection::{SessionConnection, SessionParts};
use crate::session::handshake::failure::{CLOSE_GRACE, FORCE_TIME, HandshakeFailure};
use crate::session::handshake::request::HandshakeConnection;
use crate::session::options::SessionOptions;
use crate::transport::{Epoch, TransportProbe};

/// Timeout of the diagnostic probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Tries the transport of `probe`. If the server speaks it, the returned error says so; otherwise it is `error`.
pub(crate) async fn diagnose_refusal(
    error: RequestError,
    probe: Option<TransportProbe>,
    options: &SessionOptions,
    parts: &SessionParts,
    deadline: tokio::time::Instant,
) -> RequestError {
    let Some(TransportProbe { kind, dial }) = probe else { return error };
    let until = deadline.min(tokio::time::Instant::now() + PROBE_TIMEOUT);
    let connection = SessionConnection::start(&dial, options, parts);
    let handshake =
        HandshakeConnection { dial: dial.as_ref(), connection: &connection, options, epoch: Epoch(0) };
    let handshake = async {
        match kind {
            TransportKind::Http => handshake.negotiate_any().await,
            TransportKind::Sse | TransportKind::Stdio | TransportKind::WebSocket | _ => {
                handshake.initialize().await
            }
        }
    };
    let handshake = tokio::time::timeout_at(until, handshake).await;
    connection.shutdown(CLOSE_GRACE, FORCE_TIME).await;
    match handshake {
        Ok(Ok(_) | Err(HandshakeFailure::Rejected(_) | HandshakeFailure::Restart { .. })) => match kind {
            TransportKind::Http => RequestError::SpeaksHttp(Box::new(error)),
            TransportKind::Sse | TransportKind::Stdio | TransportKind::WebSocket | _ => {
                RequestError::SpeaksSse(Box::new(error))
            }
        },
        Ok(Err(HandshakeFailure::Ended(_) | HandshakeFailure::Other(_))) | Err(_) => error,
    }
}

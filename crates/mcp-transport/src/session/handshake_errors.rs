//! Errors of failed handshakes, and the diagnostic probe of a server that refuses a transport.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{RpcError, TransportKind, code};
use serde::Deserialize;

use super::SessionOptions;
use super::connection::{Connection, SessionParts};
use super::handshake::{CLOSE_GRACE, FORCE_TIME, HandshakeFailure, initialize, negotiate_any};
use crate::error::ConnectError;
use crate::error::disconnect::Disconnect;
use crate::error::request_error::RequestError;
use crate::transport::{Dial, Epoch, TransportProbe};

/// Timeout of the diagnostic probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Tries another transport, if there is one, and adds the result to the refusal.
pub(super) async fn with_transport_probe(
    error: RequestError,
    probe: Option<TransportProbe>,
    (options, parts): (&SessionOptions, &SessionParts),
    deadline: tokio::time::Instant,
) -> RequestError {
    let Some(TransportProbe { kind, dial }) = probe else { return error };
    let until = deadline.min(tokio::time::Instant::now() + PROBE_TIMEOUT);
    let connection = Connection::start(&dial, options, parts);
    let handshake = async {
        match kind {
            TransportKind::Http => negotiate_any(dial.as_ref(), &connection, options).await,
            TransportKind::Sse | TransportKind::Stdio | TransportKind::WebSocket | _ => {
                initialize(&connection, options, Epoch(0)).await
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

/// The error for a handshake that took longer than `limit`. A server that has sent anything, also on standard error, is
/// not silent.
pub(super) fn timeout_error(
    limit: Duration,
    has_response: bool,
    disconnect: Arc<Disconnect>,
) -> ConnectError {
    let evidence = &disconnect.evidence;
    if has_response || !evidence.stderr.is_empty() || evidence.noise_bytes > 0 {
        ConnectError::TimedOut { after: limit, disconnect }
    } else {
        ConnectError::Silent { after: limit, disconnect }
    }
}

pub(super) fn invalid_response(what: &str) -> HandshakeFailure {
    HandshakeFailure::Other(ConnectError::InvalidResponse(what.to_owned()))
}

pub(super) fn too_large(limit: usize) -> HandshakeFailure {
    invalid_response(&format!("it exceeds the message size limit of {limit} bytes"))
}

pub(super) fn version_failure(offered: &[String]) -> HandshakeFailure {
    // The server's text, limited to one line.
    let offered: String = offered.join(", ").chars().filter(|it| !it.is_control()).take(100).collect();
    let offered = if offered.is_empty() { "unknown versions".to_owned() } else { offered };
    HandshakeFailure::Other(ConnectError::UnsupportedVersion { offered })
}

/// Reads the JSON-RPC error at the start of `payload`.
pub(super) fn read_error(payload: &[u8]) -> RpcError {
    RpcError::deserialize(&mut serde_json::Deserializer::from_slice(payload))
        .unwrap_or_else(|_| RpcError::new(code::INTERNAL_ERROR, "an error that cannot be read"))
}

/// A server's error with secrets redacted. Error data that contains a secret is removed.
pub(crate) fn redacted_error(error: RpcError, dial: &dyn Dial) -> RpcError {
    let data = error.data.filter(|it| dial.redact(it.as_str()) == it.as_str());
    RpcError { code: error.code, message: dial.redact(&error.message), data }
}

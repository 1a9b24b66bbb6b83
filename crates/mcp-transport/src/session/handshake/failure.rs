//! Failures of a handshake.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::RpcError;
use tokio::time::Instant;

use crate::error::ConnectError;
use crate::error::disconnect::{Disconnect, DisconnectReason, StartError};
use crate::session::negotiated::NegotiatedSession;
use crate::session::negotiated::era_reason::EraReason;
use crate::session::options::Eras;

/// The time that a connection may take to close after its handshake failed.
pub(super) const CLOSE_GRACE: Duration = Duration::from_millis(500);

/// The additional time for ending the server by force. Its exit code is evidence for the error.
pub(super) const FORCE_TIME: Duration = Duration::from_secs(2);

/// Why a handshake failed. The caller closes the connection and then adds how it ended.
pub(crate) enum HandshakeFailure {
    /// The connection ended during the handshake.
    Ended(Arc<Disconnect>),
    /// The server responded with a JSON-RPC error.
    Rejected(RpcError),
    /// Any other failure, for example a refused HTTP request or an invalid response.
    Other(ConnectError),
    /// Not a failure: the server answered `initialize`, but possibly only because it was not ready for the probe. It is
    /// connected again.
    Restart {
        /// The eras to try on the new connection.
        eras: Eras,
        /// The result of `initialize`.
        legacy: Box<NegotiatedSession>,
    },
}

impl HandshakeFailure {
    /// The JSON-RPC error of the server, if it sent one with any status.
    pub(super) fn rpc_error(&self) -> Option<&RpcError> {
        match self {
            HandshakeFailure::Rejected(error) => Some(error),
            HandshakeFailure::Other(ConnectError::Refused(error)) => error.rpc_error(),
            HandshakeFailure::Other(_) | HandshakeFailure::Ended(_) | HandshakeFailure::Restart { .. } => {
                None
            }
        }
    }

    /// When the handshake may be repeated, if the server refuses it until then.
    pub(super) fn end_of_requested_wait(&self, deadline: Instant) -> Option<Instant> {
        let error = match self {
            HandshakeFailure::Other(ConnectError::Refused(error)) => error,
            HandshakeFailure::Ended(disconnect) => match &disconnect.reason {
                DisconnectReason::NotStarted(StartError::Refused(error)) => error,
                _ => return None,
            },
            HandshakeFailure::Other(_) | HandshakeFailure::Rejected(_) | HandshakeFailure::Restart { .. } => {
                return None;
            }
        };
        error.end_of_requested_wait(deadline)
    }

    /// The reason for the legacy era, if this is the failure of the probe.
    pub(super) fn era_reason(&self) -> EraReason {
        match self {
            HandshakeFailure::Rejected(error) => EraReason::ProbeRejected(error.code),
            HandshakeFailure::Ended(_) => EraReason::ProbeClosed,
            HandshakeFailure::Other(ConnectError::Refused(error)) => {
                error.status().map_or(EraReason::ProbeIgnored, EraReason::ProbeRefused)
            }
            HandshakeFailure::Other(_) | HandshakeFailure::Restart { .. } => EraReason::ProbeWithoutVersion,
        }
    }
}

/// The error for a handshake that took longer than `limit`. A server that has sent anything, also on standard error, is
/// not silent.
pub(crate) fn timeout_error(
    limit: Duration,
    has_responded: bool,
    disconnect: Arc<Disconnect>,
) -> ConnectError {
    let evidence = &disconnect.evidence;
    if has_responded
        || !evidence.stderr.is_empty()
        || evidence.noise_bytes > 0
        || evidence.unmatched.is_some()
    {
        ConnectError::TimedOut { after: limit, disconnect }
    } else {
        ConnectError::Silent { after: limit, disconnect }
    }
}

pub(crate) fn invalid_response_failure(what: &str) -> HandshakeFailure {
    HandshakeFailure::Other(ConnectError::InvalidResponse(what.to_owned()))
}

/// The failure for a response over the message size limit.
pub(crate) fn too_large_failure(limit: usize) -> HandshakeFailure {
    invalid_response_failure(&format!("it exceeds the message size limit of {limit} bytes"))
}

/// The failure for a server that offers no version that we support.
pub(crate) fn unsupported_version_failure(offered: &[String]) -> HandshakeFailure {
    // The server's text, limited to one line.
    let offered: String = offered.join(", ").chars().filter(|it| !it.is_control()).take(100).collect();
    let offered = if offered.is_empty() { "unknown versions".to_owned() } else { offered };
    HandshakeFailure::Other(ConnectError::UnsupportedVersion { offered })
}

//! Failures of a handshake.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::RpcError;

use crate::error::ConnectError;
use crate::error::disconnect::Disconnect;
use crate::session::negotiated::Negotiated;
use crate::session::negotiated::era_reason::EraReason;
use crate::session::options::Eras;

/// The time that a connection may take to close after its handshake failed.
pub(super) const CLOSE_GRACE: Duration = Duration::from_millis(500);

/// The time that it may take longer to end the server by force, which gives evidence for the error.
pub(super) const FORCE_TIME: Duration = Duration::from_secs(2);

/// Why a handshake failed. How its connection ended is not yet known and is added later.
pub(crate) enum HandshakeFailure {
    /// The connection ended during the handshake.
    Ended(Arc<Disconnect>),
    /// The server responded with a JSON-RPC error.
    Rejected(RpcError),
    /// Any other failure, for example a refused HTTP request or an invalid response.
    Other(ConnectError),
    /// Not a failure: the server can be used in the legacy era, but only because it started slowly. It is connected
    /// again, with these eras.
    Restart { eras: Eras, legacy: Box<Negotiated> },
}

impl HandshakeFailure {
    /// The reason for the legacy era after this failure of the probe.
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

pub(crate) fn invalid_response(what: &str) -> HandshakeFailure {
    HandshakeFailure::Other(ConnectError::InvalidResponse(what.to_owned()))
}

pub(crate) fn too_large(limit: usize) -> HandshakeFailure {
    invalid_response(&format!("it exceeds the message size limit of {limit} bytes"))
}

pub(crate) fn version_failure(offered: &[String]) -> HandshakeFailure {
    // The server's text, limited to one line.
    let offered: String = offered.join(", ").chars().filter(|it| !it.is_control()).take(100).collect();
    let offered = if offered.is_empty() { "unknown versions".to_owned() } else { offered };
    HandshakeFailure::Other(ConnectError::UnsupportedVersion { offered })
}

//! What is made of a handshake that failed: failures in words, and one more look at a server that refuses.

use std::sync::Arc;
use std::time::Duration;

use super::SessionOptions;
use super::connection::{Heard, Parts, Wire};
use super::handshake::{Failure, PARTING, initialize};
use crate::error::ConnectError;
use crate::error::OLDER;
use crate::error::end::{Disconnect, RequestError};
use crate::transport::{Dial, Epoch};

/// How long a server that refuses one way is asked in the other, only to say so.
const ASIDE: Duration = Duration::from_secs(3);

/// The refusal, and that the server speaks the older way where it was asked, if it does: it is tried only to say so.
pub(super) async fn told(
    fault: RequestError,
    other: Option<Arc<dyn Dial>>,
    (options, parts): (&SessionOptions, &Parts),
    deadline: tokio::time::Instant,
) -> RequestError {
    let Some(other) = other else { return fault };
    let until = deadline.min(tokio::time::Instant::now() + ASIDE);
    let wire = Wire::start(&other, options, parts);
    let spoken = tokio::time::timeout_at(until, initialize(&wire, options, Epoch(0))).await;
    wire.stop(PARTING).await;
    match spoken {
        Ok(Ok(_)) => {
            let message = format!("{OLDER} at this URL, and not Streamable HTTP: {}", fault.message);
            RequestError { message, ..fault }
        }
        Ok(Err(_)) | Err(_) => fault,
    }
}

/// A handshake that took longer than `limit`. A server that has said something, wherever, is not silent.
pub(super) fn too_late(limit: Duration, heard: Heard, ended: Arc<Disconnect>) -> ConnectError {
    let seen = &ended.evidence;
    match (heard, seen.stderr.is_empty() && seen.noise_bytes == 0) {
        (Heard::Nothing, true) => ConnectError::Silent { after: limit, disconnect: ended },
        (Heard::Something, _) | (Heard::Nothing, false) => {
            ConnectError::TimedOut { after: limit, disconnect: ended }
        }
    }
}

pub(super) fn unreadable(what: &str) -> Failure {
    Failure::Other(ConnectError::InvalidResponse(what.to_owned()))
}

pub(super) fn too_large(limit: usize) -> Failure {
    unreadable(&format!("it is larger than the {limit} bytes that a message may have"))
}

pub(super) fn version_failure(offered: &[String]) -> Failure {
    // The server's words, but not more of them than fit a line.
    let offered: String = offered.join(", ").chars().filter(|it| !it.is_control()).take(100).collect();
    let offered = if offered.is_empty() { "unknown to us".to_owned() } else { offered };
    Failure::Other(ConnectError::UnsupportedVersion { offered })
}

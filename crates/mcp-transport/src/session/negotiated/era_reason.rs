//! Why a session has its era.

use std::fmt;

/// Why a session has its era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EraReason {
    /// No other era was tried ([`Eras`](crate::session::Eras)).
    Configured,
    /// The session id of the configuration belongs to this era.
    Resumed,
    /// The server spoke it on its last connection.
    Known,
    /// It answered `server/discover` with a modern version.
    Discovered,
    /// It answered `server/discover` with this JSON-RPC error.
    ProbeRejected(i64),
    /// It answered `server/discover` with this HTTP status.
    ProbeRefused(u16),
    /// Its answer to `server/discover` contains no modern version.
    ProbeWithoutVersion,
    /// It answered `initialize`, but not `server/discover`.
    ProbeIgnored,
    /// It closed its connection at `server/discover`.
    ProbeClosed,
}

impl fmt::Display for EraReason {
    /// A clause about the server: "it answered `server/discover`".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EraReason::Configured => f.write_str("no other era was tried"),
            EraReason::Resumed => f.write_str("its configured session is of this era"),
            EraReason::Known => f.write_str("it spoke it last time"),
            EraReason::Discovered => f.write_str("it answered `server/discover`"),
            EraReason::ProbeRejected(code) => write!(f, "it answered `server/discover` with error {code}"),
            EraReason::ProbeRefused(status) => {
                write!(f, "it answered `server/discover` with HTTP {status}")
            }
            EraReason::ProbeWithoutVersion => {
                f.write_str("its answer to `server/discover` contains no modern version")
            }
            EraReason::ProbeIgnored => f.write_str("it did not answer `server/discover`"),
            EraReason::ProbeClosed => f.write_str("it closed the connection at `server/discover`"),
        }
    }
}

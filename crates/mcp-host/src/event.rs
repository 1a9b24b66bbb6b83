//! Everything that happens to a server, as it happens. What holds is in [`Published`](crate::Published); this is for
//! logs, and for whoever wants to show how it came to that.

use std::time::{Duration, SystemTime};

use mcp_model::Era;

use crate::Failure;

/// Something that happened to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEvent {
    /// When.
    pub at: SystemTime,
    /// The server's name as written.
    pub server: String,
    /// What.
    pub what: Happening,
}

/// What can happen to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// It is being started, after so many setbacks in a row.
    Starting {
        /// 0 for a server that has just been configured, changed or asked for.
        setbacks: u32,
    },
    /// It can be called.
    Ready {
        /// The era of its connection.
        era: Era,
    },
    /// It could not be started.
    NotStarted(Failure),
    /// It was there, and is lost.
    Lost(Failure),
    /// It is tried again after a pause.
    TriedAgainIn {
        /// The pause.
        after: Duration,
        /// How often in a row it went wrong.
        setbacks: u32,
    },
    /// It has gone wrong too often in a row, and is left alone before it is tried once more.
    LeftAlone {
        /// For how long.
        after: Duration,
        /// How often in a row it went wrong.
        setbacks: u32,
    },
    /// Its lists have changed.
    Listed,
    /// An instance of it takes no more calls, and is closed when those inside are over.
    Retired,
}

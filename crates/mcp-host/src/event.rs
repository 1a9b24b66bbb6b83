//! Everything that happens to a server, as it happens. What holds is in [`HostSnapshot`](crate::state::published::HostSnapshot); this is for
//! logs, and for whoever wants to show how it came to that.

use std::time::{Duration, SystemTime};

use mcp_model::Era;

use crate::failure::HostError;
use crate::supervisor::dialog::DialogId;

/// Something that happened to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEvent {
    /// When.
    pub at: SystemTime,
    /// The server's name as written.
    pub server: String,
    /// What.
    pub kind: HostEventKind,
}

/// What can happen to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostEventKind {
    /// It is being started, after so many setbacks in a row.
    Starting {
        /// 0 for a server that has just been configured, changed or asked for.
        failures: u32,
    },
    /// It can be called.
    Ready {
        /// The era of its connection.
        era: Era,
    },
    /// It could not be started.
    StartFailed(HostError),
    /// It was there, and is lost.
    Lost(HostError),
    /// It is tried again after a pause.
    RestartScheduled {
        /// The pause.
        after: Duration,
        /// How often in a row it went wrong.
        failures: u32,
    },
    /// It has gone wrong too often in a row, and is left alone before it is tried once more.
    RestartSuspended {
        /// For how long.
        after: Duration,
        /// How often in a row it went wrong.
        failures: u32,
    },
    /// A dialog has an instance of its own now.
    Leased {
        /// Whose it is.
        dialog: DialogId,
    },
    /// A dialog wanted an instance of its own, and it could not be started.
    LeaseFailed {
        /// Whose it would be.
        dialog: DialogId,
        /// Why not.
        error: HostError,
    },
    /// A dialog's instance is given back.
    Released {
        /// Whose it was.
        dialog: DialogId,
        /// Why.
        reason: ReleaseReason,
    },
    /// It was switched off.
    Disabled,
    /// Its lists have changed.
    ListsChanged,
    /// An instance of it takes no more calls, and is closed when those inside are over.
    Retired,
}

/// Why a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseReason {
    /// It was given back.
    Requested,
    /// Its dialog is over.
    DialogEnded,
    /// It was not used for long.
    Idle,
    /// Its server was changed, restarted, switched off or removed.
    ServerChanged,
    /// Its server was lost.
    Lost,
    /// The host shuts down.
    HostShutdown,
}

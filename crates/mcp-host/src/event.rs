//! Everything that happens to a server, as it happens. What holds is in [`Published`](crate::state::published::Published); this is for
//! logs, and for whoever wants to show how it came to that.

use std::time::{Duration, SystemTime};

use mcp_model::Era;

use crate::failure::Failure;
use crate::supervisor::dialog::DialogId;

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
    /// A dialog has an instance of its own now.
    Leased {
        /// Whose it is.
        dialog: DialogId,
    },
    /// A dialog wanted an instance of its own, and it could not be started.
    NotLeased {
        /// Whose it would be.
        dialog: DialogId,
        /// Why not.
        failure: Failure,
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
    Listed,
    /// An instance of it takes no more calls, and is closed when those inside are over.
    Retired,
}

/// Why a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseReason {
    /// It was given back.
    Asked,
    /// Its dialog is over.
    DialogOver,
    /// It was not used for long.
    Unused,
    /// Its server was changed, restarted, switched off or removed.
    ServerChanged,
    /// Its server was lost.
    Lost,
    /// The host shuts down.
    HostShutDown,
}

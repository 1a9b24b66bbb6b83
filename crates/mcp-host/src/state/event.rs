//! Events of servers, for logs and displays. The current state is in
//! [`HostSnapshot`](crate::state::published::HostSnapshot).

use std::time::{Duration, SystemTime};

use mcp_host_model::{Era, Method};

use crate::error::HostError;
use crate::state::dialog_id::DialogId;

/// An event of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostEvent {
    /// The time.
    pub at: SystemTime,
    /// The server's name as written in the configuration.
    pub server: String,
    /// What happened.
    pub kind: HostEventKind,
}

impl HostEvent {
    /// Creates an event of a server.
    pub fn new(at: SystemTime, server: impl Into<String>, kind: HostEventKind) -> HostEvent {
        HostEvent { at, server: server.into(), kind }
    }
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostEventKind {
    /// The server is starting.
    Starting {
        /// Consecutive failures, at least 1 after the connection was lost; 0 after a configuration change or a restart
        /// command.
        failures: u32,
    },
    /// The server accepts calls.
    Ready {
        /// The era of its connection.
        era: Era,
    },
    /// The start failed.
    StartFailed(HostError),
    /// The connection was lost.
    ConnectionLost(HostError),
    /// A restart is scheduled.
    RestartScheduled {
        /// The delay.
        after: Duration,
        /// Consecutive failures.
        failures: u32,
    },
    /// Restarts are suspended after too many consecutive failures. After the suspension the server is started once
    /// more.
    RestartSuspended {
        /// The duration of the suspension.
        after: Duration,
        /// Consecutive failures.
        failures: u32,
    },
    /// The server sent a server request, so each dialog has its own instance from now on.
    LeasedPerDialog {
        /// The method of the request.
        method: Method,
    },
    /// A dialog has leased an instance.
    Leased {
        /// The dialog.
        dialog: DialogId,
    },
    /// An instance for a dialog could not be started.
    LeaseFailed {
        /// The dialog.
        dialog: DialogId,
        /// The reason.
        error: HostError,
    },
    /// A lease has ended.
    Released {
        /// The dialog.
        dialog: DialogId,
        /// The reason.
        reason: ReleaseReason,
    },
    /// The server was switched off.
    Disabled,
    /// The lists of the server changed.
    ListsChanged,
    /// An instance accepts no new calls, except those of pinned generations. It closes when nothing uses it.
    Retired,
}

/// The reason why a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseReason {
    /// It was released on request.
    Requested,
    /// Its dialog ended.
    DialogEnded,
    /// It was idle for too long.
    Idle,
    /// Its server was changed, restarted, switched off or removed.
    ServerChanged,
    /// The connection was lost.
    ConnectionLost,
    /// The host shut down.
    HostShutdown,
}

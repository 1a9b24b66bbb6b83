//! What a host is asked to run.

use mcp_config::ResolvedServer;

use crate::failure::HostError;

/// The servers that should be there, in the order in which the catalog shows them.
#[derive(Debug, Clone, Default)]
pub struct DesiredServers {
    /// Servers to start, or to keep.
    pub servers: Vec<ResolvedServer>,
    /// Entries whose configuration or environment is wrong. They are shown as statuses and problems and never started;
    /// a server of the same name that runs already is kept as it is.
    pub failed: Vec<FailedServer>,
}

/// An entry that cannot be started as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedServer {
    /// Its name as written, which may be no [`ServerId`](mcp_model::ServerId).
    pub id: String,
    /// What is wrong with it.
    pub error: HostError,
}

//! What servers have said about themselves when they were met last. What is leased has no instance between its leases, and is
//! known all the same.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use mcp_model::{ServerId, Sharing};
use mcp_transport::ServerInfo;

/// What is known of a server beside its lists.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerDetails {
    /// Whether one instance is for all, or each dialog has its own.
    pub sharing: Sharing,
    /// What it said about itself when it was connected last; `None` before that.
    pub info: Option<ServerInfo>,
}

/// All that were met; one for each name in the configuration.
#[derive(Default)]
pub(crate) struct Acquaintances(RwLock<HashMap<ServerId, ServerInfo>>);

impl Acquaintances {
    /// A server was met.
    pub(crate) fn met(&self, server: &ServerId, info: ServerInfo) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(server.clone(), info);
    }

    /// What it said.
    pub(crate) fn of(&self, server: &ServerId) -> Option<ServerInfo> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(server).cloned()
    }
}

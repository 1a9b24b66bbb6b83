//! The cache of the reports of servers about themselves. It has the last report of a leased server between leases.

use std::collections::HashMap;

use mcp_host_model::{ServerId, Sharing};
use mcp_host_transport::ServerInfo;
use parking_lot::RwLock;

/// Information about a server besides its lists.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerDetails {
    /// Whether one instance is shared, or each dialog has its own; never [`Sharing::Auto`].
    pub sharing: Sharing,
    /// The server's report from its last connection; `None` before the first.
    pub info: Option<ServerInfo>,
}

/// The last report of each server.
#[derive(Default)]
pub(crate) struct ServerInfoCache(RwLock<HashMap<ServerId, ServerInfo>>);

impl ServerInfoCache {
    /// Stores the report of a server.
    pub(crate) fn insert(&self, server: &ServerId, info: ServerInfo) {
        self.0.write().insert(server.clone(), info);
    }

    /// Returns the last report of a server.
    pub(crate) fn get(&self, server: &ServerId) -> Option<ServerInfo> {
        self.0.read().get(server).cloned()
    }

    /// Returns whether a server reported that it has resources.
    pub(crate) fn has_resources(&self, server: &ServerId) -> bool {
        self.0.read().get(server).is_some_and(|info| info.capabilities.resources)
    }
}

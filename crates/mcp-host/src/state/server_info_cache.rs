//! The cache of the reports of servers about themselves. It has the last report of a leased server between leases.

use std::collections::HashMap;

use mcp_host_model::ServerId;
use mcp_host_transport::ServerInfo;
use parking_lot::RwLock;

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

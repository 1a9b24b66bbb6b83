//! Fixtures for unit tests.

use std::sync::Arc;

use mcp_host_registry::Catalog;
use mcp_host_runtime::{HostSnapshot, ServerState, ServerStatus};

/// A published state with these servers and an empty catalog.
pub(crate) fn published(servers: &[(&str, ServerState)]) -> HostSnapshot {
    let status = |(id, state): &(&str, ServerState)| ServerStatus::new(*id, *state);
    let mut snapshot = HostSnapshot::default();
    snapshot.generation = 1;
    snapshot.catalog = Arc::new(Catalog::empty());
    snapshot.servers = servers.iter().map(status).collect();
    snapshot
}

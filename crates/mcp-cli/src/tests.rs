//! Fixtures for unit tests.

use std::sync::Arc;

use mcp_host::{HostSnapshot, ServerState, ServerStatus};
use mcp_registry::Catalog;

/// A published state with these servers and an empty catalog.
pub(crate) fn published(servers: &[(&str, ServerState)]) -> HostSnapshot {
    let status = |(id, state): &(&str, ServerState)| ServerStatus {
        id: (*id).into(),
        state: *state,
        era: None,
        error: None,
    };
    HostSnapshot {
        generation: 1,
        catalog: Arc::new(Catalog::empty()),
        servers: servers.iter().map(status).collect(),
        problems: Vec::new(),
    }
}

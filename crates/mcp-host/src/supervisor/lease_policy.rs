//! Limits for leases.

use std::time::Duration;

/// Limits for leases (DM-074, DM-075).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeasePolicy {
    /// How long a lease may be idle before it ends; `None`: forever.
    pub idle_timeout: Option<Duration>,
    /// The maximum number of leases of all servers and dialogs.
    pub max_leases: usize,
    /// What the host does about a server with [`Sharing::Auto`](mcp_host_model::Sharing::Auto) that sends a
    /// server request.
    pub requesting_servers: RequestingServers,
}

/// What a host does about a legacy server with [`Sharing::Auto`](mcp_host_model::Sharing::Auto) that sends a
/// server request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestingServers {
    /// The server remains shared. For hosts with one client.
    Share,
    /// Each dialog has its own instance from then on, so that each request has one owner. For hosts with several
    /// clients.
    Lease,
}

impl Default for LeasePolicy {
    /// 30 minutes; 64 leases; servers that send requests remain shared.
    fn default() -> LeasePolicy {
        LeasePolicy {
            idle_timeout: Some(Duration::from_secs(30 * 60)),
            max_leases: 64,
            requesting_servers: RequestingServers::Share,
        }
    }
}

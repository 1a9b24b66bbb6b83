//! Limits for leases.

use std::time::Duration;

/// Limits for leases (DM-074, DM-075).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeasePolicy {
    /// The idle time after which a lease ends; `None`: it does not.
    pub idle_timeout: Option<Duration>,
    /// The maximum number of leases of all servers and dialogs.
    pub max_leases: usize,
    /// The policy for servers with [`Sharing::Auto`](mcp_host_model::Sharing::Auto) that send a server request.
    pub requesting_servers: RequestingServers,
}

/// The policy for legacy servers with [`Sharing::Auto`](mcp_host_model::Sharing::Auto) that send a server request.
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

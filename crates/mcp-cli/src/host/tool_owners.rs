//! The order in which servers are started for one tool: first those that can have it by its name, then the others.
//!
//! The others are needed only if the first ones are ready and have neither the tool nor one of a similar name.

use mcp_host_registry::ToolLookup;
use mcp_host_runtime::{DesiredServers, Host, HostSnapshot, ServerState};

use crate::host::startup::{WaitFor, wait_for_servers};
use crate::output::progress::ProgressDisplay;

/// The servers to start for one tool.
pub(crate) struct ToolOwners {
    /// Those to start first.
    pub(crate) first: DesiredServers,
    /// The whole configuration, if it has more servers.
    pub(crate) others: OtherServers,
}

/// The configuration to apply if the first servers do not have the tool. `None` if they are all.
pub(crate) struct OtherServers(Option<DesiredServers>);

/// The servers that were started in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartedServers {
    /// All of the configuration.
    All,
    /// Only those that can have the tool.
    PossibleOwners,
}

impl ToolOwners {
    /// Divides the servers by whether they can have the tool.
    pub(crate) fn find(desired: DesiredServers, tool: &str) -> ToolOwners {
        let first = desired.possible_owners(tool);
        let is_part = first.servers.len() < desired.servers.len();
        ToolOwners { first, others: OtherServers(is_part.then_some(desired)) }
    }

    /// Counts all servers as possible owners, so that all are started at once.
    pub(crate) fn all(desired: DesiredServers) -> ToolOwners {
        ToolOwners { first: desired, others: OtherServers(None) }
    }
}

impl OtherServers {
    /// Waits for the tool, and starts the other servers if the first ones do not have it.
    pub(crate) async fn wait_for_tool(
        self,
        host: &Host,
        progress: &ProgressDisplay,
        tool: &str,
    ) -> StartedServers {
        wait_for_servers(host, progress, WaitFor::Tool(tool)).await;
        let Some(all) = self.0 else { return StartedServers::All };
        if !is_missing(&host.snapshot(), tool) {
            return StartedServers::PossibleOwners;
        }
        host.apply(all).await;
        wait_for_servers(host, progress, WaitFor::Tool(tool)).await;
        StartedServers::All
    }
}

/// Whether all started servers are ready, and none has the tool or one with a similar name.
fn is_missing(published: &HostSnapshot, tool: &str) -> bool {
    matches!(published.catalog.find(tool), ToolLookup::Missing { nearest: None })
        && published.servers.iter().all(|status| status.state == ServerState::Ready)
}

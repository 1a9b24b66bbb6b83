//! How the servers of a session are connected. Every wait has a limit.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use mcp_host::{Dialer, HostOptions};
use mcp_model::Limits;

/// How the servers of a session are connected.
#[derive(Clone)]
pub struct ConnectOptions {
    /// The limits of each server. `startup` is how long one may take to be connected, from its start to its tools.
    pub limits: Limits,
    /// How long all of them together may take. What is not connected by then goes on connecting, and the session begins
    /// without it.
    pub total_timeout: Duration,
    /// How many servers one session may ask for. A request for more is refused before anything is started.
    pub max_servers: usize,
    /// Which servers a session cannot do without.
    pub required: RequiredServers,
    /// How they are run: who the client is, what is done about those that are lost, who answers what they ask. A model
    /// that they may use and a user whom they may ask are [`HostOptions::handlers`]; without them servers are told that
    /// there are none. [`HostOptions::receipts`] has what an agent that dies suddenly leaves behind ended by its next
    /// session.
    pub host: HostOptions,
    /// Whether servers are told the session's folders when they ask in which places they may work. Who answers that in
    /// [`HostOptions::handlers`] is asked in any case.
    pub folders: FoldersAsRoots,
    /// Wires in place of the usual ones, for servers that are reached in a way of one's own.
    pub dialer: Option<Dialer>,
    /// The ACP connection, for servers that the client has itself. Without it those are failures.
    #[cfg(feature = "mcp-over-acp")]
    pub over_acp: Option<crate::OverAcp>,
}

impl Default for ConnectOptions {
    /// 30 s for each, 45 s for all, 64 at most, none is required, a host's default, the session's folders as roots.
    fn default() -> ConnectOptions {
        ConnectOptions {
            limits: Limits { startup: Duration::from_secs(30), ..Limits::default() },
            total_timeout: Duration::from_secs(45),
            max_servers: 64,
            required: RequiredServers::None,
            host: HostOptions::default(),
            folders: FoldersAsRoots::default(),
            dialer: None,
            #[cfg(feature = "mcp-over-acp")]
            over_acp: None,
        }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConnectOptions {
            limits,
            total_timeout: whole,
            max_servers: most_servers,
            required,
            host: _,
            folders,
            dialer: _,
            #[cfg(feature = "mcp-over-acp")]
                over_acp: _,
        } = self;
        f.debug_struct("ConnectOptions")
            .field("limits", limits)
            .field("whole", whole)
            .field("most_servers", most_servers)
            .field("required", required)
            .field("folders", folders)
            .finish_non_exhaustive()
    }
}

/// Whether a session's folders are the roots that its servers may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FoldersAsRoots {
    /// `cwd` and `additionalDirectories`, in this order.
    #[default]
    Offered,
    /// Servers are told nothing.
    Withheld,
}

/// Which servers a session cannot do without.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RequiredServers {
    /// It can do without any: what cannot be connected is told, and the others go on (ACP-021).
    #[default]
    None,
    /// It needs these, by their names, where it asks for them.
    Named(BTreeSet<String>),
    /// It needs every one.
    All,
}

impl RequiredServers {
    /// Does it need this server?
    pub(crate) fn contains(&self, name: &str) -> bool {
        match self {
            RequiredServers::None => false,
            RequiredServers::Named(names) => names.contains(name),
            RequiredServers::All => true,
        }
    }
}

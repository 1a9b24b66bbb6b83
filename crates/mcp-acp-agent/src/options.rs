//! Options for connecting the servers of a session. Every wait has a timeout.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use derive_more::Debug;
use mcp_host_model::{EnvInheritance, Limits};
use mcp_host_runtime::{DesiredServers, Dialer, HostOptions};

#[cfg(feature = "oauth")]
use crate::login::oauth::OAuthLogins;
use crate::server_set::SharedServers;

/// Options for connecting the servers of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The limits of each server. `startup` is the timeout from its start until its tools are known: a server that
    /// takes longer is ended, and started again later.
    pub limits: Limits,
    /// How long the session waits for its servers. It begins without those that are not connected by then; each joins
    /// it when it is ready. A required server must be connected by then.
    pub total_timeout: Duration,
    /// The maximum number of servers per session. A request for more is refused before anything starts.
    pub max_servers: usize,
    /// The servers that a session requires.
    pub required: RequiredServers,
    /// When the servers start; with the session unless set.
    pub start: StartPolicy,
    /// The agent's own servers ([`mcp_host_runtime::load`]), which every session has besides those of its
    /// request. A server of the request replaces the agent's of the same name. They are not counted by
    /// `max_servers`, and their failures do not refuse a session.
    #[debug(skip)]
    pub own_servers: DesiredServers,
    /// Makes sessions with equal lists of servers use the same servers; see [`SharedServers`] for what is not separated
    /// then. `None`, the default: each session has its own servers. A session with a server over the ACP connection
    /// always has its own.
    #[debug(skip)]
    pub shared: Option<SharedServers>,
    #[cfg(feature = "oauth")]
    #[debug(skip)]
    pub(crate) logins: Option<OAuthLogins>,
    /// Options of the host: client info, supervision, and handlers. Sampling and elicitation need
    /// [`HostOptions::server_requests`]; without them servers see no such capability. With the receipts in
    /// [`HostOptions::processes`], the next session with servers ends the processes of an agent that crashed; unless
    /// set, they are in the user's state folder.
    #[debug(skip)]
    pub host: HostOptions,
    /// Whether the session's folders are offered as roots. A roots handler in [`HostOptions::server_requests`] takes
    /// precedence.
    pub folders: FoldersAsRoots,
    /// The variables of the agent that its child processes inherit. The variables of an entry are added in
    /// any case. The default is [`EnvInheritance::Safe`]: what programs need to run, and none of the agent's keys
    /// and tokens.
    pub environment: EnvInheritance,
    /// A dialer that replaces the default transports.
    #[debug(skip)]
    pub dialer: Option<Dialer>,
    #[cfg(feature = "mcp-over-acp")]
    #[debug(skip)]
    pub(crate) over_acp: Option<crate::over_acp::OverAcp>,
}

impl ConnectOptions {
    /// Sets the logins with OAuth, whose URLs are sent to the client. `None`, the default: only the
    /// `Authorization` header of an entry is sent. Replaces those of
    /// [`ConnectionOptions`](mcp_host_runtime::ConnectionOptions).
    #[cfg(feature = "oauth")]
    pub fn set_logins(&mut self, logins: Option<OAuthLogins>) {
        self.logins = logins;
    }

    /// Sets the ACP connection, for servers that the client provides. Without it those servers fail.
    #[cfg(feature = "mcp-over-acp")]
    pub fn set_over_acp(&mut self, over_acp: Option<crate::over_acp::OverAcp>) {
        self.over_acp = over_acp;
    }
}

impl Default for ConnectOptions {
    /// The session waits for 30 s, and a server may take 5 minutes, which is enough to download its packages.
    /// At most 64 servers, none required, all started with the session, none shared, no logins, default host
    /// options, folders as roots.
    fn default() -> ConnectOptions {
        let mut host = HostOptions::default();
        host.processes.receipts = default_receipts(&|name| env::var_os(name));
        ConnectOptions {
            limits: {
                let mut limits = Limits::default();
                limits.startup = Duration::from_secs(300);
                limits
            },
            total_timeout: Duration::from_secs(30),
            max_servers: 64,
            required: RequiredServers::None,
            start: StartPolicy::AtSession,
            own_servers: DesiredServers::default(),
            shared: None,
            #[cfg(feature = "oauth")]
            logins: None,
            host,
            folders: FoldersAsRoots::default(),
            environment: EnvInheritance::Safe,
            dialer: None,
            #[cfg(feature = "mcp-over-acp")]
            over_acp: None,
        }
    }
}

/// The default folder of the receipts of process groups; see [`mcp_host_runtime::state_path`].
pub(crate) fn default_receipts(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = mcp_host_runtime::state_path("mcp-acp-agent/receipts", variable);
    path.inspect_err(|error| tracing::warn!("no receipts are stored: {error}; {}", error.help())).ok()
}

/// When the servers of a session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StartPolicy {
    /// With the session, which waits for them.
    #[default]
    AtSession,
    /// With its first use: [`SessionRegistry::acquire`](crate::SessionRegistry::acquire) or
    /// [`SessionServers::wake`](crate::SessionServers::wake). Until then the session has no tools and needs no slot. No
    /// server is required.
    FirstUse,
}

/// Whether a session's folders are its servers' roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FoldersAsRoots {
    /// `cwd` and `additionalDirectories`, in this order.
    #[default]
    Offered,
    /// Not offered.
    Withheld,
}

/// The servers that a session requires.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RequiredServers {
    /// None: failures are reported, and the session starts with the others (ACP-021).
    #[default]
    None,
    /// These servers, by name, if requested.
    Named(BTreeSet<String>),
    /// All servers.
    All,
}

impl RequiredServers {
    /// Returns whether this server is required.
    pub(crate) fn contains(&self, name: &str) -> bool {
        match self {
            RequiredServers::None => false,
            RequiredServers::Named(names) => names.contains(name),
            RequiredServers::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(state: Option<&str>, home: Option<&str>, want: Option<&str>) {
        let variable = |name: &str| match name {
            "XDG_STATE_HOME" => state.map(OsString::from),
            "HOME" => home.map(OsString::from),
            "LOCALAPPDATA" => None,
            other => panic!("unexpected variable {other}"),
        };
        assert_eq!(default_receipts(&variable), want.map(PathBuf::from));
    }

    #[test]
    fn receipts_are_in_the_state_folder() {
        check(Some("/s"), Some("/h"), Some("/s/mcp-acp-agent/receipts"));
        check(None, Some("/h"), Some("/h/.local/state/mcp-acp-agent/receipts"));
        check(Some("s"), Some("/h"), Some("/h/.local/state/mcp-acp-agent/receipts"));
        check(None, Some("h"), None);
        check(None, None, None);
    }
}

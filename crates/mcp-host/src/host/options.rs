//! The options of a host, grouped by subject.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_host_model::LogLevel;
use mcp_host_registry::{Builtins, ToolBudget};
use mcp_host_transport::{Authorities, ClientCapabilities, ClientInfo, Eras, Handlers, SessionOptions};

use crate::calls::admin::AdminTools;
use crate::calls::policy::CallPolicy;
use crate::calls::policy::rule_policy::{CallRuleOptions, RulePolicy};
use crate::calls::spill::policy::SpillPolicy;
use crate::config::approval::Approval;
use crate::state::approved_servers::ApprovedServers;
use crate::supervisor::clock_jump::WallClock;
use crate::supervisor::dialog::ReminderText;
use crate::supervisor::lease_policy::LeasePolicy;
use crate::supervisor::machine::Supervision;
use crate::telemetry::TraceSource;

/// The options of a [`Host`](crate::host::Host).
#[derive(Clone)]
#[non_exhaustive]
pub struct HostOptions {
    /// The client name and version that servers receive; mcp-transport's unless set.
    pub client: ClientInfo,
    /// Child processes of the host.
    pub processes: ProcessOptions,
    /// Connections to servers.
    pub connections: ConnectionOptions,
    /// Server requests: sampling, elicitation, roots.
    pub server_requests: ServerRequestOptions,
    /// The published catalog.
    pub catalog: CatalogOptions,
    /// Restarts of failed servers; on unless set.
    pub supervision: Supervision,
    /// Leases of servers that are not shared.
    pub leases: LeasePolicy,
    /// The reminder text for a dialog that has leased a server. `None`: it says so, and how to release the
    /// server if the host has its own tools ([`CatalogOptions::admin_tools`]).
    pub reminder: Option<ReminderText>,
    /// The folder for results above their server's limit (`limits.result_bytes`, 256 KiB unless set). The result is cut
    /// either way; with a policy it names the file that has the rest. The files are removed with the host.
    pub spill: Option<SpillPolicy>,
    /// The limit on the results of all servers, in bytes, instead of their own (`limits.result_bytes`). `None`, the
    /// default: that of each server.
    pub result_bytes: Option<usize>,
    /// The maximum number of items of a list of a server, instead of the servers' own (`limits.list_items`, 20,000
    /// unless set). The maximum number of pages grows with it. `None`, the default: that of each server.
    pub list_items: Option<usize>,
    /// The servers that the user approved, for files that need it
    /// ([`LoadRequest::needs_approval`](crate::config::load::LoadRequest::needs_approval)). It is read before each
    /// start of such a server. `None`, the default: none of them starts.
    pub approvals: Option<ApprovedServers>,
    /// Decides whether a call is sent. The default applies the rules of the servers' entries
    /// ([`ServerSpec::calls`](mcp_host_model::ServerSpec::calls)), and refuses calls that need an approval.
    pub calls: Arc<dyn CallPolicy>,
    /// Logs, traces and the clock.
    pub telemetry: TelemetryOptions,
}

/// Options for child processes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProcessOptions {
    /// The folder for process receipts. With it, the next host ends processes that a killed host left behind.
    pub receipts: Option<PathBuf>,
    /// The executable that replaces the command `mcp-host`. `None`: the command is looked up like any other.
    pub own_executable: Option<PathBuf>,
    /// The time that running calls and turns get when their instance is replaced, removed or disabled; 60 s unless
    /// set. A call with an earlier deadline ends at that. New calls use the new instance as soon as it is ready.
    pub drain: Duration,
    /// The time that running calls get when the host shuts down, and that a server gets to close; 5 s unless set.
    pub shutdown_grace: Duration,
}

/// Options for connections to servers.
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// Certificate authorities that are trusted in addition to the system's.
    pub authorities: Authorities,
    /// The protocol eras to try; both unless set.
    pub eras: Eras,
    #[cfg(feature = "oauth")]
    pub(crate) logins: Option<crate::state::logins::Logins>,
}

impl ConnectionOptions {
    /// Sets the logins to servers that require one. `None`, the default: only the `Authorization` header of the
    /// configuration is sent.
    #[cfg(feature = "oauth")]
    pub fn set_logins(&mut self, logins: Option<crate::state::logins::Logins>) {
        self.logins = logins;
    }
}

/// Options for server requests.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ServerRequestOptions {
    /// Answers server requests and receives notifications; none unless set.
    pub handlers: Handlers,
    /// The capabilities declared to shared servers, in a legacy handshake and when lists are read. `None`: those of
    /// `handlers`. A server request that the current caller cannot answer is refused.
    pub declared_capabilities: Option<ClientCapabilities>,
}

/// Options for the published catalog.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CatalogOptions {
    /// Names that no server may take.
    pub builtins: Builtins,
    /// Whether the host adds its own tools; off unless set.
    pub admin_tools: AdminTools,
    /// The approved definitions ([`Host::set_approval`](crate::host::Host::set_approval)); `None` approves everything.
    pub approval: Option<Approval>,
    /// The limits on each list of tools; none unless set. What they leave out of a view
    /// ([`Host::set_views`](crate::host::Host::set_views)) is a problem. The catalog itself stays complete.
    pub tool_budget: ToolBudget,
}

/// Options for logs, traces and the clock.
#[derive(Clone)]
#[non_exhaustive]
pub struct TelemetryOptions {
    /// The minimum level of log messages requested from servers, until
    /// [`Host::set_log_level`](crate::host::Host::set_log_level). `None`: servers decide.
    pub log_level: Option<LogLevel>,
    /// The trace of calls that have none of their own. With the feature `otel` it is the current span's unless set.
    pub trace: Option<TraceSource>,
    /// Whether spans contain the arguments and results of tool calls, the first 16 KiB of each. They may be personal
    /// or secret.
    pub contents: bool,
    /// The source of timestamps for users.
    pub wall_clock: WallClock,
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions {
            client: SessionOptions::default().client,
            processes: ProcessOptions::default(),
            connections: ConnectionOptions::default(),
            server_requests: ServerRequestOptions::default(),
            catalog: CatalogOptions::default(),
            supervision: Supervision::default(),
            leases: LeasePolicy::default(),
            reminder: None,
            spill: None,
            result_bytes: None,
            list_items: None,
            approvals: None,
            calls: Arc::new(RulePolicy::new(CallRuleOptions::default())),
            telemetry: TelemetryOptions::default(),
        }
    }
}

impl Default for ProcessOptions {
    fn default() -> ProcessOptions {
        ProcessOptions {
            receipts: None,
            own_executable: None,
            drain: Duration::from_secs(60),
            shutdown_grace: Duration::from_secs(5),
        }
    }
}

impl Default for ConnectionOptions {
    fn default() -> ConnectionOptions {
        ConnectionOptions {
            authorities: Authorities::default(),
            eras: Eras::Both,
            #[cfg(feature = "oauth")]
            logins: None,
        }
    }
}

impl Default for TelemetryOptions {
    fn default() -> TelemetryOptions {
        TelemetryOptions {
            log_level: None,
            trace: default_trace(),
            contents: false,
            wall_clock: Arc::new(SystemTime::now),
        }
    }
}

fn default_trace() -> Option<TraceSource> {
    #[cfg(feature = "otel")]
    return Some(Arc::new(crate::telemetry::otel::current_trace));
    #[cfg(not(feature = "otel"))]
    None
}

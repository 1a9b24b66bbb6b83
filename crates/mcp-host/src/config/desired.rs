//! The desired servers of a host.

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ExposureRules, Limits, NameClass, NamePolicy, ServerId, ServerName, ServerSpec};
use mcp_host_registry::{
    CompiledRules, DesiredServer, ExposureSettings, Problem, ReloadPlan, RuntimeSettings,
};
use tokio::sync::oneshot;

use crate::config::approval::Approval;
use crate::error::HostError;
use crate::telemetry::metrics::ReloadOutcome;

/// The servers to run, in the order of the catalog.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DesiredServers {
    /// Servers to start or keep.
    pub servers: Vec<ResolvedServer>,
    /// Invalid entries. They appear as statuses and problems and are not started; a running server with the same name
    /// is kept.
    pub failed: Vec<FailedServer>,
}

impl DesiredServers {
    /// Creates a list without invalid entries.
    pub fn new(servers: Vec<ResolvedServer>) -> DesiredServers {
        DesiredServers { servers, failed: Vec::new() }
    }

    /// Adds invalid entries.
    #[must_use]
    pub fn with_failed(mut self, failed: impl IntoIterator<Item = FailedServer>) -> DesiredServers {
        self.failed.extend(failed);
        self
    }

    /// Sets the maximum number of items of each list, and of its pages, which are allowed to be as small as by default.
    pub(crate) fn limit_lists(&mut self, items: usize) {
        let Limits { list_items, list_pages, .. } = Limits::default();
        let items_per_page = (list_items / list_pages).max(1);
        for ResolvedServer { spec, .. } in &mut self.servers {
            spec.limits.list_items = items;
            spec.limits.list_pages = list_pages.max(items / items_per_page);
        }
    }

    /// Returns the servers that can have a tool of this name, by their rules alone: those that can expose the name. A
    /// name that begins with that of a server, as in `server__tool`, belongs to no other invalid entry. If no server
    /// can expose the name, returns those whose filter allows it as their own name; else all, with the invalid entries.
    #[must_use]
    pub fn possible_owners(&self, tool: &str) -> DesiredServers {
        let filtered = |accepts: &dyn Fn(&CompiledRules<'_>) -> bool| -> Vec<ResolvedServer> {
            let accepted = self
                .servers
                .iter()
                .filter(|server| accepts(&CompiledRules::new(&server.spec.id, &server.spec.exposure.tools)));
            accepted.cloned().collect()
        };
        let owners = filtered(&|rules| rules.can_expose(tool));
        let failed: Vec<_> =
            self.failed.iter().filter(|it| it.id.id().is_some_and(|id| is_qualified(id, tool))).collect();
        if !failed.is_empty() || owners.iter().any(|it| is_qualified(&it.spec.id, tool)) {
            return DesiredServers::new(owners).with_failed(failed.into_iter().cloned());
        }
        let owners = if owners.is_empty() { filtered(&|rules| rules.allows(tool)) } else { owners };
        if owners.is_empty() || owners.len() == self.servers.len() {
            self.clone()
        } else {
            DesiredServers::new(owners)
        }
    }
}

/// Returns whether a name begins with that of a server, as in `server__tool`. This is how most dialects expose tools;
/// the rules of an invalid entry are not known.
pub(crate) fn is_qualified(server: &ServerId, tool: &str) -> bool {
    let rules = ExposureRules::new(NamePolicy::Qualify { class: NameClass::Strict });
    CompiledRules::new(server, &rules).can_expose(tool)
}

/// An invalid entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "mcp-cli takes it apart whole, so that no part of a failure is lost"
)]
pub struct FailedServer {
    /// Its name as written.
    pub id: ServerName,
    /// The reason why it is invalid.
    pub error: HostError,
}

/// An update from configuration files.
pub(crate) struct ConfigUpdate {
    /// The servers to run; `None`: unchanged.
    pub(crate) desired: Option<DesiredServers>,
    /// The approved definitions; `None`: unchanged.
    pub(crate) approval: Option<Approval>,
    /// All current problems of the files.
    pub(crate) problems: Vec<Problem>,
    /// The outcome of a reload, if there was one.
    pub(crate) outcome: Option<ReloadOutcome>,
    /// Receives the reload plan when the update is published.
    pub(crate) published: oneshot::Sender<ReloadPlan>,
}

/// Returns the settings of a server that a reload plan compares.
pub(crate) fn desired_server(server: &ResolvedServer) -> DesiredServer<'_> {
    let ResolvedServer { spec, endpoint, config, .. } = server;
    let ServerSpec { exposure, limits, sharing, calls, .. } = spec;
    let runtime = RuntimeSettings::new(endpoint, config.as_ref(), spec.discovery);
    let exposure = ExposureSettings { exposure, limits, sharing: *sharing, calls };
    DesiredServer::new(&spec.id, runtime, exposure)
}

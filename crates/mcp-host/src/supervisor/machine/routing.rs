//! Snapshots of the state machine: statuses, catalog, problems and routes.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ServerId, ServerName, Severity, Sharing};
use mcp_host_registry::{Catalog, CatalogServer, ListKind, Problem, ProblemKind, ServerLists};

use super::slot::{RunningServer, ServerSlot, SlotConfig, SlotMode, StartState};
use super::{DialogStop, Machine, Phase};
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::published::{HostSnapshot, ServerState, ServerStatus};
use crate::supervisor::lists::{ListSnapshot, enabled_lists};
use mcp_host_registry::ActiveProblem;

/// A published generation with the routes to its instances.
#[derive(Debug, Clone)]
pub(crate) struct RoutingTable<I> {
    /// The public snapshot.
    pub(crate) snapshot: Arc<HostSnapshot>,
    /// Routes of all servers in the catalog.
    pub(crate) routes: ahash::HashMap<ServerId, Route<I>>,
    /// Servers without a route, in order.
    pub(crate) unavailable: Vec<UnavailableServer>,
    /// The failure of the host itself. All calls fail with it.
    pub(crate) host_error: Option<HostError>,
    /// Stopped dialogs.
    pub(crate) stopped_dialogs: Arc<BTreeMap<DialogId, DialogStop>>,
}

/// The route of one server.
#[derive(Debug, Clone)]
pub(crate) struct Route<I> {
    /// The running server.
    pub(crate) server: Arc<ResolvedServer>,
    /// The target of its calls.
    pub(crate) target: RouteTarget<I>,
    /// Its lists, unfiltered, and the identity that it reports.
    pub(crate) listing: Arc<ListSnapshot>,
    /// Whether its instructions may be shown to models.
    pub(crate) instructions: InstructionsAccess,
}

/// Whether the instructions of a server may be shown to models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstructionsAccess {
    /// They may be: nothing requires approval.
    Any,
    /// Those of the identity in this snapshot, which was compared with the lock file, may be. Others may not.
    ApprovedOnly,
    /// They may not be: they differ from the lock file.
    Withheld,
}

/// The target of a server's calls.
#[derive(Debug, Clone)]
pub(crate) enum RouteTarget<I> {
    /// One shared instance.
    Shared(I),
    /// One leased instance per dialog. The number is that of the start on which the leases are based.
    Leased(u64),
}

/// A server without a route.
#[derive(Debug, Clone)]
pub(crate) struct UnavailableServer {
    /// Its name as written in the configuration.
    pub(crate) name: ServerName,
    /// Its last running configuration, else the configured one, if known.
    pub(crate) server: Option<Arc<ResolvedServer>>,
    /// The lists of its last run.
    pub(crate) lists: Option<Arc<ServerLists>>,
    /// The failure; `None` while it is starting.
    pub(crate) failure: Option<HostError>,
    /// Its state.
    pub(crate) state: ServerState,
}

impl<I> Route<I> {
    /// Returns the lists that were read without an error.
    pub(crate) fn read_lists(&self) -> Vec<ListKind> {
        read_lists(&self.server, &self.listing)
    }
}

/// Returns the lists of a server that were read without an error.
pub(super) fn read_lists(server: &ResolvedServer, listing: &ListSnapshot) -> Vec<ListKind> {
    let failed = listing.incomplete_lists();
    enabled_lists(server).into_iter().filter(|it| !failed.contains(it)).collect()
}

impl<I> RoutingTable<I> {
    /// Creates the routing table for a snapshot without servers.
    pub(crate) fn empty(snapshot: &Arc<HostSnapshot>) -> RoutingTable<I> {
        RoutingTable {
            snapshot: Arc::clone(snapshot),
            routes: ahash::HashMap::default(),
            unavailable: Vec::new(),
            host_error: None,
            stopped_dialogs: Arc::default(),
        }
    }
}

impl<I: Clone> Machine<I> {
    /// Creates the next generation.
    pub(crate) fn next_routing_table(&mut self, now: SystemTime) -> RoutingTable<I> {
        self.generation += 1;
        self.is_changed = false;
        if std::mem::take(&mut self.is_catalog_stale) {
            let drifts = self.update_drifts();
            let servers = self.catalog_servers();
            self.catalog = Arc::new(self.catalog.successor(&servers, &drifts));
        }
        let catalog = Arc::clone(&self.catalog);
        let servers = self.slots.iter().map(|it| self.status(it)).collect();
        let problems = self.update_problems(&catalog, now);
        let mut routes =
            ahash::HashMap::with_capacity_and_hasher(self.slots.len(), ahash::RandomState::default());
        let mut unavailable = Vec::new();
        for slot in &self.slots {
            match &slot.running {
                Some(running) => {
                    let target = match &running.instance {
                        Some(instance) => RouteTarget::Shared(instance.clone()),
                        None => RouteTarget::Leased(running.ticket.number),
                    };
                    let (server, listing) = (Arc::clone(&running.server), Arc::clone(&running.listing));
                    let id = running.ticket.server.clone();
                    let instructions = self.instructions_access(&id);
                    routes.insert(id, Route { server, target, listing, instructions });
                }
                None => unavailable.push(slot.to_unavailable()),
            }
        }
        let snapshot = HostSnapshot { generation: self.generation, catalog, servers, problems };
        let stopped_dialogs = Arc::clone(&self.stopped_dialogs);
        RoutingTable { snapshot: Arc::new(snapshot), routes, unavailable, host_error: None, stopped_dialogs }
    }

    /// Returns the content of the catalog: the host's own tools, then the running servers.
    fn catalog_servers(&mut self) -> Vec<Arc<CatalogServer>> {
        let running = self.slots.iter_mut().filter_map(|it| it.running.as_mut());
        let running = running.map(RunningServer::catalog_server);
        self.settings.own_tools.iter().cloned().chain(running).collect()
    }

    fn status(&self, slot: &ServerSlot<I>) -> ServerStatus {
        let state = match self.phase {
            Phase::Closed => ServerState::Stopped,
            Phase::Open => slot.state(),
        };
        let running = slot.running.as_ref();
        let sharing = running.map(|it| match it.instance {
            Some(_) => Sharing::Shared,
            None => Sharing::PerOwner,
        });
        let (id, era, error) = (slot.name.clone(), running.map(|it| it.era), slot.failure().cloned());
        let launcher = match &slot.config {
            SlotConfig::Server(server) => server.endpoint.package_launcher().map(str::to_owned),
            SlotConfig::Invalid(_) | SlotConfig::Missing => None,
        };
        ServerStatus { id, state, era, sharing, error, launcher }
    }

    /// Updates and returns all current problems. A problem that existed before keeps its time (DM-124).
    fn update_problems(&mut self, catalog: &Catalog, now: SystemTime) -> Vec<ActiveProblem> {
        let own = self.file_problems.iter().cloned().chain(self.slots.iter().flat_map(ServerSlot::problems));
        let filters = self.views.iter().flat_map(|view| &view.filters);
        let views: Vec<Problem> = filters.flat_map(|filter| catalog.view(filter).problems).collect();
        // A view may name a server that has no lists yet, or has failed. Such a server is not missing.
        let configured: HashSet<String> = match views.is_empty() {
            true => HashSet::new(),
            false => self.slots.iter().map(|slot| Problem::toolset_not_found(&slot.name).id).collect(),
        };
        let views = views.into_iter().filter(|it| !configured.contains(&it.id));
        let budget = self.settings.tool_budget;
        let left_out = self.views.iter().filter_map(|view| catalog.left_out_problem(view, budget));
        let results =
            self.spill_problem.iter().chain(self.stopped_dialogs.values().map(|it| &it.problem)).cloned();
        let all = own.chain(catalog.problems().iter().cloned()).chain(views).chain(left_out).chain(results);
        self.problems = ActiveProblem::update(&self.problems, all, now);
        self.problems.clone()
    }
}

impl<I: Clone> ServerSlot<I> {
    pub(super) fn state(&self) -> ServerState {
        if self.mode == SlotMode::Disabled {
            return ServerState::Disabled;
        }
        match (&self.start, &self.running) {
            // Its calls wait for its successor.
            (_, Some(running)) if running.has_ended => ServerState::Ready,
            (StartState::Pending { last_failure: None, .. }, _) => ServerState::Starting,
            (
                StartState::Pending { last_failure: Some(_), .. } | StartState::Done | StartState::Failed(_),
                Some(_),
            ) => ServerState::Ready,
            (StartState::Pending { last_failure: Some(_), .. }, None) => ServerState::Restarting,
            (StartState::Failed(_), None)
                if self.restarts.next_attempt.is_some() && !self.restarts.is_suspended =>
            {
                ServerState::Restarting
            }
            (StartState::Done | StartState::Failed(_), None) => ServerState::Failed,
        }
    }

    /// Returns the error because of which the server does not run as configured.
    pub(super) fn failure(&self) -> Option<&HostError> {
        match (&self.start, &self.config) {
            (StartState::Failed(failure), _)
            | (StartState::Pending { last_failure: Some(failure), .. }, _)
            | (_, SlotConfig::Invalid(failure)) => Some(failure),
            (
                StartState::Pending { last_failure: None, .. } | StartState::Done,
                SlotConfig::Server(_) | SlotConfig::Missing,
            ) => None,
        }
    }

    fn to_unavailable(&self) -> UnavailableServer {
        let last_run = self.last_run.as_ref();
        UnavailableServer {
            name: self.name.clone(),
            server: last_run.map(|it| Arc::clone(&it.0)).or_else(|| self.server()),
            lists: last_run.map(|it| Arc::clone(&it.1)),
            failure: self.failure().cloned(),
            state: self.state(),
        }
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self.error_problem().into_iter().collect();
        if let Some(running) = &self.running {
            let id = &running.ticket.server;
            let method = self.first_request.filter(|_| running.server.spec.sharing == Sharing::Auto);
            problems.extend(method.map(|it| Problem::server_leased(id, it.as_str())));
            let reported = running.tool_problems.iter();
            problems.extend(reported.map(|((tool, problem), reason)| problem.to_problem(id, tool, reason)));
            // A call may have reported the same defect.
            let defects = running.listing.schema_defects.iter().filter(|defect| {
                !running.tool_problems.contains_key(&(defect.tool.to_string(), defect.problem))
            });
            problems
                .extend(defects.map(|defect| defect.problem.to_problem(id, &defect.tool, &defect.reason)));
        }
        problems
    }

    /// Returns one problem for all errors of the server, because it has one problem id (DM-122).
    fn error_problem(&self) -> Option<Problem> {
        let mut messages = Vec::new();
        if let Some(failure) = self.failure() {
            messages.push(match &self.running {
                Some(_) => format!("{failure}; it keeps running with its previous configuration"),
                None => failure.to_string(),
            });
        }
        let lease_failure = self.lease_history.failure();
        messages
            .extend(lease_failure.map(|it| format!("an instance for a dialog could not be started: {it}")));
        messages.extend(self.running.iter().flat_map(|it| it.listing.list_problems(&self.name)));
        if messages.is_empty() {
            return None;
        }
        let severity = if self.running.is_some() { Severity::Warning } else { Severity::Error };
        let message = messages.join("; ");
        if let Some(id) = self.name.id() {
            let mut problem = Problem::server_error(id, severity, message);
            if let (Some(failure), None, [_]) = (self.failure(), &self.running, messages.as_slice()) {
                problem.detail = Some(failure.detail().to_owned());
            }
            return Some(problem);
        }
        // An invalid name is shown without control characters.
        let name: String = self.name.chars().filter(|it| !it.is_control()).take(ServerId::MAX_LEN).collect();
        let id = format!("mcp/server/{name}/server_error");
        Some(Problem::new(id, ProblemKind::ServerError, severity, message))
    }
}

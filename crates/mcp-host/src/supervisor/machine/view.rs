//! What a machine's state looks like from outside: statuses, catalog, problems, and where calls go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use mcp_config::ResolvedServer;
use mcp_model::{ServerId, Severity};
use mcp_registry::{Catalog, ListKind, Problem, ProblemKind, ServerEntry, ServerIdentity, ServerLists};

use super::slot::{Mode, Slot, Start, Wish};
use super::{Machine, Phase, Stop, plural};
use crate::ActiveProblem;
use crate::failure::HostError;
use crate::state::published::{HostSnapshot, ServerState, ServerStatus};
use crate::supervisor::dialog::DialogId;

/// A generation with the instances that belong to it.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot<I> {
    /// What the world sees.
    pub(crate) published: Arc<HostSnapshot>,
    /// Where calls go: every server of the catalog has a route.
    pub(crate) routes: ahash::HashMap<ServerId, Route<I>>,
    /// Servers that cannot be called, in order.
    pub(crate) absent: Vec<Absent>,
    /// What is wrong with the host itself: then nothing can be called.
    pub(crate) fault: Option<HostError>,
    /// Dialogs that are stopped, and why.
    pub(crate) stopped: Arc<BTreeMap<DialogId, Stop>>,
}

/// Where the calls of one server go.
#[derive(Debug, Clone)]
pub(crate) struct Route<I> {
    /// The server as it runs.
    pub(crate) server: Arc<ResolvedServer>,
    /// Where its calls go.
    pub(crate) place: Place<I>,
    /// What it offers, shown or not.
    pub(crate) lists: Arc<ServerLists>,
    /// What it says about itself.
    pub(crate) about: ServerIdentity,
    /// The lists that were read.
    pub(crate) read: Vec<ListKind>,
    /// Which of its instructions models may read.
    pub(crate) instructions: Instructions,
}

/// Which instructions of a server models may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instructions {
    /// Whatever it says: nobody has approved of anything.
    Any,
    /// Those that go with what it says about itself in the same snapshot.
    Known,
    /// None.
    Withheld,
}

/// Where calls go.
#[derive(Debug, Clone)]
pub(crate) enum Place<I> {
    /// All to one instance.
    Shared(I),
    /// Each dialog's to its own, leased on this start.
    Leased(u64),
}

/// A server that cannot be called.
#[derive(Debug, Clone)]
pub(crate) struct Absent {
    /// Its name as written.
    pub(crate) name: String,
    /// What it is, where that is known: as it ran, else as it is wanted.
    pub(crate) server: Option<Arc<ResolvedServer>>,
    /// What it offered when it ran.
    pub(crate) lists: Option<Arc<ServerLists>>,
    /// Why it cannot be called; `None` while it is being started.
    pub(crate) failure: Option<HostError>,
    /// What is being done about it.
    pub(crate) state: ServerState,
}

impl<I> Snapshot<I> {
    /// What goes with `published`, which shows no server.
    pub(crate) fn nothing(published: &Arc<HostSnapshot>) -> Snapshot<I> {
        Snapshot {
            published: Arc::clone(published),
            routes: ahash::HashMap::default(),
            absent: Vec::new(),
            fault: None,
            stopped: Arc::default(),
        }
    }
}

impl<I: Clone> Machine<I> {
    /// The next generation.
    pub(crate) fn snapshot(&mut self, now: SystemTime) -> Snapshot<I> {
        self.generation += 1;
        self.changed = false;
        if std::mem::take(&mut self.stale) {
            let drifts = self.drifts();
            self.catalog = Arc::new(self.catalog.successor(&self.entries(), &drifts));
        }
        let catalog = Arc::clone(&self.catalog);
        let servers = self.slots.iter().map(|it| self.status(it)).collect();
        let problems = self.problems(&catalog, now);
        let mut routes = ahash::HashMap::default();
        let mut absent = Vec::new();
        for slot in &self.slots {
            match &slot.live {
                Some(live) => {
                    let place = match &live.instance {
                        Some(instance) => Place::Shared(instance.clone()),
                        None => Place::Leased(live.ticket.number),
                    };
                    let server = Arc::clone(&live.server);
                    let lists = Arc::clone(&live.listed.lists);
                    let (about, read) = (live.listed.about.clone(), live.read());
                    let id = live.ticket.server.clone();
                    let instructions = self.instructions(&id);
                    routes.insert(id, Route { server, place, lists, about, read, instructions });
                }
                None => absent.push(slot.absent()),
            }
        }
        let published = HostSnapshot { generation: self.generation, catalog, servers, problems };
        let stopped = Arc::clone(&self.stopped);
        Snapshot { published: Arc::new(published), routes, absent, fault: None, stopped }
    }

    fn entries(&self) -> Vec<ServerEntry> {
        let live = self.slots.iter().filter_map(|it| it.live.as_ref());
        let live = live.map(|it| ServerEntry {
            id: it.ticket.server.clone(),
            exposure: it.server.spec.exposure.clone(),
            lists: Arc::clone(&it.listed.lists),
        });
        self.settings.own.iter().cloned().chain(live).collect()
    }

    fn status(&self, slot: &Slot<I>) -> ServerStatus {
        let state = match self.phase {
            Phase::Closed => ServerState::Stopped,
            Phase::Open => slot.state(),
        };
        let era = slot.live.as_ref().map(|it| it.era);
        ServerStatus { id: slot.name.clone(), state, era, error: slot.failure().cloned() }
    }

    /// Every problem there is now. Only the moment since when is kept from one generation to the next (DM-124).
    fn problems(&mut self, catalog: &Catalog, now: SystemTime) -> Vec<ActiveProblem> {
        let own = self.source.iter().cloned().chain(self.slots.iter().flat_map(Slot::problems));
        let views = self.views.iter().flat_map(|it| catalog.view(it).problems);
        let results = self.spilling.iter().chain(self.stopped.values().map(|it| &it.problem)).cloned();
        let all = own.chain(catalog.problems().iter().cloned()).chain(views).chain(results);
        self.problems = ActiveProblem::update(&self.problems, all, now);
        self.problems.clone()
    }
}

impl<I: Clone> Slot<I> {
    pub(super) fn state(&self) -> ServerState {
        if self.mode == Mode::Disabled {
            return ServerState::Disabled;
        }
        match (&self.start, &self.live) {
            (Start::Pending { after: None, .. }, _) => ServerState::Starting,
            (Start::Pending { after: Some(_), .. } | Start::Done | Start::Failed(_), Some(_)) => {
                ServerState::Ready
            }
            (Start::Pending { after: Some(_), .. }, None) => ServerState::Restarting,
            (Start::Failed(_), None) if self.trouble.next().is_some() && !self.trouble.rests() => {
                ServerState::Restarting
            }
            (Start::Done | Start::Failed(_), None) => ServerState::Failed,
        }
    }

    /// Why the server is not there as it is wanted.
    pub(super) fn failure(&self) -> Option<&HostError> {
        match (&self.start, &self.wish) {
            (Start::Failed(failure), _)
            | (Start::Pending { after: Some(failure), .. }, _)
            | (_, Wish::Refused(failure)) => Some(failure),
            (Start::Pending { after: None, .. } | Start::Done, Wish::Server(..) | Wish::Nothing) => None,
        }
    }

    fn absent(&self) -> Absent {
        let last = self.last.as_ref();
        Absent {
            name: self.name.clone(),
            server: last.map(|it| Arc::clone(&it.0)).or_else(|| self.server()),
            lists: last.map(|it| Arc::clone(&it.1)),
            failure: self.failure().cloned(),
            state: self.state(),
        }
    }

    fn problems(&self) -> Vec<Problem> {
        let mut res: Vec<Problem> = self.server_error().into_iter().collect();
        if let Some(live) = &self.live {
            let notes = live.tool_notes.iter();
            res.extend(notes.map(|((tool, note), reason)| note.problem(&live.ticket.server, tool, reason)));
        }
        res
    }

    /// One problem of a server says all that is wrong with it, for it has one id (DM-122).
    fn server_error(&self) -> Option<Problem> {
        let mut messages = Vec::new();
        if let Some(failure) = self.failure() {
            messages.push(match &self.live {
                Some(_) => format!("{failure}; it goes on as it was configured before"),
                None => failure.to_string(),
            });
        }
        let had = self.past.failure();
        messages.extend(had.map(|it| format!("an instance of a dialog's own could not be had: {it}")));
        let notes = self.live.iter().flat_map(|it| &it.listed.notes);
        messages.extend(
            notes.map(|(kind, failure)| format!("its {} could not be listed: {failure}", plural(*kind))),
        );
        if messages.is_empty() {
            return None;
        }
        let severity = if self.live.is_some() { Severity::Warning } else { Severity::Error };
        let message = messages.join("; ");
        if let Ok(id) = ServerId::parse(&self.name) {
            return Some(Problem::server_error(&id, severity, message));
        }
        // A name that is no id is shown as far as it can be.
        let name: String = self.name.chars().filter(|it| !it.is_control()).take(ServerId::MAX_LEN).collect();
        let id = format!("mcp/server/{name}/server_error");
        Some(Problem { id, kind: ProblemKind::ServerError, severity, server: None, tool: None, message })
    }
}

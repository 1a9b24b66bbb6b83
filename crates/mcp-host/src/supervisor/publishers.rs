//! Where snapshots go: first to where calls look, then to the world, so that what the world sees can be called.
//!
//! The last one is sent from here when the committer itself fails. Whoever waits for a host, or asks it for a tool,
//! must not take a host without a committer for one that has nothing to do.

use std::sync::Arc;
use std::time::SystemTime;

use mcp_model::ErrorKind;
use mcp_registry::{Catalog, Problem};
use tokio::sync::{broadcast, watch};

use crate::ActiveProblem;
use crate::config::desired::{DesiredServers, FailedServer};
use crate::event::HostEvent;
use crate::failure::HostError;
use crate::state::published::{HostSnapshot, ServerState, ServerStatus};
use crate::supervisor::committer::Shared;
use crate::supervisor::machine::{LeaseTable, Snapshot};

/// What is said of a host without a committer.
const FAULT: &str = "the host itself has failed; this is a defect in mcp-host";

/// The senders, and what is needed for a last word.
pub(crate) struct Outlets {
    to: Arc<Senders>,
    /// What is to be told of each server that is wanted, should the committer fail.
    last_word: Vec<FailedServer>,
    end: End,
}

/// Where everything is sent. The host has them as well, for the case that there is no committer any more.
pub(crate) struct Senders {
    pub(crate) snapshot: watch::Sender<Arc<Snapshot<Shared>>>,
    pub(crate) published: watch::Sender<Arc<HostSnapshot>>,
    pub(crate) leases: watch::Sender<Arc<LeaseTable<Shared>>>,
    pub(crate) events: broadcast::Sender<HostEvent>,
}

impl Senders {
    /// Senders through which nothing went yet.
    pub(crate) fn new(events: usize) -> Senders {
        let nothing = Arc::new(HostSnapshot::nothing());
        Senders {
            snapshot: watch::Sender::new(Arc::new(Snapshot::nothing(&nothing))),
            published: watch::Sender::new(nothing),
            leases: watch::Sender::new(Arc::new(LeaseTable::empty())),
            events: broadcast::Sender::new(events),
        }
    }

    fn publish(&self, snapshot: Snapshot<Shared>) {
        let published = Arc::clone(&snapshot.published);
        self.snapshot.send_replace(Arc::new(snapshot));
        self.published.send_replace(published);
    }

    /// What is wanted of a host that has failed fails, too. Nothing, of one that has not.
    pub(crate) fn publish_failed(&self, wanted: &DesiredServers) {
        if self.snapshot.borrow().fault.is_some() {
            self.publish_fault(last_word(wanted), SystemTime::now());
        }
    }

    fn publish_fault(&self, servers: Vec<FailedServer>, since: SystemTime) {
        let servers = servers.into_iter().map(|FailedServer { id, error: failure }| ServerStatus {
            id,
            state: ServerState::Failed,
            era: None,
            error: Some(failure),
        });
        let problem = Problem::workspace_config_error(FAULT);
        let published = Arc::new(HostSnapshot {
            generation: self.published.borrow().generation + 1,
            catalog: Arc::new(Catalog::empty()),
            servers: servers.collect(),
            problems: vec![ActiveProblem { problem, since }],
        });
        self.publish(Snapshot { fault: Some(fault()), ..Snapshot::nothing(&published) });
    }
}

/// What is to be told of each server that is wanted, should the host fail.
fn last_word(wanted: &DesiredServers) -> Vec<FailedServer> {
    let servers = wanted.servers.iter();
    let servers = servers.map(|it| FailedServer { id: it.spec.id.to_string(), error: fault() });
    servers.chain(wanted.failed.iter().cloned()).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Unasked,
    Asked,
}

impl Outlets {
    /// Outlets through which nothing went yet.
    pub(crate) fn new(to: Arc<Senders>) -> Outlets {
        Outlets { to, last_word: Vec::new(), end: End::Unasked }
    }

    /// These servers are going to be wanted.
    pub(crate) fn wanted(&mut self, wanted: &DesiredServers) {
        self.last_word = last_word(wanted);
    }

    /// The committer was asked to end: that it does so is no failure.
    pub(crate) fn end_asked(&mut self) {
        self.end = End::Asked;
    }

    /// Was it?
    pub(crate) fn is_end_asked(&self) -> bool {
        self.end == End::Asked
    }

    /// Tells something to whoever listens.
    pub(crate) fn tell(&self, event: HostEvent) {
        // Nobody listens: nobody misses it.
        let _ = self.to.events.send(event);
    }

    /// Sends a snapshot.
    pub(crate) fn publish(&self, snapshot: Snapshot<Shared>) {
        self.to.publish(snapshot);
    }

    /// Sends what is leased now.
    pub(crate) fn lease(&self, table: LeaseTable<Shared>) {
        self.to.leases.send_replace(Arc::new(table));
    }
}

impl Drop for Outlets {
    fn drop(&mut self) {
        // Without a panic the task is dropped because its host or its runtime is, and has said so.
        if self.end == End::Asked || !std::thread::panicking() {
            return;
        }
        tracing::error!("{FAULT}");
        self.to.leases.send_replace(Arc::new(LeaseTable::empty()));
        self.to.publish_fault(std::mem::take(&mut self.last_word), SystemTime::now());
    }
}

fn fault() -> HostError {
    HostError::new(ErrorKind::Connection, FAULT)
}

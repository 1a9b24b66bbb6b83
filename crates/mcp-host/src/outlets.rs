//! Where snapshots go: first to where calls look, then to the world, so that what the world sees can be called.
//!
//! The last one is sent from here when the committer itself fails. Whoever waits for a host, or asks it for a tool,
//! must not take a host without a committer for one that has nothing to do.

use std::sync::Arc;
use std::time::SystemTime;

use mcp_model::Kind;
use mcp_registry::{Catalog, Problem};
use tokio::sync::{broadcast, watch};

use crate::committer::Shared;
use crate::machine::Snapshot;
use crate::{ActiveProblem, FailedServer, Failure, HostEvent, Published, ServerState, ServerStatus, Wanted};

/// What is said of a host without a committer.
const FAULT: &str = "the host itself has failed; this is a defect in mcp-host";

/// The senders, and what is needed for a last word.
pub(crate) struct Outlets {
    snapshot: watch::Sender<Arc<Snapshot<Shared>>>,
    published: watch::Sender<Arc<Published>>,
    events: broadcast::Sender<HostEvent>,
    /// What is to be told of each server that is wanted, should the committer fail.
    last_word: Vec<FailedServer>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Unasked,
    Asked,
}

impl Outlets {
    /// Outlets through which nothing went yet.
    pub(crate) fn new(
        snapshot: watch::Sender<Arc<Snapshot<Shared>>>,
        published: watch::Sender<Arc<Published>>,
        events: broadcast::Sender<HostEvent>,
    ) -> Outlets {
        Outlets { snapshot, published, events, last_word: Vec::new(), end: End::Unasked }
    }

    /// These servers are going to be wanted.
    pub(crate) fn wanted(&mut self, wanted: &Wanted) {
        let servers = wanted.servers.iter();
        let servers = servers.map(|it| FailedServer { id: it.spec.id.to_string(), failure: fault() });
        self.last_word = servers.chain(wanted.failed.iter().cloned()).collect();
    }

    /// The committer was asked to end: that it does so is no failure.
    pub(crate) fn end_asked(&mut self) {
        self.end = End::Asked;
    }

    /// Tells something to whoever listens.
    pub(crate) fn tell(&self, event: HostEvent) {
        // Nobody listens: nobody misses it.
        let _ = self.events.send(event);
    }

    /// Sends a snapshot.
    pub(crate) fn publish(&self, snapshot: Snapshot<Shared>) {
        let published = Arc::clone(&snapshot.published);
        self.snapshot.send_replace(Arc::new(snapshot));
        self.published.send_replace(published);
    }
}

impl Drop for Outlets {
    fn drop(&mut self) {
        // Without a panic the task is dropped because its host or its runtime is, and nobody is misled.
        if self.end == End::Asked || !std::thread::panicking() {
            return;
        }
        tracing::error!("{FAULT}");
        let problem = Problem::workspace_config_error(FAULT);
        let last_word = std::mem::take(&mut self.last_word).into_iter();
        let servers = last_word.map(|FailedServer { id, failure }| ServerStatus {
            id,
            state: ServerState::Failed,
            era: None,
            failure: Some(failure),
        });
        let published = Arc::new(Published {
            generation: self.published.borrow().generation + 1,
            catalog: Arc::new(Catalog::empty()),
            servers: servers.collect(),
            problems: vec![ActiveProblem { problem, since: SystemTime::now() }],
        });
        self.publish(Snapshot { fault: Some(fault()), ..Snapshot::nothing(&published) });
    }
}

fn fault() -> Failure {
    Failure::new(Kind::Connection, FAULT)
}

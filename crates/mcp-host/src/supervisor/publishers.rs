//! Publication of routing tables and snapshots. The routing table is published first, so that every tool of a published
//! snapshot can be called.
//!
//! If the supervisor task panics, the host has failed. A last snapshot says so, because a failed host must not look
//! like one without servers.

use std::sync::Arc;
use std::time::SystemTime;

use mcp_host_model::{ErrorKind, ServerName};
use mcp_host_registry::{Catalog, Problem};
use tokio::sync::watch;

use crate::config::desired::{DesiredServers, FailedServer};
use crate::error::HostError;
use crate::notifications::stream::NotificationRouter;
use crate::state::event::HostEvent;
use crate::state::published::{HostSnapshot, ServerState, ServerStatus};
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{LeaseTable, RoutingTable};
use mcp_host_registry::ActiveProblem;

/// The message of a failed host.
const HOST_FAILED: &str = "the host itself has failed; this is a bug in mcp-host";

/// The supervisor task's side of the channels. If it is dropped by a panic, it publishes the failure of the host.
pub(crate) struct Publishers {
    senders: Arc<Senders>,
    /// The names of the desired servers, to publish as failed if the supervisor task panics.
    names: Vec<ServerName>,
    /// The invalid entries, to publish with them.
    invalid: Vec<FailedServer>,
    /// Whether the supervisor task ends because of a shutdown.
    is_shutdown_expected: bool,
}

/// The channels on which a host publishes. The host holds them too, to subscribe to them, and to publish when the
/// supervisor task has ended.
pub(crate) struct Senders {
    /// The routing table, which contains the snapshot below.
    pub(crate) routing_table: watch::Sender<Arc<RoutingTable<InstanceRef>>>,
    /// The public snapshot.
    pub(crate) snapshot: watch::Sender<Arc<HostSnapshot>>,
    pub(crate) leases: watch::Sender<Arc<LeaseTable<InstanceRef>>>,
    pub(crate) events: NotificationRouter<HostEvent>,
}

impl Senders {
    /// Creates channels with empty content.
    pub(crate) fn new() -> Senders {
        let snapshot = Arc::new(HostSnapshot::default());
        Senders {
            routing_table: watch::Sender::new(Arc::new(RoutingTable::empty(&snapshot))),
            snapshot: watch::Sender::new(snapshot),
            leases: watch::Sender::new(Arc::new(LeaseTable::empty())),
            events: NotificationRouter::new(),
        }
    }

    /// Publishes a routing table, then its snapshot.
    fn publish(&self, routing_table: RoutingTable<InstanceRef>) {
        let snapshot = Arc::clone(&routing_table.snapshot);
        self.routing_table.send_replace(Arc::new(routing_table));
        self.snapshot.send_replace(snapshot);
    }

    /// Publishes these servers as failed, if the host has failed. A failed host can start no server, so a new
    /// configuration only changes the failed servers.
    pub(crate) fn republish_host_failure(&self, desired: &DesiredServers) {
        if self.routing_table.borrow().host_error.is_some() {
            self.publish_host_failure(names(desired), &desired.failed);
        }
    }

    /// Publishes that the host has failed, and with it these servers and these invalid entries.
    fn publish_host_failure(&self, names: Vec<ServerName>, invalid: &[FailedServer]) {
        let valid = names.into_iter().map(|id| (id, host_failed_error()));
        let invalid = invalid.iter().map(|it| (it.id.clone(), it.error.clone()));
        let servers = valid.chain(invalid).map(|(id, failure)| ServerStatus {
            error: Some(failure),
            ..ServerStatus::new(id, ServerState::Failed)
        });
        let since = SystemTime::now();
        let problem = Problem::workspace_config_error(HOST_FAILED);
        let snapshot = Arc::new(HostSnapshot {
            generation: self.snapshot.borrow().generation + 1,
            catalog: Arc::new(Catalog::empty()),
            servers: servers.collect(),
            problems: vec![ActiveProblem { problem, since }],
        });
        let host_error = Some(host_failed_error());
        self.publish(RoutingTable { host_error, ..RoutingTable::empty(&snapshot) });
    }
}

/// Returns the names of the valid servers.
fn names(desired: &DesiredServers) -> Vec<ServerName> {
    desired.servers.iter().map(|it| it.spec.id.clone().into()).collect()
}

impl Publishers {
    /// Creates publishers without servers.
    pub(crate) fn new(senders: Arc<Senders>) -> Publishers {
        Publishers { senders, names: Vec::new(), invalid: Vec::new(), is_shutdown_expected: false }
    }

    /// Sets the servers to publish as failed if the supervisor task panics.
    pub(crate) fn set_desired(&mut self, desired: &DesiredServers) {
        self.names = names(desired);
        self.invalid.clone_from(&desired.failed);
    }

    /// Records that the supervisor task will end because of a shutdown.
    pub(crate) fn expect_shutdown(&mut self) {
        self.is_shutdown_expected = true;
    }

    /// Returns whether the supervisor task ends because of a shutdown.
    pub(crate) fn is_shutdown_expected(&self) -> bool {
        self.is_shutdown_expected
    }

    /// Sends an event.
    pub(crate) fn send_event(&self, event: HostEvent) {
        self.senders.events.publish(|| event);
    }

    /// Publishes a routing table with its snapshot.
    pub(crate) fn publish(&self, routing_table: RoutingTable<InstanceRef>) {
        self.senders.publish(routing_table);
    }

    /// Publishes the leases.
    pub(crate) fn publish_leases(&self, table: LeaseTable<InstanceRef>) {
        self.senders.leases.send_replace(Arc::new(table));
    }
}

impl Drop for Publishers {
    fn drop(&mut self) {
        // Without a panic the supervisor task was cancelled, because its host or runtime was dropped.
        if self.is_shutdown_expected || !std::thread::panicking() {
            return;
        }
        tracing::error!("{HOST_FAILED}");
        self.senders.leases.send_replace(Arc::new(LeaseTable::empty()));
        self.senders.publish_host_failure(std::mem::take(&mut self.names), &self.invalid);
    }
}

fn host_failed_error() -> HostError {
    HostError::new(ErrorKind::Connection, HOST_FAILED)
}

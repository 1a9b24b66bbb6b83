//! The routes of a pinned generation, and its pins on instances.

use std::collections::HashMap;
use std::sync::Arc;

use mcp_host_model::ServerId;
use parking_lot::Mutex;

use crate::calls::supervisor_handle::SupervisorHandle;
use crate::state::dialog_id::DialogId;
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{RouteTarget, RoutingTable};

/// The maximum number of attempts to pin a generation. An attempt fails when an instance is retired meanwhile.
const MAX_ATTEMPTS: usize = 8;

/// The routes of a pinned generation. Their instances accept pinned calls until this is dropped.
pub(crate) struct PinnedRoutes {
    pub(super) routing_table: Arc<RoutingTable<InstanceRef>>,
    /// The shared instances, which are pinned from the beginning.
    _shared: Vec<InstancePin>,
    /// The leased instances, which are pinned with their first call.
    leased: Mutex<HashMap<(DialogId, ServerId), InstancePin>>,
}

/// A pin of an instance, which is removed on drop.
struct InstancePin(InstanceRef);

impl Drop for InstancePin {
    fn drop(&mut self) {
        self.0.gate.unpin();
    }
}

impl InstancePin {
    /// Pins an instance. Returns `None` if it is retired.
    fn new(instance: &InstanceRef) -> Option<InstancePin> {
        instance.gate.pin().then(|| InstancePin(Arc::clone(instance)))
    }
}

impl PinnedRoutes {
    /// Pins the latest generation.
    pub(super) fn pin_latest(supervisor: &SupervisorHandle) -> PinnedRoutes {
        let mut routing_table = supervisor.latest_routing_table();
        let mut shared = Vec::new();
        for _ in 0..MAX_ATTEMPTS {
            shared = shared_instances(&routing_table).filter_map(InstancePin::new).collect();
            if shared.len() == shared_instances(&routing_table).count() {
                break;
            }
            // An instance was retired since the lookup. Its replacement is already published.
            routing_table = supervisor.latest_routing_table();
        }
        PinnedRoutes { routing_table, _shared: shared, leased: Mutex::default() }
    }

    /// Returns the pinned leased instance of a dialog.
    pub(super) fn leased_instance(&self, dialog: &DialogId, server: &ServerId) -> Option<InstanceRef> {
        let leased = self.leased.lock();
        leased.get(&(dialog.clone(), server.clone())).map(|it| Arc::clone(&it.0))
    }

    /// Pins a leased instance for later calls of the dialog.
    pub(super) fn pin_leased(&self, dialog: &DialogId, server: &ServerId, instance: &InstanceRef) {
        if let Some(pin) = InstancePin::new(instance) {
            let mut leased = self.leased.lock();
            // Replaces an earlier instance that was released or lost.
            leased.insert((dialog.clone(), server.clone()), pin);
        }
    }
}

fn shared_instances(routing_table: &RoutingTable<InstanceRef>) -> impl Iterator<Item = &InstanceRef> {
    routing_table.routes.values().filter_map(|it| match &it.target {
        RouteTarget::Shared(instance) => Some(instance),
        RouteTarget::Leased(_) => None,
    })
}

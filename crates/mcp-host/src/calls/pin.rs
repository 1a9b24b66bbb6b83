//! A pinned generation, whose names, schemas and routes do not change.
//!
//! A pinned instance may be retired. It then accepts pinned calls for the host's drain period; later calls fail. A
//! call is never sent to another instance because that has a tool of the same name.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use mcp_host_model::{CallResult, PromptResult, RawJson, ReadResult, ServerId};
use parking_lot::Mutex;

use crate::calls::{CallRouter, CatalogVersion};
use crate::calls::{RequestOptions, ToolCall};
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::published::HostSnapshot;
use crate::supervisor::dialog::DialogLifetime;
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::{RouteTarget, RoutingTable};

/// The maximum number of attempts to pin a generation. An attempt fails when an instance is retired meanwhile.
const MAX_ATTEMPTS: usize = 8;

/// A pinned generation for one turn of an agent: the model can call what it was shown. Drop it at the end of the
/// turn, because it keeps retired instances.
pub struct PinnedGeneration {
    router: Arc<CallRouter>,
    /// Keeps the dialog alive until the turn ends.
    lifetime: Option<Arc<DialogLifetime>>,
    routing_table: Arc<RoutingTable<InstanceRef>>,
    /// Shared instances, pinned from the beginning.
    _shared: Vec<InstancePin>,
    /// Leased instances, pinned with their first call.
    leased: Mutex<HashMap<(DialogId, ServerId), InstancePin>>,
}

/// A pinned instance.
struct InstancePin(InstanceRef);

impl Drop for InstancePin {
    fn drop(&mut self) {
        self.0.gate.unpin();
    }
}

impl InstancePin {
    fn new(instance: &InstanceRef) -> Option<InstancePin> {
        instance.gate.pin().then(|| InstancePin(Arc::clone(instance)))
    }
}

impl PinnedGeneration {
    /// Pins the latest generation.
    pub(crate) fn new(router: &Arc<CallRouter>, lifetime: Option<Arc<DialogLifetime>>) -> PinnedGeneration {
        let mut routing_table = router.latest();
        let mut shared = Vec::new();
        for _ in 0..MAX_ATTEMPTS {
            shared = instances(&routing_table).filter_map(InstancePin::new).collect();
            if shared.len() == instances(&routing_table).count() {
                break;
            }
            // An instance was retired since the lookup. Its replacement is already published.
            routing_table = router.latest();
        }
        let router = Arc::clone(router);
        PinnedGeneration { router, lifetime, routing_table, _shared: shared, leased: Mutex::default() }
    }

    /// The snapshot of the generation.
    pub fn snapshot(&self) -> &Arc<HostSnapshot> {
        &self.routing_table.snapshot
    }

    /// Calls a tool of this generation, like [`Host::call`](crate::host::Host::call). If the server was replaced or
    /// stopped and the drain period has passed, the error is of the kind [`ErrorKind::Replaced`](mcp_host_model::ErrorKind::Replaced). In a dialog's turn
    /// ([`Dialog::pin`](crate::calls::dialog::Dialog::pin)) the call belongs to that dialog unless it names
    /// another.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        let dialog = call.dialog.or_else(|| self.dialog());
        self.router.call(ToolCall { dialog, ..call }, CatalogVersion::Pinned(self)).await
    }

    /// Renders a prompt of this generation, like [`Host::get_prompt`](crate::host::Host::get_prompt).
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawJson,
        options: RequestOptions,
    ) -> Result<PromptResult, HostError> {
        let dialog = options.dialog.or_else(|| self.dialog());
        let options = RequestOptions { dialog, ..options };
        self.router.get_prompt(name, arguments, options, CatalogVersion::Pinned(self)).await
    }

    /// Reads a resource of this generation, like [`Host::read_resource`](crate::host::Host::read_resource).
    pub async fn read_resource(&self, uri: &str, options: RequestOptions) -> Result<ReadResult, HostError> {
        let dialog = options.dialog.or_else(|| self.dialog());
        let options = RequestOptions { dialog, ..options };
        self.router.read_resource(uri, options, CatalogVersion::Pinned(self)).await
    }

    fn dialog(&self) -> Option<DialogId> {
        self.lifetime.as_ref().map(|it| it.id.clone())
    }

    pub(crate) fn routing(&self) -> &Arc<RoutingTable<InstanceRef>> {
        &self.routing_table
    }

    /// The pinned leased instance of a dialog.
    pub(crate) fn leased_instance(&self, dialog: &DialogId, server: &ServerId) -> Option<InstanceRef> {
        let leased = self.leased.lock();
        leased.get(&(dialog.clone(), server.clone())).map(|it| Arc::clone(&it.0))
    }

    /// Pins a leased instance for later calls of the dialog.
    pub(crate) fn pin_leased(&self, dialog: &DialogId, server: &ServerId, instance: &InstanceRef) {
        if let Some(pin) = InstancePin::new(instance) {
            let mut leased = self.leased.lock();
            // Replaces an earlier instance that was released or lost.
            leased.insert((dialog.clone(), server.clone()), pin);
        }
    }
}

impl fmt::Debug for PinnedGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let generation = self.snapshot().generation;
        let mut debug = f.debug_struct("PinnedGeneration");
        debug.field("generation", &generation).field("dialog", &self.dialog()).finish_non_exhaustive()
    }
}

fn instances(routing_table: &RoutingTable<InstanceRef>) -> impl Iterator<Item = &InstanceRef> {
    routing_table.routes.values().filter_map(|it| match &it.target {
        RouteTarget::Shared(instance) => Some(instance),
        RouteTarget::Leased(_) => None,
    })
}

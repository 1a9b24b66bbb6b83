//! Pinned generations: their names, schemas and routes do not change.
//!
//! A pinned instance that is retired accepts pinned calls for the host's drain period; later calls fail. A call is
//! never sent to another instance, even if that has a tool of the same name.

use std::fmt;
use std::sync::Arc;

use mcp_host_model::{CallResult, PromptResult, RawJson, ResourceResult};

use crate::calls::pinned_routes::PinnedRoutes;
use crate::calls::request_options::RequestOptions;
use crate::calls::route::CatalogVersion;
use crate::calls::router::CallRouter;
use crate::calls::tool_call::ToolCall;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::published::HostSnapshot;
use crate::supervisor::dialog::DialogGuard;

/// A pinned generation for one turn of an agent: the model can call the tools that it was shown. Drop it at the end of
/// the turn, because it keeps retired instances.
pub struct PinnedGeneration {
    router: Arc<CallRouter>,
    /// Keeps the dialog alive until the turn ends.
    dialog_guard: Option<Arc<DialogGuard>>,
    routes: PinnedRoutes,
}

impl PinnedGeneration {
    /// Pins the latest generation.
    pub(crate) fn new(router: &Arc<CallRouter>, dialog_guard: Option<Arc<DialogGuard>>) -> PinnedGeneration {
        let routes = PinnedRoutes::pin_latest(router.supervisor());
        PinnedGeneration { router: Arc::clone(router), dialog_guard, routes }
    }

    /// Returns the snapshot of the generation.
    pub fn snapshot(&self) -> &Arc<HostSnapshot> {
        &self.routes.routing_table.snapshot
    }

    /// Calls a tool of this generation, like [`Host::call`](crate::host::Host::call). If the server was replaced or
    /// stopped and the drain period has passed, the error is of the kind
    /// [`ErrorKind::Replaced`](mcp_host_model::ErrorKind::Replaced). In a dialog's turn
    /// ([`Dialog::pin`](crate::calls::dialog::Dialog::pin)) the call belongs to that dialog unless it names
    /// another.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        let call = ToolCall { options: self.with_dialog(call.options), ..call };
        self.router.call(call, self.version()).await
    }

    /// Renders a prompt of this generation, like [`Host::get_prompt`](crate::host::Host::get_prompt).
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawJson,
        options: RequestOptions,
    ) -> Result<PromptResult, HostError> {
        self.router.requests.get_prompt(name, arguments, self.with_dialog(options), self.version()).await
    }

    /// Reads a resource of this generation, like [`Host::read_resource`](crate::host::Host::read_resource).
    pub async fn read_resource(
        &self,
        uri: &str,
        options: RequestOptions,
    ) -> Result<ResourceResult, HostError> {
        self.router.requests.read_resource(uri, self.with_dialog(options), self.version()).await
    }

    fn dialog(&self) -> Option<DialogId> {
        self.dialog_guard.as_ref().map(|it| it.id.clone())
    }

    /// Returns the options of a request, which belongs to the dialog of the turn unless it names another.
    fn with_dialog(&self, options: RequestOptions) -> RequestOptions {
        let dialog = options.dialog.or_else(|| self.dialog());
        RequestOptions { dialog, ..options }
    }

    fn version(&self) -> CatalogVersion<'_> {
        CatalogVersion::Pinned(&self.routes)
    }
}

impl fmt::Debug for PinnedGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let generation = self.snapshot().generation;
        let mut debug = f.debug_struct("PinnedGeneration");
        debug.field("generation", &generation).field("dialog", &self.dialog()).finish_non_exhaustive()
    }
}

//! Handles of dialogs: callers with leases of their own.

use std::fmt;
use std::sync::Arc;

use mcp_host_model::{CallResult, PromptResult, RawJson, ResourceResult, Secret};

use crate::calls::pin::PinnedGeneration;
use crate::calls::request_options::RequestOptions;
use crate::calls::route::CatalogVersion;
use crate::calls::router::CallRouter;
use crate::calls::tool_call::ToolCall;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::supervisor::dialog::{DialogGuard, Reminder};

/// A handle of a running dialog. When the last handle and the last [turn](Dialog::pin) of a dialog are dropped, its
/// leases are released; running calls have the host's grace period.
pub struct Dialog {
    pub(crate) router: Arc<CallRouter>,
    pub(crate) guard: Arc<DialogGuard>,
}

impl Dialog {
    /// Returns the id.
    pub fn id(&self) -> &DialogId {
        &self.guard.id
    }

    /// Sets the access token of the dialog's user, or replaces it with a newer one of the same user. For a server with
    /// token exchange, the host exchanges it for a token of that server. It is dropped with the dialog.
    pub fn set_subject_token(&self, token: Secret) {
        self.router.supervisor().shared.subjects.set(self.id(), token);
    }

    /// Returns the options of a request of this dialog.
    fn with_dialog(&self, options: RequestOptions) -> RequestOptions {
        RequestOptions { dialog: Some(self.id().clone()), ..options }
    }

    /// Calls a tool for this dialog, like [`Host::call`](crate::host::Host::call).
    pub async fn call(&self, call: ToolCall) -> CallResult {
        let call = ToolCall { options: self.with_dialog(call.options), ..call };
        self.router.call(call, CatalogVersion::Latest).await
    }

    /// Renders a prompt for this dialog, like [`Host::get_prompt`](crate::host::Host::get_prompt).
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawJson,
        options: RequestOptions,
    ) -> Result<PromptResult, HostError> {
        let (options, version) = (self.with_dialog(options), CatalogVersion::Latest);
        self.router.requests.get_prompt(name, arguments, options, version).await
    }

    /// Reads a resource for this dialog, like [`Host::read_resource`](crate::host::Host::read_resource).
    pub async fn read_resource(
        &self,
        uri: &str,
        options: RequestOptions,
    ) -> Result<ResourceResult, HostError> {
        let (options, version) = (self.with_dialog(options), CatalogVersion::Latest);
        self.router.requests.read_resource(uri, options, version).await
    }

    /// Pins the latest generation for a turn of this dialog, like [`Host::pin`](crate::host::Host::pin). The turn's
    /// calls belong to the dialog and keep it alive.
    pub fn pin(&self) -> PinnedGeneration {
        PinnedGeneration::new(&self.router, Some(Arc::clone(&self.guard)))
    }

    /// Returns the reason why the dialog is stopped, if it is. Check it before each request to the model.
    pub fn stop_reason(&self) -> Option<HostError> {
        self.router.supervisor().stop_reason(self.id())
    }

    /// Resumes the dialog, like [`Host::resume`](crate::host::Host::resume).
    pub async fn resume(&self) {
        self.router.supervisor().resume(self.id()).await;
    }

    /// Returns the current reminders for the model: one per leased server, in the order of the first leases.
    pub fn reminders(&self) -> Vec<Reminder> {
        self.router.lease_reports.reminders(self.router.supervisor(), self.id())
    }
}

impl fmt::Debug for Dialog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialog").field("id", self.id()).finish_non_exhaustive()
    }
}

//! The functions of a host for gateways: raw results, notifications, log levels and subscriptions.

use mcp_host_model::{LogLevel, Method, RawJson, ServerId};
use mcp_host_transport::{CompletionArgument, CompletionReference, ServerInfo};

use super::Host;
use crate::calls::raw_result::{RawResult, RequestFailure};
use crate::calls::request_options::RequestOptions;
use crate::calls::route::CatalogVersion;
use crate::calls::servers::{apply_log_levels, notify_roots_changed, server_definitions, server_info};
use crate::calls::skills::send_skill_request_raw;
use crate::calls::subscribe::subscribe;
use crate::calls::tool_call::ToolCall;
use crate::config::approval::ServerDefinitions;
use crate::error::HostError;
use crate::notifications::stream::NotificationStream;
use crate::notifications::subscriptions::Subscription;
use crate::state::dialog_id::DialogId;

impl Host {
    /// Calls a tool like [`Host::call`] and returns the server's result uncut and unchecked. Arguments are validated.
    pub async fn call_raw(&self, call: ToolCall) -> Result<RawResult, RequestFailure> {
        self.router.call_raw(call, CatalogVersion::Latest).await
    }

    /// Renders a prompt like [`Host::get_prompt`] and returns the raw result.
    pub async fn get_prompt_raw(
        &self,
        name: &str,
        arguments: &RawJson,
        options: RequestOptions,
    ) -> Result<RawResult, RequestFailure> {
        self.router.requests.get_prompt_raw(name, arguments, options).await
    }

    /// Reads a resource like [`Host::read_resource`], without a cache, and returns the raw result.
    pub async fn read_resource_raw(
        &self,
        uri: &str,
        options: RequestOptions,
    ) -> Result<RawResult, RequestFailure> {
        self.router.requests.read_resource_raw(uri, options).await
    }

    /// Completes an argument like [`Host::complete`] and returns the raw result.
    pub async fn complete_raw(
        &self,
        reference: &CompletionReference,
        argument: &CompletionArgument,
        options: RequestOptions,
    ) -> Result<RawResult, RequestFailure> {
        self.router.requests.complete_raw(reference, argument, options).await
    }

    /// Sends a request about a task of the server in `options` and returns the raw result. `input` has responses to
    /// the task's requests for input (`tasks/update`).
    pub async fn send_task_request_raw(
        &self,
        method: Method,
        id: &str,
        input: Option<&RawJson>,
        options: RequestOptions,
    ) -> Result<RawResult, RequestFailure> {
        self.router.requests.send_task_request_raw(method, id, input, options).await
    }

    /// Waits for the result of a task of the server in `options`, for at most `options.deadline` or an hour. Dropping
    /// the future leaves the task alone.
    pub async fn wait_for_task_result(
        &self,
        id: &str,
        options: RequestOptions,
    ) -> Result<RawResult, RequestFailure> {
        self.router.requests.wait_for_task_result(id, options).await
    }

    /// Sends a request of the skills extension and returns the raw result. `uri` is that of the `SKILL.md` or
    /// the folder, and is routed like that of a resource; without it, the list is that of the server in
    /// `options`. A cursor belongs to the extra parameters.
    pub async fn send_skill_request_raw(
        &self,
        method: Method,
        uri: Option<&str>,
        options: RequestOptions,
    ) -> Result<RawResult, RequestFailure> {
        send_skill_request_raw(&self.router.requests, method, uri, options).await
    }

    /// Returns what a server that accepts calls reported about itself in its last connection; otherwise `None`.
    pub fn server_info(&self, server: &ServerId) -> Option<ServerInfo> {
        server_info(self.router.supervisor(), server)
    }

    /// Returns the current definitions of a server that accepts calls, shown or hidden; otherwise `None`.
    pub fn server_definitions(&self, server: &ServerId) -> Option<ServerDefinitions> {
        server_definitions(self.router.supervisor(), server)
    }

    /// Returns a stream of all server notifications from now on: log messages, changed resources and others. A slow
    /// reader loses the oldest ones and receives their number.
    pub fn notifications(&self) -> NotificationStream {
        self.router.supervisor().shared.notifications.subscribe()
    }

    /// Sets the minimum log level of all servers, including those started later. Returns when running servers have
    /// responded; failures are logged. Cancel-safe: servers may have been updated in part.
    pub async fn set_log_level(&self, level: LogLevel) {
        self.router.supervisor().shared.log_levels.set_all(level);
        for (server, outcome) in apply_log_levels(self.router.supervisor(), None).await {
            if let Err(failure) = outcome {
                tracing::warn!(%server, %failure, "the log level was not set");
            }
        }
    }

    /// Sets the minimum log level of one server, until a level for all is set. Fails if the server is unknown or
    /// refuses.
    pub async fn set_server_log_level(&self, server: &ServerId, level: LogLevel) -> Result<(), HostError> {
        self.router.supervisor().require_server(server)?;
        self.router.supervisor().shared.log_levels.set_server(server.clone(), level);
        apply_log_levels(self.router.supervisor(), Some(server)).await.into_iter().try_for_each(|it| it.1)
    }

    /// Subscribes to a resource: of the server in `options`, else of the one that a read would use; of a leased
    /// server, on the dialog's instance. Changes arrive in [`Host::notifications`] until the result is dropped. Equal
    /// subscriptions share one request. A new instance subscribes again, and its resources count as changed. Returns
    /// when the server has accepted.
    pub async fn subscribe_resource(
        &self,
        uri: &str,
        options: RequestOptions,
    ) -> Result<Subscription, RequestFailure> {
        subscribe(&self.router.requests, uri, options).await
    }

    /// Notifies the leased servers of a dialog that its roots changed: legacy servers that support it. Modern servers
    /// request roots each time.
    pub fn notify_roots_changed(&self, dialog: &DialogId) {
        notify_roots_changed(self.router.supervisor(), dialog);
    }
}

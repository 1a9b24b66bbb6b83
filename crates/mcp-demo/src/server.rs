//! The request handler for rmcp: selects the state of a request and sends list changes to subscribers.
//!
//! Every list is one page in a fixed order.

#![expect(deprecated, reason = "log levels are set by legacy clients, which are still served")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
        SetLevelRequestMethod, SetLevelRequestParams, SubscriptionFilter,
    },
    service::{RequestContext, SubscriptionContext},
};
use tokio::sync::watch;

use crate::{
    content::{prompts, resources},
    lifetime::Lifetime,
    state::{DemoState, Era},
    tools::{self, ToolCall, log},
};

const INSTRUCTIONS: &str = "A demo server: `echo` and `add` answer, `sleep` reports progress, `fail` fails, \
    `change_tools` changes this list, `exit` ends the server.";

/// The handler for one client; over HTTP, for one session or one modern request.
pub(crate) struct DemoHandler {
    /// The state of a legacy client.
    session_state: Arc<DemoState>,
    /// The state of modern requests.
    shared_state: Arc<DemoState>,
    lifetime: Arc<Lifetime>,
    /// Receivers created before a subscription is acknowledged, so that `listen` misses no change.
    pending_receivers: Mutex<VecDeque<watch::Receiver<u64>>>,
}

impl DemoHandler {
    pub(crate) fn new(
        session_state: Arc<DemoState>,
        shared_state: Arc<DemoState>,
        lifetime: Arc<Lifetime>,
    ) -> DemoHandler {
        DemoHandler { session_state, shared_state, lifetime, pending_receivers: Mutex::default() }
    }

    /// The state for a request of this era.
    fn state(&self, era: Era) -> &DemoState {
        match era {
            Era::Legacy => &self.session_state,
            Era::Modern => &self.shared_state,
        }
    }
}

/// The era of a request, by its protocol version.
fn request_era(context: &RequestContext<RoleServer>) -> Era {
    match context.protocol_version() {
        Some(version) if version >= ProtocolVersion::V_2026_07_28 => Era::Modern,
        _ => Era::Legacy,
    }
}

/// Rejects a cursor: lists have one page, so none was ever returned.
fn reject_cursor(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params("unknown cursor", None)),
    }
}

impl ServerHandler for DemoHandler {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("mcp-demo", env!("CARGO_PKG_VERSION")).with_title("MCP demo server");
        if self.session_state.custom_tools().is_some() {
            let capabilities =
                ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
            return ServerConfig::new(capabilities).with_server_info(name);
        }
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let state = self.state(request_era(&context));
        if let Some(custom) = state.custom_tools() {
            let cursor = request.and_then(|request| request.cursor);
            let (tools, next) = tools::custom_tools_page(custom, cursor.as_deref())?;
            let mut result = ListToolsResult::with_all_items(tools);
            result.next_cursor = next;
            return Ok(result);
        }
        reject_cursor(request)?;
        Ok(ListToolsResult::with_all_items(tools::list(&state.added())))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let era = request_era(&context);
        tools::call_tool(ToolCall { state: self.state(era), lifetime: &self.lifetime, era, request, context })
            .await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        reject_cursor(request)?;
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request).map(GetPromptResponse::from)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        reject_cursor(request)?;
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        reject_cursor(request)?;
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(ReadResourceResponse::from)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        resources::complete(&request)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match request_era(&context) {
            Era::Legacy => {
                self.session_state.set_threshold(log::rank(request.level));
                Ok(())
            }
            // A modern request names its own level.
            Era::Modern => Err(ErrorData::method_not_found::<SetLevelRequestMethod>()),
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut receivers = self.pending_receivers.lock().unwrap_or_else(PoisonError::into_inner);
        receivers.push_back(self.shared_state.changes());
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let pending = self.pending_receivers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let mut changes = pending.unwrap_or_else(|| self.shared_state.changes());
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.lifetime.wait_for_end() => return Ok(()),
                changed = changes.changed() => {
                    // An error means that the state was dropped or the client disconnected.
                    if changed.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

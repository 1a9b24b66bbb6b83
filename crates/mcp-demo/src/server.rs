//! The handler that rmcp calls: which state a request sees, and who hears of a change.
//!
//! Prompts, resources and tools stand in files of their own. Every list is one page in a fixed order.

#![expect(deprecated, reason = "log levels are set by legacy clients, which are still served")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, Implementation,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscriptionFilter,
    },
    service::{RequestContext, SubscriptionContext},
};
use tokio::sync::watch;

use crate::{
    life::Life,
    prompts, resources,
    state::State,
    tools::{self, Call, log},
};

const INSTRUCTIONS: &str = "A demo server: `echo` and `add` answer, `sleep` reports progress, `fail` fails, \
    `change_tools` changes this list, `exit` ends the server.";

/// How the client of a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Up to 2025-11-25: there was an `initialize`, and the server may send requests of its own.
    Legacy,
    /// From 2026-07-28 on: each request stands alone.
    Sessionless,
}

/// One client's server; over HTTP one session's, or one sessionless request's.
pub(crate) struct Demo {
    session: Arc<State>,
    process: Arc<State>,
    life: Arc<Life>,
    /// Receivers taken before a subscription is acknowledged, for `listen` to use: what changes in between is seen.
    opening: Mutex<VecDeque<watch::Receiver<u64>>>,
}

impl Demo {
    /// `session` is what a legacy client sees, `process` what sessionless requests see.
    pub(crate) fn new(session: Arc<State>, process: Arc<State>, life: Arc<Life>) -> Demo {
        Demo { session, process, life, opening: Mutex::default() }
    }

    fn state(&self, era: Era) -> &State {
        match era {
            Era::Legacy => &self.session,
            Era::Sessionless => &self.process,
        }
    }
}

fn era(context: &RequestContext<RoleServer>) -> Era {
    match context.protocol_version() {
        Some(version) if version >= ProtocolVersion::V_2026_07_28 => Era::Sessionless,
        _ => Era::Legacy,
    }
}

/// Lists have one page, so that no cursor was ever given out.
fn one_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|it| it.cursor) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params("this cursor is not one of ours", None)),
    }
}

impl ServerHandler for Demo {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("mcp-demo", env!("CARGO_PKG_VERSION")).with_title("MCP demo server");
        if self.session.offer().is_some() {
            let capabilities =
                ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
            return ServerConfig::new(capabilities).with_server_info(name);
        }
        let capabilities = ServerCapabilities::builder()
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
        let state = self.state(era(&context));
        if let Some(offer) = state.offer() {
            let (tools, next) = tools::offered(offer, request.and_then(|it| it.cursor).as_deref())?;
            let mut res = ListToolsResult::with_all_items(tools);
            res.next_cursor = next;
            return Ok(res);
        }
        one_page(request)?;
        Ok(ListToolsResult::with_all_items(tools::list(&state.added())))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let era = era(&context);
        tools::call(Call { state: self.state(era), life: &self.life, era, request, context }).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        one_page(request)?;
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
        one_page(request)?;
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        one_page(request)?;
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(ReadResourceResponse::from)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match era(&context) {
            Era::Legacy => {
                self.session.set_threshold(log::rank(request.level));
                Ok(())
            }
            // There each request names its own level.
            Era::Sessionless => Err(ErrorData::method_not_found::<SetLevelRequestMethod>()),
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        opening.push_back(self.process.changes());
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let taken = self.opening.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let mut changes = taken.unwrap_or_else(|| self.process.changes());
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.life.over() => return Ok(()),
                changed = changes.changed() => {
                    // An error means that the state, or the client, is gone.
                    if changed.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

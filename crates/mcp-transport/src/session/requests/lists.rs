//! Complete lists of tools, prompts and resources: all pages, within limits.

use std::collections::HashSet;
use std::sync::Arc;

use mcp_host_model::{
    Era, InvalidItem, Method, Page, Prompt, Resource, ResourceTemplate, Tool, code, read_prompts,
    read_resource_templates, read_resources, read_tools,
};
use tokio::time::Instant;

use crate::error::CallError;
use crate::error::Expiry;
use crate::rpc::frame;
use crate::session::cache::{ListCache, expires_at};
use crate::session::list_changes::ListChangeCounts;
use crate::session::list_result::ListResult;
use crate::session::negotiated::header_params::ToolHeaders;
use crate::session::options::{CallOptions, RetryPolicy};
use crate::session::requests::request::{OutboundRequest, RequestParams};
use crate::session::state::Session;

/// A function that reads one page of a list.
pub(crate) type ReadPage<T> = fn(&[u8]) -> Result<Page<T>, serde_json::Error>;

/// How to request and cache one kind of list.
struct ListRequest<'a, T> {
    method: Method,
    read_page: ReadPage<T>,
    cache: &'a ListCache<T>,
    /// Returns the number of announced changes of this list.
    change_count: fn(&ListChangeCounts) -> u64,
}

impl Session {
    /// Lists all tools. A server without the capability has none and gets no request.
    ///
    /// A list is cached for the time that the server allows, unless the server announces a change. This applies to the
    /// other lists too.
    pub async fn list_tools(&self) -> Result<ListResult<Tool>, CallError> {
        let is_supported = self.negotiated().server.capabilities.tools;
        let cache = &self.cache.tools;
        let list = ListRequest {
            method: Method::ListTools,
            read_page: read_tools::<[u8]>,
            cache,
            change_count: |counts| counts.tools,
        };
        let on_complete = |result: &mut ListResult<Tool>| {
            if self.era() == Era::Modern {
                self.record_tool_headers(result);
            }
        };
        self.list(is_supported, &list, on_complete).await
    }

    /// Lists all prompts. A server without the capability has none and gets no request.
    pub async fn list_prompts(&self) -> Result<ListResult<Prompt>, CallError> {
        let is_supported = self.negotiated().server.capabilities.prompts;
        let (method, cache) = (Method::ListPrompts, &self.cache.prompts);
        let read_page = read_prompts::<[u8]>;
        let list = ListRequest { method, read_page, cache, change_count: |counts| counts.prompts };
        self.list(is_supported, &list, |_| {}).await
    }

    /// Lists all resources. A server without the capability has none and gets no request.
    pub async fn list_resources(&self) -> Result<ListResult<Resource>, CallError> {
        let is_supported = self.negotiated().server.capabilities.resources;
        let (method, cache) = (Method::ListResources, &self.cache.resources);
        let read_page = read_resources::<[u8]>;
        let list = ListRequest { method, read_page, cache, change_count: |counts| counts.resources };
        self.list(is_supported, &list, |_| {}).await
    }

    /// Lists all resource templates. A server without resources has none and gets no request. A server that does not
    /// know the method has none either.
    pub async fn list_resource_templates(&self) -> Result<ListResult<ResourceTemplate>, CallError> {
        let is_supported = self.negotiated().server.capabilities.resources;
        let (method, cache) = (Method::ListResourceTemplates, &self.cache.templates);
        let read_page = read_resource_templates::<[u8]>;
        let list = ListRequest { method, read_page, cache, change_count: |counts| counts.resources };
        match self.list(is_supported, &list, |_| {}).await {
            Err(CallError::Rpc(error)) if error.code == code::METHOD_NOT_FOUND => Ok(ListResult::empty()),
            outcome => outcome,
        }
    }

    /// Returns the cached list or requests it. `on_complete` is called for a requested list before it is cached.
    async fn list<T: Clone>(
        &self,
        is_supported: bool,
        list: &ListRequest<'_, T>,
        on_complete: impl FnOnce(&mut ListResult<T>),
    ) -> Result<ListResult<T>, CallError> {
        if !is_supported {
            return Ok(ListResult::empty());
        }
        match self.cached_list(list) {
            Some(cached) => Ok(cached),
            None => self.fetch_list(list, on_complete).await,
        }
    }

    /// Returns the cached list if it is valid. An ended session has no valid lists, because it would not receive change
    /// notifications.
    fn cached_list<T: Clone>(&self, list: &ListRequest<'_, T>) -> Option<ListResult<T>> {
        if self.connection.engine.disconnect().is_some() {
            return None;
        }
        list.cache.get((list.change_count)(&self.connection.list_changes.borrow()), Instant::now())
    }

    /// Records the header marks of the tools. Tools with invalid marks are moved to `rejected`.
    fn record_tool_headers(&self, list: &mut ListResult<Tool>) {
        let mut tool_headers = ToolHeaders::default();
        let mut rejected = Vec::new();
        list.items.retain(|tool| match tool_headers.add_tool(tool) {
            Ok(()) => true,
            Err(reason) => {
                tracing::warn!(
                    tool = &*tool.name,
                    server = self.dial.label(),
                    "a tool is rejected: {reason}"
                );
                rejected.push(InvalidItem::new(Some(tool.name.to_string()), reason));
                false
            }
        });
        list.rejected.extend(rejected);
        let tool_headers = (!tool_headers.is_empty()).then(|| Arc::new(tool_headers));
        self.update_negotiated(|it| it.tool_headers.clone_from(&tool_headers));
    }

    /// Requests a list and caches it.
    async fn fetch_list<T: Clone>(
        &self,
        list: &ListRequest<'_, T>,
        on_complete: impl FnOnce(&mut ListResult<T>),
    ) -> Result<ListResult<T>, CallError> {
        // Read before the request: a change announced meanwhile invalidates the result.
        let change_count = (list.change_count)(&self.connection.list_changes.borrow());
        let options = CallOptions { retry: RetryPolicy::Once, ..CallOptions::default() };
        let request = OutboundRequest::new(list.method, RequestParams::NONE, &options);
        let (mut result, expires_at) = self.fetch_pages(&request, list.read_page).await?;
        on_complete(&mut result);
        list.cache.insert(&result, change_count, expires_at);
        Ok(result)
    }

    /// Requests all pages of a list (HD-SC8, SK-10), within the timeout of `request`, otherwise the longer of the
    /// limits for a start and for a request. Returns the list and when it expires. `request` has no parameters; the
    /// cursor is added for each page.
    pub(crate) async fn fetch_pages<T>(
        &self,
        request: &OutboundRequest<'_>,
        read_page: ReadPage<T>,
    ) -> Result<(ListResult<T>, Option<Instant>), CallError> {
        let limit = {
            let limits = self.limits();
            request.options.timeout.unwrap_or(limits.startup.max(limits.request))
        };
        tokio::time::timeout(limit, self.fetch_pages_without_timeout(request, read_page))
            .await
            .unwrap_or(Err(CallError::TimedOut(Expiry::Absolute(limit))))
    }

    /// Requests pages until there is no cursor. Fails if a cursor is repeated, or if the pages, their items or their
    /// bytes are too many.
    async fn fetch_pages_without_timeout<T>(
        &self,
        request: &OutboundRequest<'_>,
        read_page: ReadPage<T>,
    ) -> Result<(ListResult<T>, Option<Instant>), CallError> {
        let limits = self.limits.load_full();
        let method = &request.method;
        let mut bytes = 0;
        let mut list = ListResult::empty();
        let mut list_expires_at: Option<Instant> = None;
        let mut seen_cursors = HashSet::new();
        let mut params_text = String::new();
        for page_number in 0..limits.list_pages {
            let params = RequestParams::members(&params_text);
            let page_request = OutboundRequest { params, started_at: Instant::now(), ..request.clone() };
            let response = self.request(&page_request).await?;
            let received_at = Instant::now();
            bytes += response.payload().len();
            if bytes > limits.message_bytes {
                return Err(CallError::ListTooLarge(format!(
                    "{method} has more than {} bytes",
                    limits.message_bytes
                )));
            }
            let page = response.read_with(read_page)?;
            if list.items.is_empty() {
                // Most lists have one page, whose items are not copied.
                list.items = page.items;
            } else {
                list.items.extend(page.items);
            }
            list.rejected.extend(page.rejected);
            if list.items.len() + list.rejected.len() > limits.list_items {
                return Err(CallError::ListTooLarge(format!(
                    "{method} has more than {} items",
                    limits.list_items
                )));
            }
            // The list expires with the first of its pages.
            let page_expires_at = expires_at(page.freshness, received_at);
            (list.freshness, list_expires_at) = match page_number {
                0 => (page.freshness, page_expires_at),
                _ => (
                    list.freshness.combine(page.freshness),
                    list_expires_at.zip(page_expires_at).map(|(list, page)| list.min(page)),
                ),
            };
            let Some(cursor) = page.next_cursor else { return Ok((list, list_expires_at)) };
            params_text = format!("\"cursor\":{}", frame::json_string(&cursor));
            if !seen_cursors.insert(cursor) {
                return Err(CallError::ListTooLarge(format!("{method} returned the same cursor twice")));
            }
        }
        Err(CallError::ListTooLarge(format!("{method} has more than {} pages", limits.list_pages)))
    }
}

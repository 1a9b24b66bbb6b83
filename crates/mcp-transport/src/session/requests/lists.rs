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
use crate::session::cache::{CachedList, expiry};
use crate::session::list_changes::ListChangeCounts;
use crate::session::list_result::ListResult;
use crate::session::negotiated::header_params::ToolHeaders;
use crate::session::options::{CallOptions, RetryPolicy};
use crate::session::requests::request::{Params, Request};
use crate::session::state::Session;

pub(crate) type ReadPage<T> = fn(&[u8]) -> Result<Page<T>, serde_json::Error>;

/// How to request and cache one kind of list. `counter` selects the number of its announced changes.
struct ListRequest<'a, T> {
    method: Method,
    read: ReadPage<T>,
    cache: &'a CachedList<T>,
    counter: fn(&ListChangeCounts) -> u64,
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
            read: read_tools::<[u8]>,
            cache,
            counter: |it| it.tools,
        };
        let on_complete = |result: &mut ListResult<Tool>| {
            if self.era() == Era::Modern {
                self.learn_tool_headers(result);
            }
        };
        self.list(is_supported, &list, on_complete).await
    }

    /// Lists all prompts. A server without the capability has none and gets no request.
    pub async fn list_prompts(&self) -> Result<ListResult<Prompt>, CallError> {
        let is_supported = self.negotiated().server.capabilities.prompts;
        let (method, cache) = (Method::ListPrompts, &self.cache.prompts);
        let list = ListRequest { method, read: read_prompts::<[u8]>, cache, counter: |it| it.prompts };
        self.list(is_supported, &list, |_| {}).await
    }

    /// Lists all resources. A server without the capability has none and gets no request.
    pub async fn list_resources(&self) -> Result<ListResult<Resource>, CallError> {
        let is_supported = self.negotiated().server.capabilities.resources;
        let (method, cache) = (Method::ListResources, &self.cache.resources);
        let list = ListRequest { method, read: read_resources::<[u8]>, cache, counter: |it| it.resources };
        self.list(is_supported, &list, |_| {}).await
    }

    /// Lists all resource templates. A server without resources has none and gets no request. A server that does not
    /// know the method has none either.
    pub async fn list_resource_templates(&self) -> Result<ListResult<ResourceTemplate>, CallError> {
        let is_supported = self.negotiated().server.capabilities.resources;
        let (method, cache) = (Method::ListResourceTemplates, &self.cache.templates);
        let list =
            ListRequest { method, read: read_resource_templates::<[u8]>, cache, counter: |it| it.resources };
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
        match self.cached(list) {
            Some(cached) => Ok(cached),
            None => self.fetch_list(list, on_complete).await,
        }
    }

    /// Returns the cached list if it is valid. An ended session has no valid lists, because it would not receive change
    /// notifications.
    fn cached<T: Clone>(&self, list: &ListRequest<'_, T>) -> Option<ListResult<T>> {
        if self.connection.engine.disconnect().is_some() {
            return None;
        }
        list.cache.get((list.counter)(&self.connection.changes.borrow()), Instant::now())
    }

    /// Records the header marks of the tools; tools with invalid marks are moved to `rejected`.
    pub(crate) fn learn_tool_headers(&self, listing: &mut ListResult<Tool>) {
        let mut tool_headers = ToolHeaders::default();
        let mut rejected = Vec::new();
        listing.items.retain(|tool| match tool_headers.add_tool(tool) {
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
        listing.rejected.extend(rejected);
        let tool_headers = (!tool_headers.is_empty()).then(|| Arc::new(tool_headers));
        self.change_negotiated(|it| it.tool_headers.clone_from(&tool_headers));
    }

    /// Requests pages until there is no cursor (HD-SC8, SK-10). A repeated cursor, too many pages or too many items are
    /// errors: such a list does not end.
    ///
    /// All pages together must arrive within the start-up limit and fit into the message size limit.
    async fn fetch_list<T: Clone>(
        &self,
        list: &ListRequest<'_, T>,
        on_complete: impl FnOnce(&mut ListResult<T>),
    ) -> Result<ListResult<T>, CallError> {
        // Read before the request: a change announced meanwhile invalidates the result.
        let seen = (list.counter)(&self.connection.changes.borrow());
        let options = CallOptions { retry: RetryPolicy::Once, ..CallOptions::default() };
        let request = Request::new(list.method, Params::NONE, &options);
        let (mut listing, expires) = self.fetch_pages(&request, list.read).await?;
        on_complete(&mut listing);
        list.cache.insert(&listing, seen, expires);
        Ok(listing)
    }

    /// All pages of a list, and when they expire together. The request has no parameters yet; each page gets
    /// its cursor.
    pub(crate) async fn fetch_pages<T>(
        &self,
        request: &Request<'_>,
        read: ReadPage<T>,
    ) -> Result<(ListResult<T>, Option<Instant>), CallError> {
        let limit = {
            let limits = self.limits();
            request.options.timeout.unwrap_or(limits.startup.max(limits.request))
        };
        tokio::time::timeout(limit, self.fetch_pages_unlimited(request, read))
            .await
            .unwrap_or(Err(CallError::TimedOut(Expiry::Absolute(limit))))
    }

    async fn fetch_pages_unlimited<T>(
        &self,
        request: &Request<'_>,
        read: ReadPage<T>,
    ) -> Result<(ListResult<T>, Option<Instant>), CallError> {
        let limits = self.limits.load_full();
        let method = &request.method;
        let mut bytes = 0;
        let mut res = ListResult::empty();
        let mut expires = None;
        let mut seen = HashSet::new();
        let mut params = String::new();
        for page_number in 0..limits.list_pages {
            let params_of_page = Params::members(&params);
            let page_request =
                Request { params: params_of_page, started_at: Instant::now(), ..request.clone() };
            let response = self.request(&page_request).await?;
            let received = Instant::now();
            bytes += response.payload().len();
            if bytes > limits.message_bytes {
                return Err(CallError::ListTooLarge(format!(
                    "{method} has more than {} bytes",
                    limits.message_bytes
                )));
            }
            let page = response.read_by(read)?;
            match res.items.is_empty() {
                // Most lists have one page.
                true => res.items = page.items,
                false => res.items.extend(page.items),
            }
            res.rejected.extend(page.rejected);
            if res.items.len() + res.rejected.len() > limits.list_items {
                return Err(CallError::ListTooLarge(format!(
                    "{method} has more than {} items",
                    limits.list_items
                )));
            }
            // The list expires with the first of its pages.
            (res.freshness, expires) = match page_number {
                0 => (page.freshness, expiry(page.freshness, received)),
                _ => (
                    res.freshness.combine(page.freshness),
                    expires.and_then(|it| Some(expiry(page.freshness, received)?.min(it))),
                ),
            };
            let Some(cursor) = page.next_cursor else { return Ok((res, expires)) };
            params.clear();
            params.push_str("\"cursor\":");
            params.push_str(&frame::json_string(&cursor));
            if !seen.insert(cursor) {
                return Err(CallError::ListTooLarge(format!("{method} returned the same cursor twice")));
            }
        }
        Err(CallError::ListTooLarge(format!("{method} has more than {} pages", limits.list_pages)))
    }
}

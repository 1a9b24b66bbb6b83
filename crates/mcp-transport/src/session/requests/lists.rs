//! Complete lists of tools, prompts and resources: all pages, within limits.

use std::collections::HashSet;
use std::sync::Arc;

use mcp_host_model::{
    Era, InvalidItem, Method, Page, PageCursor, Prompt, RawJson, Resource, ResourceTemplate, Tool, code,
    read_prompts, read_resource_templates, read_resources, read_tools,
};
use tokio::time::Instant;

use crate::error::CallError;
use crate::error::Expiry;
use crate::session::cache::{ListCache, expires_at};
use crate::session::list_changes::ListChangeCounts;
use crate::session::list_result::{ListDefect, ListResult};
use crate::session::negotiated::tool_headers::ToolHeaders;
use crate::session::options::{CallOptions, RetryPolicy};
use crate::session::requests::request::{OutboundRequest, RequestParams};
use crate::session::state::Session;

/// How to read one kind of list.
pub(crate) struct ListReader<T> {
    /// Reads one page.
    pub(crate) read_page: fn(&[u8]) -> Result<Page<T>, serde_json::Error>,
    /// Returns the complete definition of an item.
    pub(crate) definition: fn(&T) -> &RawJson,
}

/// How to request and cache one kind of list.
struct ListRequest<'a, T> {
    method: Method,
    reader: ListReader<T>,
    options: CallOptions,
    cache: &'a ListCache<T>,
    /// Returns the number of announced changes of this list.
    change_count: fn(&ListChangeCounts) -> u64,
}

impl Session {
    /// Lists all tools. A server without the capability has none and gets no request.
    ///
    /// A list is cached for the time that the server allows, unless the server announces a change. If the server fails
    /// within a list, the list has what came before, and says why the rest is missing. This applies to the other lists
    /// too.
    pub async fn list_tools(&self) -> Result<ListResult<Tool>, CallError> {
        self.list_tools_with(CallOptions::default()).await
    }

    /// Lists all tools, with these options. Their timeout is that of the whole list.
    pub async fn list_tools_with(&self, options: CallOptions) -> Result<ListResult<Tool>, CallError> {
        let is_supported = self.negotiated().server.capabilities.tools;
        let list = ListRequest {
            method: Method::ListTools,
            reader: ListReader { read_page: read_tools::<[u8]>, definition: |tool: &Tool| &tool.raw },
            options,
            cache: &self.cache.tools,
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
        self.list_prompts_with(CallOptions::default()).await
    }

    /// Lists all prompts, with these options. Their timeout is that of the whole list.
    pub async fn list_prompts_with(&self, options: CallOptions) -> Result<ListResult<Prompt>, CallError> {
        let is_supported = self.negotiated().server.capabilities.prompts;
        let list = ListRequest {
            method: Method::ListPrompts,
            reader: ListReader { read_page: read_prompts::<[u8]>, definition: |prompt: &Prompt| &prompt.raw },
            options,
            cache: &self.cache.prompts,
            change_count: |counts| counts.prompts,
        };
        self.list(is_supported, &list, |_| {}).await
    }

    /// Lists all resources. A server without the capability has none and gets no request.
    pub async fn list_resources(&self) -> Result<ListResult<Resource>, CallError> {
        self.list_resources_with(CallOptions::default()).await
    }

    /// Lists all resources, with these options. Their timeout is that of the whole list.
    pub async fn list_resources_with(&self, options: CallOptions) -> Result<ListResult<Resource>, CallError> {
        let is_supported = self.negotiated().server.capabilities.resources;
        let list = ListRequest {
            method: Method::ListResources,
            reader: ListReader {
                read_page: read_resources::<[u8]>,
                definition: |resource: &Resource| &resource.raw,
            },
            options,
            cache: &self.cache.resources,
            change_count: |counts| counts.resources,
        };
        self.list(is_supported, &list, |_| {}).await
    }

    /// Lists all resource templates. A server without resources has none and gets no request. A server that does not
    /// know the method has none either.
    pub async fn list_resource_templates(&self) -> Result<ListResult<ResourceTemplate>, CallError> {
        self.list_resource_templates_with(CallOptions::default()).await
    }

    /// Lists all resource templates, with these options. Their timeout is that of the whole list.
    pub async fn list_resource_templates_with(
        &self,
        options: CallOptions,
    ) -> Result<ListResult<ResourceTemplate>, CallError> {
        let is_supported = self.negotiated().server.capabilities.resources;
        let list = ListRequest {
            method: Method::ListResourceTemplates,
            reader: ListReader {
                read_page: read_resource_templates::<[u8]>,
                definition: |template: &ResourceTemplate| &template.raw,
            },
            options,
            cache: &self.cache.templates,
            change_count: |counts| counts.resources,
        };
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
                rejected.push(InvalidItem::new(Some(tool.name.to_string()), None, reason.to_string()));
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
        let options = CallOptions { retry: RetryPolicy::Once, ..list.options.clone() };
        let request = OutboundRequest::new(list.method, RequestParams::NONE, &options);
        let (mut result, expires_at) = self.fetch_pages(&request, &list.reader).await?;
        on_complete(&mut result);
        list.cache.insert(&result, change_count, expires_at);
        Ok(result)
    }

    /// Requests all pages of a list (HD-SC8, SK-10), within the timeout of `request`, otherwise the longer of the
    /// limits for a start and for a request. Returns the list and when it expires. `request` has no parameters; the
    /// cursor is added for each page. If a later page fails, the list has the pages before it.
    pub(crate) async fn fetch_pages<T>(
        &self,
        request: &OutboundRequest<'_>,
        reader: &ListReader<T>,
    ) -> Result<(ListResult<T>, Option<Instant>), CallError> {
        let limit = {
            let limits = self.limits();
            request.options.timeout.unwrap_or(limits.startup.max(limits.request))
        };
        let mut pages = ListPages::new();
        let outcome = tokio::time::timeout(limit, self.fetch_remaining_pages(request, reader, &mut pages))
            .await
            .unwrap_or(Err(CallError::TimedOut(Expiry::Absolute(limit))));
        match outcome {
            Ok(()) => {}
            // The connection ended: what came is not usable.
            Err(error @ (CallError::Closed(_) | CallError::NotSent(_))) => return Err(error),
            Err(error) if pages.count == 0 || error.suggests_outage() => return Err(error),
            Err(error) => {
                let (page, reason) = (pages.count + 1, error.to_string());
                pages.list.defect = Some(ListDefect::PageFailed { page, reason });
            }
        }
        let ListPages { list, expires_at, .. } = pages;
        let expires_at = expires_at.filter(|_| list.defect.is_none());
        Ok((list, expires_at))
    }

    /// Requests pages until there is no cursor, a cursor is repeated, or the pages, their items or their bytes are too
    /// many. Dropping the future keeps the pages that were read.
    async fn fetch_remaining_pages<T>(
        &self,
        request: &OutboundRequest<'_>,
        reader: &ListReader<T>,
        pages: &mut ListPages<T>,
    ) -> Result<(), CallError> {
        let limits = self.limits.load_full();
        let method = &request.method;
        let mut bytes = 0;
        let mut params_text = String::new();
        let too_long = |limit: usize, what: &str| {
            Some(ListDefect::TooLong(format!("{method} has more than {limit} {what}")))
        };
        while pages.count < limits.list_pages {
            let params = RequestParams::members(&params_text);
            let page_request = OutboundRequest { params, started_at: Instant::now(), ..request.clone() };
            let response = self.request(&page_request).await?.without_unpaired_surrogates();
            let received_at = Instant::now();
            bytes += response.payload().len();
            if bytes > limits.message_bytes {
                pages.list.defect = too_long(limits.message_bytes, "bytes");
                return Ok(());
            }
            let mut page = response.read_with(reader.read_page)?;
            let next_cursor = page.next_cursor.take();
            pages.add(page, received_at);
            if let Some(error) = response.error_beside(self.dial.as_ref()) {
                pages.list.defect.get_or_insert(ListDefect::Error(error));
            }
            if pages.list.items.len() + pages.list.rejected.len() > limits.list_items {
                pages.truncate(limits.list_items);
                pages.list.defect = too_long(limits.list_items, "items");
                return Ok(());
            }
            // Since 2026-07-28 an empty cursor is a cursor (RPT-021).
            let is_last = |cursor: &PageCursor| self.era() == Era::Legacy && cursor.is_empty();
            let Some(cursor) = next_cursor.filter(|cursor| !is_last(cursor)) else { return Ok(()) };
            params_text = format!("\"cursor\":{}", cursor.as_json());
            if !pages.seen_cursors.insert(cursor) {
                pages.list.defect = Some(ListDefect::RepeatedCursor);
                pages.remove_repeated_items(reader.definition);
                return Ok(());
            }
        }
        pages.list.defect = too_long(limits.list_pages, "pages");
        Ok(())
    }
}

/// The pages of a list that were read so far.
struct ListPages<T> {
    list: ListResult<T>,
    count: usize,
    /// The list expires with the first of its pages.
    expires_at: Option<Instant>,
    seen_cursors: HashSet<PageCursor>,
}

impl<T> ListPages<T> {
    fn new() -> ListPages<T> {
        ListPages { list: ListResult::empty(), count: 0, expires_at: None, seen_cursors: HashSet::new() }
    }

    /// Adds a page that was received at this time.
    fn add(&mut self, page: Page<T>, received_at: Instant) {
        let list = &mut self.list;
        let items_before = list.items.len() + list.rejected.len();
        if list.items.is_empty() {
            // Most lists have one page: its items are not copied.
            list.items = page.items;
        } else {
            list.items.extend(page.items);
        }
        list.rejected.extend(page.rejected.into_iter().map(|mut item| {
            // A page counts from its own first item.
            item.position = item.position.map(|position| position + items_before);
            item
        }));
        list.defect = list.defect.take().or(page.defect.map(ListDefect::Page));
        let page_expires_at = expires_at(page.freshness, received_at);
        (list.freshness, self.expires_at) = match self.count {
            0 => (page.freshness, page_expires_at),
            _ => (
                list.freshness.combine(page.freshness),
                self.expires_at.zip(page_expires_at).map(|(list, page)| list.min(page)),
            ),
        };
        self.count += 1;
    }

    /// Removes the items over this limit.
    fn truncate(&mut self, limit: usize) {
        self.list.items.truncate(limit);
        self.list.rejected.truncate(limit - self.list.items.len());
    }

    /// Removes items whose definitions are those of earlier ones, byte for byte.
    fn remove_repeated_items(&mut self, definition: fn(&T) -> &RawJson) {
        let mut seen: HashSet<RawJson> = HashSet::new();
        self.list.items.retain(|item| seen.insert(definition(item).clone()));
    }
}

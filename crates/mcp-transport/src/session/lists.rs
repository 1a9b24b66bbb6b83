//! Lists, all pages of them, within bounds.

use std::collections::HashSet;
use std::sync::Arc;

use mcp_model::{
    Era, Freshness, InvalidItem, Page, Prompt, Resource, ResourceTemplate, Tool, code, read_prompts,
    read_resource_templates, read_resources, read_tools,
};
use tokio::time::Instant;

use super::cache::{Slot, until};
use super::header_params::Mirrors;
use super::request::{Params, Request};
use super::{ListChangeCounts, Session};
use crate::error::CallError;
use crate::rpc::deadline::Expiry;
use crate::rpc::frame;
use crate::session::{CallOptions, RetryPolicy};

/// A whole list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// What could be read, in the server's order.
    pub items: Vec<T>,
    /// What could not.
    pub rejected: Vec<InvalidItem>,
    /// How long it may be used, from the moment it was received.
    pub freshness: Freshness,
}

type Read<T> = fn(&[u8]) -> Result<Page<T>, serde_json::Error>;

/// One of a server's lists.
struct List<'a, T> {
    method: &'static str,
    read: Read<T>,
    slot: &'a Slot<T>,
    seen: fn(&ListChangeCounts) -> u64,
}

impl Session {
    /// All tools. A server without the capability has none, and is not asked.
    ///
    /// A list that its server allows to be used for a while is not asked for again within that time, unless the server
    /// says that it has changed; that holds for the other lists too.
    pub async fn list_tools(&self) -> Result<Listing<Tool>, CallError> {
        let list = List {
            method: "tools/list",
            read: read_tools::<[u8]>,
            slot: &self.kept.tools,
            seen: |it| it.tools,
        };
        if !self.negotiated().server.capabilities.tools {
            return Ok(Listing::empty());
        }
        if let Some(kept) = self.kept(&list) {
            return Ok(kept);
        }
        let set_aside = |listing: &mut Listing<Tool>| {
            if self.era() == Era::Modern {
                self.learn_mirrors(listing);
            }
        };
        self.list(&list, set_aside).await
    }

    /// All prompts. A server without the capability has none, and is not asked.
    pub async fn list_prompts(&self) -> Result<Listing<Prompt>, CallError> {
        let list = List {
            method: "prompts/list",
            read: read_prompts::<[u8]>,
            slot: &self.kept.prompts,
            seen: |it| it.prompts,
        };
        let has_prompts = self.negotiated().server.capabilities.prompts;
        match has_prompts {
            true => self.kept_or_listed(&list).await,
            false => Ok(Listing::empty()),
        }
    }

    /// All resources. A server without the capability has none, and is not asked.
    pub async fn list_resources(&self) -> Result<Listing<Resource>, CallError> {
        let list = List {
            method: "resources/list",
            read: read_resources::<[u8]>,
            slot: &self.kept.resources,
            seen: |it| it.resources,
        };
        let has_resources = self.negotiated().server.capabilities.resources;
        match has_resources {
            true => self.kept_or_listed(&list).await,
            false => Ok(Listing::empty()),
        }
    }

    /// All templates of resources. A server without resources has none, and is not asked; one that has resources and
    /// does not know the method has none either.
    pub async fn list_resource_templates(&self) -> Result<Listing<ResourceTemplate>, CallError> {
        let list = List {
            method: "resources/templates/list",
            read: read_resource_templates::<[u8]>,
            slot: &self.kept.templates,
            seen: |it| it.resources,
        };
        if !self.negotiated().server.capabilities.resources {
            return Ok(Listing::empty());
        }
        match self.kept_or_listed(&list).await {
            Err(CallError::Rpc(error)) if error.code == code::METHOD_NOT_FOUND => Ok(Listing::empty()),
            other => other,
        }
    }

    async fn kept_or_listed<T: Clone>(&self, list: &List<'_, T>) -> Result<Listing<T>, CallError> {
        match self.kept(list) {
            Some(kept) => Ok(kept),
            None => self.list(list, |_| {}).await,
        }
    }

    /// The list as it was read, while it may be used. A session that is over has none: nobody is there any more who
    /// would say that it has changed.
    fn kept<T: Clone>(&self, list: &List<'_, T>) -> Option<Listing<T>> {
        if self.wire.engine().ended().is_some() {
            return None;
        }
        list.slot.get((list.seen)(&self.wire.changes().borrow()), Instant::now())
    }

    /// Takes note of what tools want to see as headers; those that say it wrongly are set aside.
    pub(super) fn learn_mirrors(&self, listing: &mut Listing<Tool>) {
        let mut mirrors = Mirrors::default();
        let mut rejected = Vec::new();
        listing.items.retain(|tool| match mirrors.learn(tool) {
            Ok(()) => true,
            Err(reason) => {
                tracing::warn!(
                    tool = &*tool.name,
                    server = self.dial.label(),
                    "a tool is set aside: {reason}"
                );
                rejected.push(InvalidItem { name: Some(tool.name.to_string()), reason });
                false
            }
        });
        listing.rejected.extend(rejected);
        let mirrors = (!mirrors.is_empty()).then(|| Arc::new(mirrors));
        self.change_negotiated(|it| it.mirrors.clone_from(&mirrors));
    }

    /// Reads pages until there is no cursor (HD-SC8, SK-10). A cursor that comes twice, too many pages or too many items
    /// end with an error: such a list has no end.
    ///
    /// The pages together have the time that a server has to start, and the bytes that one message may have.
    async fn list<T: Clone>(
        &self,
        list: &List<'_, T>,
        set_aside: impl FnOnce(&mut Listing<T>),
    ) -> Result<Listing<T>, CallError> {
        let limit = {
            let limits = self.limits();
            limits.startup.max(limits.request)
        };
        // Looked at before the list is asked for: what is announced meanwhile makes it old.
        let seen = (list.seen)(&self.wire.changes().borrow());
        let pages = self.pages(list.method, list.read);
        let (mut listing, expires) = tokio::time::timeout(limit, pages)
            .await
            .unwrap_or(Err(CallError::TimedOut(Expiry::Absolute(limit))))?;
        set_aside(&mut listing);
        list.slot.put(&listing, seen, expires);
        Ok(listing)
    }

    /// All pages, and until when they may be used together.
    async fn pages<T>(
        &self,
        method: &'static str,
        read: Read<T>,
    ) -> Result<(Listing<T>, Option<Instant>), CallError> {
        let limits = self.limits.load_full();
        let mut bytes = 0;
        let options = CallOptions { retry: RetryPolicy::Once, ..CallOptions::default() };
        let mut res = Listing::empty();
        let mut expires = None;
        let mut seen = HashSet::new();
        let mut params = String::new();
        for page_number in 0..limits.list_pages {
            let params_now = Params::Members { text: &params, name: None };
            let answer = self.request(&Request::new(method, params_now, &options)).await?;
            let received = Instant::now();
            bytes += answer.payload().len();
            if bytes > limits.message_bytes {
                return Err(CallError::ListTooLarge(format!(
                    "{method} has more than {} bytes",
                    limits.message_bytes
                )));
            }
            let page = answer.read_by(read)?;
            match res.items.is_empty() {
                // Most lists are one page.
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
            // Together they live as long as the first of them that ends.
            (res.freshness, expires) = match page_number {
                0 => (page.freshness, until(page.freshness, received)),
                _ => (
                    res.freshness.combine(page.freshness),
                    expires.and_then(|it| Some(until(page.freshness, received)?.min(it))),
                ),
            };
            let Some(cursor) = page.next_cursor else { return Ok((res, expires)) };
            params.clear();
            params.push_str("\"cursor\":");
            params.push_str(&frame::text(&cursor));
            if !seen.insert(cursor) {
                return Err(CallError::ListTooLarge(format!(
                    "{method} gave the same cursor twice: the list has no end"
                )));
            }
        }
        Err(CallError::ListTooLarge(format!("{method} has more than {} pages", limits.list_pages)))
    }
}

impl<T> Listing<T> {
    /// A list of nothing.
    pub fn empty() -> Listing<T> {
        Listing { items: Vec::new(), rejected: Vec::new(), freshness: Freshness::default() }
    }
}

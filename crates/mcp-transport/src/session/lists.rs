//! Lists, all pages of them, within bounds.

use std::collections::HashSet;

use mcp_model::{Page, Prompt, RawJson, Rejected, Resource, Tool, read_prompts, read_resources, read_tools};

use super::{Request, Session, push_json};
use crate::{CallError, CallOptions, Expiry, Replay};

/// A whole list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// What could be read, in the server's order.
    pub items: Vec<T>,
    /// What could not.
    pub rejected: Vec<Rejected>,
}

type Read<T> = fn(&RawJson) -> Result<Page<T>, serde_json::Error>;

impl Session {
    /// All tools. A server without the capability has none, and is not asked.
    pub async fn list_tools(&self) -> Result<Listing<Tool>, CallError> {
        match self.negotiated().server.capabilities.tools {
            true => self.list("tools/list", read_tools).await,
            false => Ok(Listing::empty()),
        }
    }

    /// All prompts. A server without the capability has none, and is not asked.
    pub async fn list_prompts(&self) -> Result<Listing<Prompt>, CallError> {
        match self.negotiated().server.capabilities.prompts {
            true => self.list("prompts/list", read_prompts).await,
            false => Ok(Listing::empty()),
        }
    }

    /// All resources. A server without the capability has none, and is not asked.
    pub async fn list_resources(&self) -> Result<Listing<Resource>, CallError> {
        match self.negotiated().server.capabilities.resources {
            true => self.list("resources/list", read_resources).await,
            false => Ok(Listing::empty()),
        }
    }

    /// Reads pages until there is no cursor (HD-SC8). A cursor that comes twice, too many pages or too many items end
    /// with an error: such a list has no end.
    ///
    /// The pages together have the time that a server has to start, and the bytes that one message may have.
    async fn list<T>(&self, method: &'static str, read: Read<T>) -> Result<Listing<T>, CallError> {
        let limits = self.limits();
        let limit = limits.startup.max(limits.request);
        let pages = self.pages(method, read);
        tokio::time::timeout(limit, pages).await.unwrap_or(Err(CallError::TimedOut(Expiry::Absolute(limit))))
    }

    async fn pages<T>(&self, method: &'static str, read: Read<T>) -> Result<Listing<T>, CallError> {
        let limits = self.limits();
        let mut bytes = 0;
        let options = CallOptions { replay: Replay::Allowed, ..CallOptions::default() };
        let mut res = Listing::empty();
        let mut seen = HashSet::new();
        let mut params = String::new();
        for _ in 0..limits.list_pages {
            let answer = self
                .request(Request { method, name: None, params: &params, meta: "", options: &options })
                .await?;
            let result = answer.raw()?;
            bytes += result.as_bytes().len();
            if bytes > limits.message_bytes {
                return Err(CallError::TooMuch(format!(
                    "{method} has more than {} bytes",
                    limits.message_bytes
                )));
            }
            let page = read(&result).map_err(|it| CallError::Unreadable(it.to_string()))?;
            res.items.extend(page.items);
            res.rejected.extend(page.rejected);
            if res.items.len() + res.rejected.len() > limits.list_items {
                return Err(CallError::TooMuch(format!(
                    "{method} has more than {} items",
                    limits.list_items
                )));
            }
            let Some(cursor) = page.next_cursor else { return Ok(res) };
            params.clear();
            params.push_str("\"cursor\":");
            push_json(&mut params, &cursor);
            if !seen.insert(cursor) {
                return Err(CallError::TooMuch(format!(
                    "{method} gave the same cursor twice: the list has no end"
                )));
            }
        }
        Err(CallError::TooMuch(format!("{method} has more than {} pages", limits.list_pages)))
    }
}

impl<T> Listing<T> {
    fn empty() -> Listing<T> {
        Listing { items: Vec::new(), rejected: Vec::new() }
    }
}

//! The result of listing tools, prompts or resources.

use mcp_host_model::{Freshness, InvalidItem};

/// A complete list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListResult<T> {
    /// The items that could be read, in the server's order.
    pub items: Vec<T>,
    /// The items that could not be read.
    pub rejected: Vec<InvalidItem>,
    /// How long the list may be cached, from the time it was received.
    pub freshness: Freshness,
}

impl<T> ListResult<T> {
    /// A list without invalid items, which may not be cached.
    pub fn new(items: Vec<T>) -> ListResult<T> {
        ListResult { items, rejected: Vec::new(), freshness: Freshness::default() }
    }

    /// An empty list.
    pub fn empty() -> ListResult<T> {
        ListResult::new(Vec::new())
    }
}

//! The result of listing tools, prompts or resources.

use mcp_host_model::{Freshness, InvalidItem, PageDefect, RpcError};

/// The items of all pages, or of those that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListResult<T> {
    /// The items that could be read, in the server's order.
    pub items: Vec<T>,
    /// The items that could not be read.
    pub rejected: Vec<InvalidItem>,
    /// How long the list may be cached, from the time it was received.
    pub freshness: Freshness,
    /// Why items may be missing; `None` if the list is complete. An incomplete list is not cached.
    pub defect: Option<ListDefect>,
}

/// Why items may be missing from a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListDefect {
    /// The server returned the same cursor twice. Items that it repeated are dropped.
    #[error("the server returned the same cursor twice")]
    RepeatedCursor,
    /// The list has more pages, items or bytes than the limits of the server allow. The rest was not read.
    #[error("{0}")]
    TooLong(String),
    /// A response contained both a list and an error.
    #[error("the response has both a list and an error: {0}")]
    Error(RpcError),
    /// A page had a null list or an unreadable cursor.
    #[error("{0}")]
    Page(PageDefect),
    /// A page after the first one could not be read. It may be readable later.
    #[error("page {page} could not be read: {reason}")]
    PageFailed {
        /// The number of the page, from 1.
        page: usize,
        /// The error.
        reason: String,
    },
    /// The resource templates, which belong to the list of resources, could not be read. They may be readable later.
    #[error("the resource templates could not be read: {0}")]
    TemplatesFailed(String),
}

impl ListDefect {
    /// Returns whether another read may return more.
    pub fn is_transient(&self) -> bool {
        match self {
            ListDefect::PageFailed { .. } | ListDefect::TemplatesFailed(_) => true,
            ListDefect::RepeatedCursor
            | ListDefect::TooLong(_)
            | ListDefect::Error(_)
            | ListDefect::Page(_) => false,
        }
    }
}

impl<T> ListResult<T> {
    /// A complete list. It must not be cached.
    pub fn new(items: Vec<T>) -> ListResult<T> {
        ListResult { items, rejected: Vec::new(), freshness: Freshness::default(), defect: None }
    }

    /// An empty list.
    pub fn empty() -> ListResult<T> {
        ListResult::new(Vec::new())
    }
}

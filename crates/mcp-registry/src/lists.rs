//! The input of a catalog: each server's lists, and the host's own names.

use std::sync::Arc;

use mcp_host_model::{Exposure, InvalidItem, Method, Prompt, Resource, ResourceTemplate, ServerId, Tool};

/// The lists of one server. A catalog shares their items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerLists {
    /// The tools, in the server's order.
    pub tools: Vec<Arc<Tool>>,
    /// The prompts, in the server's order.
    pub prompts: Vec<Arc<Prompt>>,
    /// The resources, in the server's order.
    pub resources: Vec<Arc<Resource>>,
    /// The resource templates, in the server's order.
    pub templates: Vec<Arc<ResourceTemplate>>,
    /// The invalid items of all lists.
    pub rejected: Vec<RejectedItem>,
}

impl ServerLists {
    /// The lists of a server that has only tools.
    pub fn of_tools(tools: Vec<Arc<Tool>>) -> ServerLists {
        ServerLists { tools, ..ServerLists::default() }
    }
}

/// An invalid item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedItem {
    /// The list that contains it.
    pub list: ListKind,
    /// The item and the reason.
    pub item: InvalidItem,
}

impl RejectedItem {
    /// An invalid item of this list.
    pub fn new(list: ListKind, item: InvalidItem) -> RejectedItem {
        RejectedItem { list, item }
    }
}

/// The kind of a list of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "mcp-host and mcp-gateway decide on each list, so that none is forgotten"
)]
pub enum ListKind {
    /// `tools/list`.
    Tool,
    /// `prompts/list`.
    Prompt,
    /// `resources/list` and `resources/templates/list`: they share one notification and one set of rules.
    Resource,
}

impl ListKind {
    /// `tool`, `prompt` or `resource`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The method that requests the list. Templates have another one.
    pub fn method(self) -> Method {
        match self {
            ListKind::Tool => Method::ListTools,
            ListKind::Prompt => Method::ListPrompts,
            ListKind::Resource => Method::ListResources,
        }
    }
}

/// A server as the input of a catalog.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CatalogServer {
    /// The id, which is also the name of its toolset (DM-030).
    pub id: ServerId,
    /// The exposure rules.
    pub exposure: Exposure,
    /// The lists.
    pub lists: Arc<ServerLists>,
}

impl CatalogServer {
    /// A server with its exposure rules and its lists.
    pub fn new(id: ServerId, exposure: Exposure, lists: Arc<ServerLists>) -> CatalogServer {
        CatalogServer { id, exposure, lists }
    }
}

/// The names that the host itself uses, so that no server can use them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Builtins {
    /// The names of the host's tools.
    pub tools: Vec<String>,
    /// The names of the host's toolsets.
    pub toolsets: Vec<String>,
}

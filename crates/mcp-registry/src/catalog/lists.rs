//! What a catalog is built from: each server's lists as they were read, and the names the host keeps for itself.

use std::sync::Arc;

use mcp_model::{Exposure, InvalidItem, Prompt, Resource, ResourceTemplate, ServerId, Tool};

/// One server's lists, as read. A catalog shares their items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerLists {
    /// Its tools, in its order.
    pub tools: Vec<Arc<Tool>>,
    /// Its prompts, in its order.
    pub prompts: Vec<Arc<Prompt>>,
    /// Its resources, in its order.
    pub resources: Vec<Arc<Resource>>,
    /// Its resource templates, in its order.
    pub templates: Vec<Arc<ResourceTemplate>>,
    /// What could not be read, in its order.
    pub rejected: Vec<RejectedItem>,
}

/// An item of a list that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedItem {
    /// The list it stood in.
    pub list: ListKind,
    /// What is wrong with it.
    pub item: InvalidItem,
}

/// Which of a server's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListKind {
    /// `tools/list`.
    Tool,
    /// `prompts/list`.
    Prompt,
    /// `resources/list` and `resources/templates/list`, which one notification announces and one set of rules shows.
    Resource,
}

impl ListKind {
    /// `tool`, `prompt` or `resource`.
    pub fn as_str(self) -> &'static str {
        match self {
            ListKind::Tool => "tool",
            ListKind::Prompt => "prompt",
            ListKind::Resource => "resource",
        }
    }
}

/// One server as a catalog takes it.
#[derive(Debug, Clone)]
pub struct ServerEntry {
    /// Its id, which is also the name of its toolset (DM-030).
    pub id: ServerId,
    /// What of its lists is shown, under which names.
    pub exposure: Exposure,
    /// The lists.
    pub lists: Arc<ServerLists>,
}

/// Names that the host itself owns: no server takes one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Builtins {
    /// Names of its own tools.
    pub tools: Vec<String>,
    /// Names of its own toolsets.
    pub toolsets: Vec<String>,
}

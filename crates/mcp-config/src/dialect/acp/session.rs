//! The members of a session request besides the specs of its servers.

use crate::dialect::checks;
use crate::syntax::{Content, Node};

/// The members of a session request that its agent checks or needs.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SessionMembers {
    /// The session's folder, if it is an absolute path.
    pub cwd: Option<String>,
    /// The additional folders, if they are absolute paths.
    pub additional_directories: ListMember<Option<String>>,
    /// The entries of `mcpServers`, in their order.
    pub servers: ListMember<SessionEntry>,
}

/// A member that should be a list.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_enums, reason = "mcp-acp reports each, so that none is forgotten")]
pub enum ListMember<T> {
    /// The member is missing.
    #[default]
    Absent,
    /// It is null.
    Null,
    /// It is a list.
    List(Vec<T>),
    /// It is something else.
    Other,
}

impl<T> ListMember<T> {
    /// The items; none if it is no list.
    pub fn items(&self) -> &[T] {
        match self {
            ListMember::List(items) => items,
            ListMember::Absent | ListMember::Null | ListMember::Other => &[],
        }
    }

    /// Reads a member with `item` for each item.
    fn read(list: Option<&Node>, item: fn(&Node) -> T) -> ListMember<T> {
        match list.map(|it| (it.resolved_content(), it.items())) {
            None => ListMember::Absent,
            Some((Content::Null, _)) => ListMember::Null,
            Some((_, Some(items))) => ListMember::List(items.iter().map(item).collect()),
            Some((_, None)) => ListMember::Other,
        }
    }
}

/// An entry of `mcpServers` as it is written, valid or not.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SessionEntry {
    /// Its name.
    pub name: Option<String>,
    /// Its `type`.
    pub transport: Option<String>,
    /// The names of its lists that are null.
    pub null_lists: Vec<&'static str>,
}

impl SessionMembers {
    /// Reads a request or its `params`. Any other document has no such members.
    pub(super) fn read(root: &Node) -> SessionMembers {
        let params = root.value("params");
        let Some(params) = params.or_else(|| root.get("mcpServers").map(|_| root)) else {
            return SessionMembers::default();
        };
        SessionMembers {
            cwd: params.value("cwd").and_then(absolute_path),
            additional_directories: ListMember::read(params.value("additionalDirectories"), absolute_path),
            servers: ListMember::read(params.value("mcpServers"), SessionEntry::read),
        }
    }
}

impl SessionEntry {
    fn read(entry: &Node) -> SessionEntry {
        let text = |key: &str| entry.text_of(key).map(str::to_owned);
        let is_null = |key: &&str| {
            entry.get(key).is_some_and(|it| matches!(it.value.resolved_content(), Content::Null))
        };
        SessionEntry {
            name: text("name"),
            transport: text("type"),
            null_lists: ["args", "env", "headers"].into_iter().filter(is_null).collect(),
        }
    }
}

fn absolute_path(node: &Node) -> Option<String> {
    node.text().filter(|it| checks::is_absolute(it)).map(str::to_owned)
}

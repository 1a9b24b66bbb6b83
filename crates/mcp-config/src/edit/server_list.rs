//! Where a file has its servers, and whether they are a list or a map.

use mcp_host_model::Profile;

use crate::dialect::editor::conventions::{EntryForm, Program};
use crate::dialect::editor::program::server_keys;
use crate::dialect::editor::programs::DEV_CONTAINER_SERVERS;
use crate::edit::editable_file::EditableFile;
use crate::edit::error::EditError;
use crate::read::Document;
use crate::syntax::{Content, Node, child, parent};

/// The pointer to the list or map of servers.
pub(super) fn server_list_pointer(
    file: &EditableFile<'_>,
    document: &Document<'_>,
) -> Result<String, EditError> {
    let mut pointers = list_pointers(document);
    let Some(usual) = pointers.first().cloned() else { return Err(EditError::SessionRequest) };
    if document.profile != Profile::McpJson {
        return Ok(usual);
    }
    // Add the new server to the collection that has the existing ones.
    // Not to a project of Claude Code's settings.
    let beside = file.reading.entries.iter().filter_map(|it| parent(&it.pointer));
    let beside = beside.filter(|it| !it.is_empty() && !it.starts_with("/projects/"));
    let beside = beside.last().map(str::to_owned);
    pointers.retain(|it| file.root.at(it).is_some());
    Ok(beside.or_else(|| pointers.into_iter().next()).unwrap_or(usual))
}

/// The pointers at which a file may have its servers, the usual one first.
pub(super) fn list_pointers(document: &Document<'_>) -> Vec<String> {
    match document.profile {
        Profile::HoloDeck | Profile::HoloDeck07 => vec!["/tools".to_owned()],
        Profile::Dominds => vec!["/servers".to_owned()],
        Profile::AcpV1 | Profile::AcpV2 => Vec::new(),
        Profile::McpJson => {
            // The other two keys can have another meaning.
            let keys = server_keys().filter(|it| !["mcp", "extensions"].contains(it));
            let mut res = vec![Program::of(document.name).servers_pointer()];
            res.extend(keys.map(|it| child("", it)));
            res.extend(["/mcp/servers", DEV_CONTAINER_SERVERS].map(str::to_owned));
            res
        }
    }
}

/// Returns whether the servers are a list, not a map.
pub(super) fn is_list(file: &EditableFile<'_>, at: &str, document: &Document<'_>) -> bool {
    match document.profile {
        Profile::HoloDeck | Profile::HoloDeck07 | Profile::AcpV1 | Profile::AcpV2 => true,
        Profile::Dominds => false,
        Profile::McpJson => match file.root.at(at).map(Node::content) {
            Some(Content::Sequence(_)) => true,
            Some(Content::Null) | None => {
                Program::of_servers(document.name, &file.root, at).entry_form == EntryForm::Continue
            }
            Some(_) => false,
        },
    }
}

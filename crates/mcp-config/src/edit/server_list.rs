//! Finds the list or map of servers in a file.

use mcp_host_model::Profile;

use crate::dialect::editor::conventions::EntryForm;
use crate::dialect::editor::program::server_keys;
use crate::dialect::editor::programs::DEV_CONTAINER_SERVERS;
use crate::edit::editable_file::EditableFile;
use crate::edit::error::EditError;
use crate::read::Document;
use crate::syntax::{Content, Node, child_pointer, parent_pointer};

/// The pointer to the list or map to which a new server is added.
pub(super) fn server_list_pointer(
    file: &EditableFile<'_>,
    document: &Document<'_>,
) -> Result<String, EditError> {
    let mut pointers = list_pointers(file, document);
    let Some(default) = pointers.first().cloned() else { return Err(EditError::SessionRequest) };
    if document.profile != Profile::McpJson {
        return Ok(default);
    }
    // The list or map of the existing servers is preferred, but not one of a project in Claude Code's settings.
    let existing = file.reading.entries.iter().filter_map(|it| parent_pointer(&it.pointer));
    let existing = existing.filter(|it| !it.is_empty() && !it.starts_with("/projects/"));
    let existing = existing.last().map(str::to_owned);
    pointers.retain(|it| file.root.at(it).is_some());
    Ok(existing.or_else(|| pointers.into_iter().next()).unwrap_or(default))
}

/// The pointers at which a file may have its servers, the default one first.
pub(super) fn list_pointers(file: &EditableFile<'_>, document: &Document<'_>) -> Vec<String> {
    match document.profile {
        Profile::HoloDeck | Profile::HoloDeck07 => vec!["/tools".to_owned()],
        Profile::Dominds => vec!["/servers".to_owned()],
        Profile::AcpV1 | Profile::AcpV2 => Vec::new(),
        Profile::McpJson => {
            // The keys `mcp` and `extensions` can have another meaning.
            let keys = server_keys().filter(|it| !["mcp", "extensions"].contains(it));
            let mut res = vec![file.program().servers_pointer()];
            res.extend(keys.map(|it| child_pointer("", it)));
            res.extend(["/mcp/servers", DEV_CONTAINER_SERVERS].map(str::to_owned));
            res
        }
    }
}

/// Returns whether the servers at a pointer are a list, not a map; for missing servers, whether they would be.
pub(super) fn is_server_list(file: &EditableFile<'_>, at: &str, document: &Document<'_>) -> bool {
    match document.profile {
        Profile::HoloDeck | Profile::HoloDeck07 | Profile::AcpV1 | Profile::AcpV2 => true,
        Profile::Dominds => false,
        Profile::McpJson => match file.root.at(at).map(Node::resolved_content) {
            Some(Content::Sequence(_)) => true,
            Some(Content::Null) | None => file.program_of(at).entry_form == EntryForm::Continue,
            Some(_) => false,
        },
    }
}

//! Declares the inputs for which the program of a file prompts.

use mcp_host_model::Profile;

use crate::dialect::editor::programs::{DEV_CONTAINER_INPUTS, DEV_CONTAINER_SERVERS};
use crate::dialect::editor::references::InputDeclarations;
use crate::edit::editable_file::EditableFile;
use crate::edit::error::EditError;
use crate::edit::server_list::server_list_pointer;
use crate::read::Document;
use crate::syntax::Node;
use crate::syntax::entry_edits::NewEntry;

/// Returns whether the program of this file prompts for `${input:id}`, as VS Code does.
pub fn prompts_for_inputs(document: &Document<'_>) -> bool {
    let Some(file) = EditableFile::read(document).ok().filter(|_| document.profile == Profile::McpJson)
    else {
        return false;
    };
    let at = server_list_pointer(&file, document);
    at.is_ok_and(|at| file.program_of(&at).prompts_for_inputs())
}

/// The text with a declaration of an input, if it is not declared yet (DIA-08). Only `inputs` at the top level, as in
/// VS Code's own file, and those of a dev container are edited; elsewhere reading warns about an undeclared input.
/// `servers` is the pointer to the list or map of the servers.
pub(super) fn declare_input(document: &Document<'_>, servers: &str, id: &str) -> Result<String, EditError> {
    let at = if servers == DEV_CONTAINER_SERVERS { DEV_CONTAINER_INPUTS } else { "/inputs" };
    let file = EditableFile::read(document)?;
    let mut declared = file.root.at(at).and_then(Node::items).unwrap_or_default().iter();
    let is_declared = declared.any(|it| it.text_of("id") == Some(id));
    // In a settings file, VS Code reads `inputs` only below `mcp`.
    if file.root.at("/mcp").is_some() || is_declared {
        return Ok(document.text.to_owned());
    }
    let prompt = InputDeclarations::default().declaration(id);
    file.add_entry(at, NewEntry::Item(&prompt), document)
}

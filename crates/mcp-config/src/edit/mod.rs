//! Edits files. Comments, order, quotes and line ends stay.
//!
//! A change is a list of text edits. The new text is read again and compared with the old one value by value. If
//! anything else changed, the edit is refused. So an unusual formatting can make an edit fail, but not damage the
//! file.

mod editable_file;
pub(crate) mod error;
pub(crate) mod field_changes;
pub(crate) mod fix;
pub(crate) mod inputs;
pub(crate) mod new_server;
pub(crate) mod proposed_sandbox;
pub(crate) mod server_json;
mod server_list;
mod switch;
mod toml;

use mcp_host_model::{Profile, ServerSpec};

use crate::dialect::editor::conventions::FilePurpose;
use crate::dialect::write;
use crate::dialect::write::report::{FieldFallback, UnsupportedField, WriteReport, WrittenFile};
use crate::edit::editable_file::{EditableFile, error_diagnostics, unsupported_layout};
use crate::edit::error::EditError;
use crate::edit::inputs::declare_input;
use crate::edit::server_list::{is_server_list, server_list_pointer};
use crate::read::{Document, read};
use crate::syntax::entry_edits::NewEntry;
use crate::syntax::output::OutputValue;
use crate::syntax::parent_pointer;

pub use switch::{Switch, set_enabled};

/// Adds a server after the existing ones. Fails if a server has its name, and if the file cannot express a
/// value that the server needs. Comments and layout stay.
///
/// ```
/// use mcp_host_config::{Document, NewServer, NewTransport, Profile, ServerId, add_server};
///
/// let text = "{\n  \"mcpServers\": {}\n}\n";
/// let transport =
///     NewTransport::Stdio { command: "npx".to_owned(), args: vec!["files-server".to_owned()], env: Vec::new() };
/// let server = NewServer::new(ServerId::parse("files")?, transport).into_spec(Profile::McpJson);
/// let written = add_server(&Document::new(".mcp.json", text, Profile::McpJson), &server)?;
/// assert!(written.text.contains(r#""command": "npx""#));
/// // What the file cannot express and was omitted.
/// assert!(written.unsupported.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn add_server(document: &Document<'_>, server: &ServerSpec) -> Result<WrittenFile, EditError> {
    let name = server.id.as_str();
    let file = EditableFile::read(document)?;
    if file.reading.entries.iter().any(|it| it.name == name) {
        return Err(EditError::AlreadyExists { name: name.to_owned() });
    }
    let at = server_list_pointer(&file, document)?;
    let mut unsupported = Vec::new();
    let (profile, server_name) = (document.profile, name.to_owned());
    let mut report =
        WriteReport { profile, find_program: &|_| None, server: server_name, unsupported: &mut unsupported };
    let mut input_ids = Vec::new();
    let written = write::write_server_entry(server, &mut report).and_then(|(name, data)| {
        if profile != Profile::McpJson {
            return Some((name, data));
        }
        let (data, ids) = file.program_of(&at).adapt_entry(&name, data, &mut report)?;
        input_ids = ids;
        Some((name, data))
    });
    // Fields that only inform people may be omitted; values that the server needs may not.
    let is_needed = |it: &&UnsupportedField| {
        it.fallback == FieldFallback::ServerOmitted
            || it.field.starts_with("env.")
            || it.field.starts_with("headers.")
    };
    let lost_field = unsupported.iter().find(is_needed);
    let Some((name, mut data)) = written.filter(|_| lost_field.is_none()) else {
        let (field, reason) = lost_field.map(|it| (it.field.clone(), it.reason.clone())).unwrap_or_default();
        return Err(EditError::Unsupported { field, reason });
    };
    let is_in_list = is_server_list(&file, &at, document);
    if is_in_list
        && profile == Profile::McpJson
        && let OutputValue::Map(members) = &mut data
    {
        // Servers in a list have no keys.
        members.insert(0, ("name".to_owned(), OutputValue::text(&name)));
    }
    let entry = if is_in_list { NewEntry::Item(&data) } else { NewEntry::Member(&name, &data) };
    let mut text = file.add_entry(&at, entry, document)?;
    for id in input_ids {
        text = declare_input(&document.with_text(&text), &at, &id)?;
    }
    let new_reading = read(&document.with_text(&text));
    let old_errors: Vec<_> = error_diagnostics(&file.reading).map(|it| (it.code, &it.pointer)).collect();
    if let Some(error) =
        error_diagnostics(&new_reading).find(|it| !old_errors.contains(&(it.code, &it.pointer)))
    {
        return Err(EditError::InvalidResult { message: error.to_string() });
    }
    if !new_reading.entries.iter().any(|it| it.name == name) {
        return Err(unsupported_layout("the new server cannot be read back"));
    }
    Ok(WrittenFile { text, unsupported })
}

/// Removes a server, with the comments inside it and directly above it.
///
/// Without its last server, the list of servers stays as an empty list. It is removed too if the file is valid without
/// it and [`add_server`] would write the same list, so that removing an added server restores the file.
pub fn remove_server(document: &Document<'_>, name: &str) -> Result<String, EditError> {
    let file = EditableFile::read(document)?;
    let pointer = &file.find_server(name)?.pointer;
    let may_lack_list = match document.profile {
        Profile::HoloDeck | Profile::HoloDeck07 => true,
        Profile::McpJson => {
            let list = parent_pointer(pointer).unwrap_or_default();
            file.program_of(list).file_purpose == FilePurpose::Settings
        }
        Profile::Dominds | Profile::AcpV1 | Profile::AcpV2 => false,
    };
    if may_lack_list { file.remove_added(pointer, document) } else { file.remove(pointer) }
}

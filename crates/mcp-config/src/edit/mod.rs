//! Edits a file as its author would: comments, order, quotes and line ends stay.
//!
//! A change is a list of text edits. The new text is read again and compared with the old one value by value. If
//! anything else changed, the edit is refused. So an unusual formatting can make an edit fail, but not damage the
//! file.

mod editable_file;
pub(crate) mod field_changes;
pub(crate) mod fix;
pub(crate) mod new_server;
pub(crate) mod server_json;
mod switch;
mod toml;

use mcp_host_model::{Dialect, Profile, ServerSpec};

use crate::dialect::editor::conventions::{EntryForm, FileContent, Program};
use crate::dialect::editor::references::InputDeclarations;
use crate::dialect::editor::{DEV_CONTAINER_INPUTS, DEV_CONTAINER_SERVERS};
use crate::dialect::write;
use crate::dialect::write::report::{FieldFallback, UnsupportedField, WriteReport, WrittenFile};
use crate::edit::editable_file::{EditableFile, errors, unsupported_layout};
use crate::read::{Document, read};
use crate::syntax::entry_edits::NewEntry;
use crate::syntax::output::OutputValue;
use crate::syntax::{Content, Node, parent};

pub use switch::{Switch, set_enabled};

/// The reason why a file was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// A mistake prevents reading the whole file.
    #[error("line {line} prevents editing the file: {message}")]
    InvalidFile {
        /// The line of the mistake, from 1.
        line: usize,
        /// The mistake.
        message: String,
    },
    /// No server has this name.
    #[error("there is no server '{name}'")]
    NoSuchServer {
        /// The name.
        name: String,
        /// The existing names.
        names: Vec<String>,
    },
    /// The server is a comment, as [`set_enabled`](crate::set_enabled()) writes it for some programs.
    #[error("the server '{name}' is a comment")]
    CommentedOut {
        /// The name.
        name: String,
    },
    /// The server has no such field, or no such item in it.
    #[error("the server '{server}' has no '{field}' to remove")]
    NoSuchField {
        /// The name of the server.
        server: String,
        /// The field.
        field: String,
    },
    /// The list has no such item.
    #[error(
        "'{list}' of the server '{server}' has {len} items and no '{field}': count items from 0, or append one"
    )]
    NoSuchItem {
        /// The name of the server.
        server: String,
        /// The field of the item.
        field: String,
        /// The key of the list.
        list: String,
        /// The number of its items.
        len: usize,
    },
    /// A server has this name already.
    #[error("a server '{name}' already exists")]
    AlreadyExists {
        /// The name.
        name: String,
    },
    /// More than one server has this name.
    #[error("more than one server is named '{name}'")]
    Ambiguous {
        /// The name.
        name: String,
    },
    /// The dialect cannot disable a server.
    #[error("a server of {} cannot be disabled, only removed", .0.as_str())]
    CannotDisable(Dialect),
    /// The program of the file obeys no key that disables a server.
    #[error("{program} obeys no key that disables a server; {own_way}")]
    NoDisablingKey {
        /// The program.
        program: &'static str,
        /// How the program itself disables a server.
        own_way: &'static str,
    },
    /// The servers of a session are part of a request, not of a file.
    #[error("the servers of an ACP session are part of a request, not of a file")]
    SessionRequest,
    /// The dialect cannot express the server.
    #[error("the server cannot be written there: {field}: {reason}")]
    Unsupported {
        /// The field.
        field: String,
        /// The reason.
        reason: String,
    },
    /// The edited file would have a new mistake.
    #[error("the edited file would have a mistake: {message}")]
    InvalidResult {
        /// The mistake.
        message: String,
    },
    /// The layout of the file is not supported.
    #[error("the file cannot be edited safely: {reason}")]
    UnsupportedLayout {
        /// What is not supported.
        reason: String,
    },
}

/// Adds a server after the existing ones. Fails if a server has its name, and if the file cannot express a value that the
/// server needs. Comments and layout stay.
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
    let file = EditableFile::open(document)?;
    if file.reading.entries.iter().any(|it| it.name == name) {
        return Err(EditError::AlreadyExists { name: name.to_owned() });
    }
    let at = server_list_pointer(&file, document)?;
    let mut unsupported = Vec::new();
    let (profile, server_name) = (document.profile, name.to_owned());
    let mut report =
        WriteReport { profile, program: &|_| None, server: server_name, unsupported: &mut unsupported };
    let mut input_ids = Vec::new();
    let written = write::server_entry(server, &mut report).and_then(|(name, data)| {
        if profile != Profile::McpJson {
            return Some((name, data));
        }
        let (data, ids) =
            Program::of_servers(document.name, &file.root, &at).adapt_entry(&name, data, &mut report)?;
        input_ids = ids;
        Some((name, data))
    });
    // Fields that only inform people may be omitted; values that the server needs may not.
    let needed = |it: &&UnsupportedField| {
        it.fallback == FieldFallback::ServerOmitted
            || it.field.starts_with("env.")
            || it.field.starts_with("headers.")
    };
    let lost_field = unsupported.iter().find(needed);
    let Some((name, mut data)) = written.filter(|_| lost_field.is_none()) else {
        let (field, why) = lost_field.map(|it| (it.field.clone(), it.reason.clone())).unwrap_or_default();
        return Err(EditError::Unsupported { field, reason: why });
    };
    let listed = is_list(&file, &at, document);
    if let (true, Profile::McpJson, OutputValue::Map(members)) = (listed, profile, &mut data) {
        // Servers in a list have no keys.
        members.insert(0, ("name".to_owned(), OutputValue::text(&name)));
    }
    let entry = if listed { NewEntry::Item(&data) } else { NewEntry::Member(&name, &data) };
    let mut text = file.add_entry(&at, entry, document)?;
    for id in input_ids {
        text = declare_input(&document.with_text(&text), &at, &id)?;
    }
    let again = read(&document.with_text(&text));
    let old: Vec<_> = errors(&file.reading).map(|it| (it.code, &it.pointer)).collect();
    if let Some(error) = errors(&again).find(|it| !old.contains(&(it.code, &it.pointer))) {
        return Err(EditError::InvalidResult { message: error.to_string() });
    }
    if !again.entries.iter().any(|it| it.name == name) {
        return Err(unsupported_layout("the new server cannot be read back"));
    }
    Ok(WrittenFile { text, unsupported })
}

/// Returns whether the program of this file prompts for `${input:id}`, as VS Code does.
pub fn prompts_for_inputs(document: &Document<'_>) -> bool {
    let Some(file) = EditableFile::open(document).ok().filter(|_| document.profile == Profile::McpJson)
    else {
        return false;
    };
    let at = server_list_pointer(&file, document);
    at.is_ok_and(|at| Program::of_servers(document.name, &file.root, &at).prompts_for_inputs())
}

/// Declares an input if it is not declared (DIA-08). Only `inputs` at the top level, as in VS Code's own file, and those
/// of a dev container are edited; elsewhere reading warns about an undeclared input.
fn declare_input(document: &Document<'_>, servers: &str, id: &str) -> Result<String, EditError> {
    let at = if servers == DEV_CONTAINER_SERVERS { DEV_CONTAINER_INPUTS } else { "/inputs" };
    let file = EditableFile::open(document)?;
    let mut there = file.root.at(at).and_then(Node::items).unwrap_or_default().iter();
    let is_declared = there.any(|it| it.get("id").is_some_and(|it| it.value.text() == Some(id)));
    if file.root.at("/mcp").is_some() || is_declared {
        return Ok(document.text.to_owned());
    }
    let question = InputDeclarations::default().declaration(id);
    file.add_entry(at, NewEntry::Item(&question), document)
}

/// Removes a server, with the comments inside it and directly above it.
///
/// The list of servers stays, empty, if it was the last server. It is removed too if the file may be without it and
/// [`add_server`] would write it as it is, so that removing an added server restores the file.
pub fn remove_server(document: &Document<'_>, name: &str) -> Result<String, EditError> {
    let file = EditableFile::open(document)?;
    let pointer = &file.server(name)?.pointer;
    let may_lack_list = match document.profile {
        Profile::HoloDeck | Profile::HoloDeck07 => true,
        Profile::McpJson => {
            let list = parent(pointer).unwrap_or_default();
            Program::of_servers(document.name, &file.root, list).content == FileContent::Settings
        }
        Profile::Dominds | Profile::AcpV1 | Profile::AcpV2 => false,
    };
    if may_lack_list { file.remove_added(pointer, document) } else { file.remove(pointer) }
}

/// The pointer to the list or map of servers.
fn server_list_pointer(file: &EditableFile<'_>, document: &Document<'_>) -> Result<String, EditError> {
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
fn list_pointers(document: &Document<'_>) -> Vec<String> {
    match document.profile {
        Profile::HoloDeck | Profile::HoloDeck07 => vec!["/tools".to_owned()],
        Profile::Dominds => vec!["/servers".to_owned()],
        Profile::AcpV1 | Profile::AcpV2 => Vec::new(),
        Profile::McpJson => {
            let usual = match Program::of(document.name).key {
                "customizations.vscode.mcp.servers" => DEV_CONTAINER_SERVERS.to_owned(),
                key => format!("/{key}"),
            };
            let places = [
                "/mcpServers",
                "/servers",
                "/mcp/servers",
                "/mcp.servers",
                "/context_servers",
                "/amp.mcpServers",
                "/mcp_servers",
                DEV_CONTAINER_SERVERS,
            ];
            std::iter::once(usual).chain(places.map(str::to_owned)).collect()
        }
    }
}

/// Returns whether the servers are a list, not a map.
fn is_list(file: &EditableFile<'_>, at: &str, document: &Document<'_>) -> bool {
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

//! Edits a file as its author would: comments, order, quotes and line ends stay.
//!
//! A change is a list of text edits. The new text is read again and compared with the old one value by value. If
//! anything else changed, the edit is refused. So an unusual formatting can make an edit fail, but not damage the
//! file.

pub(crate) mod fix;
pub(crate) mod new_server;
pub(crate) mod server_json;
mod switch;

use mcp_model::{Dialect, ServerSpec};

use crate::diagnostic::{Code, Diagnostic, TextEdit, apply_edits};
use crate::dialect::editor::InputDeclarations;
use crate::dialect::editor::program::{Program, UNKNOWN};
use crate::dialect::write::{self, FieldFallback, UnsupportedField, WriteReport, WrittenFile};
use crate::profile::Profile;
use crate::profile::policy::Policy;
use crate::read::{Document, Reading, ServerEntry, read};
use crate::syntax::entry_edits::{self, InsertPosition, NewEntry, insert, remove};
use crate::syntax::layout::Layout;
use crate::syntax::output::{self, OutputValue};
use crate::syntax::{self, ChangedPointers, Content, Member, Node, Syntax, child, difference, last, parent};

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

/// Adds a server after the existing ones.
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
    let mut asked = Vec::new();
    let written = write::server_entry(server, &mut report).and_then(|(name, data)| {
        if profile != Profile::McpJson {
            return Some((name, data));
        }
        let program = Program::of_file(document.name).unwrap_or(&UNKNOWN);
        let (data, ids) = program.adapt_entry(data, &mut report)?;
        asked = ids;
        Some((name, data))
    });
    // Fields that only inform people may be omitted; values that the server needs may not.
    let needed = |it: &&UnsupportedField| {
        it.fallback == FieldFallback::ServerOmitted
            || it.field.starts_with("env.")
            || it.field.starts_with("headers.")
    };
    let unsaid = unsupported.iter().find(needed);
    let Some((name, mut data)) = written.filter(|_| unsaid.is_none()) else {
        let (field, why) = unsaid.map(|it| (it.field.clone(), it.reason.clone())).unwrap_or_default();
        return Err(EditError::Unsupported { field, reason: why });
    };
    let listed = is_list(&file, &at, document);
    if let (true, Profile::McpJson, OutputValue::Map(members)) = (listed, profile, &mut data) {
        // Servers in a list have no keys.
        members.insert(0, ("name".to_owned(), OutputValue::text(&name)));
    }
    let entry = if listed { NewEntry::Item(&data) } else { NewEntry::Member(&name, &data) };
    let (edits, changed) = match file.member(&at) {
        None => file.new_list(&at, entry, document)?,
        Some(list) => file.insert_into(&at, list, entry)?,
    };
    let mut text = file.apply_verified(&edits, &changed)?;
    for id in asked {
        text = declare_input(&Document { text: &text, ..*document }, &id)?;
    }
    let again = read(&Document { text: &text, ..*document });
    let old: Vec<_> = errors(&file.reading).map(|it| (it.code, &it.pointer)).collect();
    if let Some(error) = errors(&again).find(|it| !old.contains(&(it.code, &it.pointer))) {
        return Err(EditError::InvalidResult { message: error.to_string() });
    }
    if !again.entries.iter().any(|it| it.name == name) {
        return Err(unsupported_layout("the new server cannot be read back"));
    }
    Ok(WrittenFile { text, unsupported })
}

/// Declares an input if it is not declared (DIA-08). Only `inputs` at the top level is edited, as in VS Code's own
/// file; elsewhere reading warns about an undeclared input.
fn declare_input(document: &Document<'_>, id: &str) -> Result<String, EditError> {
    const AT: &str = "/inputs";
    let file = EditableFile::open(document)?;
    let there = [AT, "/mcp/inputs"].into_iter().filter_map(|it| file.root.at(it)?.items()).flatten();
    if file.root.at("/mcp").is_some() || there.filter_map(|it| it.get("id")?.value.text()).any(|it| it == id)
    {
        return Ok(document.text.to_owned());
    }
    let question = InputDeclarations::default().declaration(id);
    let (edits, changed) = match file.member(AT) {
        None => file.new_list(AT, NewEntry::Item(&question), document)?,
        Some(list) => file.insert_into(AT, list, NewEntry::Item(&question))?,
    };
    file.apply_verified(&edits, &changed)
}

/// Removes a server, with the comments inside it and directly above it.
pub fn remove_server(document: &Document<'_>, name: &str) -> Result<String, EditError> {
    let file = EditableFile::open(document)?;
    let pointer = file.server(name)?.pointer.clone();
    let above = parent(&pointer).and_then(|it| Some((it, file.root.at(it)?)));
    let Some((above, list)) = above else { return Err(unsupported_layout("the server was not found")) };
    let key = last(&pointer);
    let index = match list.members() {
        Some(members) => members.iter().position(|it| *it.key.text == *key),
        None => key.parse().ok(),
    };
    let index = index.ok_or_else(|| unsupported_layout("the server was not found"))?;
    let count = list.members().map_or(0, <[_]>::len) + list.items().map_or(0, <[_]>::len);
    let edits = if count > 1 {
        remove(file.layout, list, index).ok_or_else(|| unsupported_layout(SHARED_LINES))?
    } else {
        file.remove_only_entry(above, list)?
    };
    file.apply_verified(&edits, &ChangedPointers { old: vec![pointer], new: Vec::new() })
}

fn unsupported_layout(why: &str) -> EditError {
    EditError::UnsupportedLayout { reason: why.to_owned() }
}

const SHARED_LINES: &str = "the entry shares its lines with something else";
const LIST_LAYOUT: &str = "its list of servers has an unsupported layout";

fn errors(reading: &Reading) -> impl Iterator<Item = &Diagnostic> {
    reading.diagnostics.iter().filter(|it| it.severity == mcp_model::Severity::Error)
}

/// The pointer to the list or map of servers.
fn server_list_pointer(file: &EditableFile<'_>, document: &Document<'_>) -> Result<String, EditError> {
    let mut pointers = list_pointers(document);
    let Some(usual) = pointers.first().cloned() else { return Err(EditError::SessionRequest) };
    if document.profile != Profile::McpJson {
        return Ok(usual);
    }
    // Add the new server to the collection that has the existing ones.
    let beside = file.reading.entries.last().and_then(|it| parent(&it.pointer));
    let beside = beside.filter(|it| !it.is_empty()).map(str::to_owned);
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
            let usual = format!("/{}", Program::of_file(document.name).unwrap_or(&UNKNOWN).key);
            let places = [
                "/mcpServers",
                "/servers",
                "/mcp/servers",
                "/mcp.servers",
                "/context_servers",
                "/amp.mcpServers",
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
        Profile::McpJson => file.root.at(at).is_some_and(|it| it.items().is_some()),
    }
}

/// A file without errors that prevent editing.
struct EditableFile<'a> {
    layout: Layout<'a>,
    syntax: Syntax,
    root: Node,
    reading: Reading,
}

impl<'a> EditableFile<'a> {
    fn open(document: &Document<'a>) -> Result<EditableFile<'a>, EditError> {
        let reading = read(document);
        let syntax = Policy::for_profile(document.profile).syntax;
        let syntax::ParsedText { root, dropped: _, diagnostics, extensions: _ } =
            syntax::parse_as(document.text, syntax);
        let spoils = |it: &Diagnostic| {
            let unversioned = it.code == Code::UnsupportedVersion && document.text.trim().is_empty();
            it.code.rejects_file() && !unversioned
        };
        let mistake = errors(&reading).find(|it| spoils(it)).or_else(|| {
            let first = diagnostics.first()?;
            reading.diagnostics.iter().find(|it| it.code == first.code)
        });
        match (root, mistake) {
            (Some(root), None) => {
                Ok(EditableFile { layout: Layout::new(document.text), syntax, root, reading })
            }
            (_, Some(mistake)) => {
                Err(EditError::InvalidFile { line: mistake.line, message: mistake.to_string() })
            }
            (None, None) => Err(unsupported_layout("it cannot be read")),
        }
    }

    fn server(&self, name: &str) -> Result<&ServerEntry, EditError> {
        let entries = &self.reading.entries;
        let mut found = entries.iter().filter(|it| it.name == name);
        match (found.next(), found.next()) {
            (Some(entry), None) => Ok(entry),
            (Some(_), Some(_)) => Err(EditError::Ambiguous { name: name.to_owned() }),
            (None, _) => {
                let names = entries.iter().map(|it| it.name.clone()).collect();
                Err(EditError::NoSuchServer { name: name.to_owned(), names })
            }
        }
    }

    /// The text with these edits, if only the values in `touched` change.
    fn apply_verified(&self, edits: &[TextEdit], changed: &ChangedPointers) -> Result<String, EditError> {
        let text =
            apply_edits(self.layout.text(), edits).ok_or_else(|| unsupported_layout("the edits overlap"))?;
        let syntax::ParsedText { root, dropped: _, diagnostics, extensions: _ } =
            syntax::parse_as(&text, self.syntax);
        let (Some(root), true) = (root, diagnostics.is_empty()) else {
            return Err(unsupported_layout(
                "another part of it depends on the entry, perhaps through an anchor",
            ));
        };
        match difference(&self.root, &root, changed) {
            None => Ok(text),
            Some(pointer) => Err(unsupported_layout(&format!("the value at '{pointer}' would change too"))),
        }
    }

    /// The member at a pointer.
    fn member(&self, pointer: &str) -> Option<&Member> {
        self.root.at(parent(pointer)?)?.get(&last(pointer))
    }

    /// Edits that insert an entry into the list or map of `member` at the pointer `at`, and the changed pointers.
    fn insert_into(
        &self,
        at: &str,
        member: &Member,
        entry: NewEntry<'_>,
    ) -> Result<(Vec<TextEdit>, ChangedPointers), EditError> {
        let Member { key, value } = member;
        let at = at.to_owned();
        let count = value.items().map_or(0, <[_]>::len) + value.members().map_or(0, <[_]>::len);
        let new = match entry {
            NewEntry::Member(name, _) => child(&at, name),
            NewEntry::Item(_) => child(&at, &count.to_string()),
        };
        // A null is replaced by a list or map, so only the whole value can be excluded from the comparison.
        let from_nothing = matches!(value.content(), Content::Null);
        let old = if from_nothing { vec![at.clone()] } else { Vec::new() };
        let changed = ChangedPointers { old, new: vec![if from_nothing { at } else { new }] };
        if matches!(value.content, Content::Shared(_)) {
            return Err(unsupported_layout("the list of servers is shared, by an anchor or an alias"));
        }
        if count > 0 {
            let edits = insert(self.layout, value, InsertPosition::Last, entry);
            return Ok((edits.ok_or_else(|| unsupported_layout(LIST_LAYOUT))?, changed));
        }
        let empty = matches!(value.content, Content::Null | Content::Sequence(_) | Content::Mapping(_));
        if !empty {
            return Err(unsupported_layout("the value of the servers' key is not a list or mapping"));
        }
        if entry_edits::is_flow(self.layout, &self.root) {
            let edit = entry_edits::fill_empty(self.layout, key.span.start, value, entry);
            return Ok((vec![edit.ok_or_else(|| unsupported_layout(LIST_LAYOUT))?], changed));
        }
        let column = self
            .layout
            .column(key.span.start)
            .ok_or_else(|| unsupported_layout("its indentation is not supported"))?;
        let at_line = self
            .layout
            .next_line(self.layout.last_line_start(&(key.span.start..value.span.end.max(key.span.end))));
        let mut edits = vec![entry_edits::lines(self.layout, at_line, column + 2, false, entry)];
        if !value.span.is_empty() {
            // Removes `[]` or `null` and the blanks before it.
            let before = &self.layout.text()[..value.span.start];
            let start = before.trim_end_matches(' ').len();
            edits.insert(0, TextEdit { span: start..value.span.end, text: String::new() });
        }
        Ok((edits, changed))
    }

    /// Edits that create the list or map with one entry, and the changed pointers.
    fn new_list(
        &self,
        at: &str,
        entry: NewEntry<'_>,
        document: &Document<'_>,
    ) -> Result<(Vec<TextEdit>, ChangedPointers), EditError> {
        let key = last(at);
        let key = key.as_str();
        if parent(at) != Some("") {
            return Err(unsupported_layout("its list of servers was not found"));
        }
        let list = match entry {
            NewEntry::Item(data) => OutputValue::List(vec![data.clone()]),
            NewEntry::Member(name, data) => OutputValue::Map(vec![(name.to_owned(), data.clone())]),
        };
        let text = self.layout.text();
        if self.root.members().is_some_and(|it| !it.is_empty()) {
            let edit = insert(self.layout, &self.root, InsertPosition::Last, NewEntry::Member(key, &list));
            let changed = ChangedPointers { old: Vec::new(), new: vec![child("", key)] };
            return Ok((edit.ok_or_else(|| unsupported_layout("its layout is not supported"))?, changed));
        }
        let end = self.layout.line_end();
        let root = || vec![String::new()];
        let whole = ChangedPointers { old: root(), new: root() };
        if self.syntax != Syntax::Yaml {
            let data = OutputValue::Map(vec![(key.to_owned(), list)]);
            let empty =
                self.root.members().is_some() || text.trim_start_matches('\u{feff}').trim().is_empty();
            let mut new = data.pretty().join(end);
            if !text[self.root.span.end..].contains('\n') && self.root.members().is_none() {
                new.push_str(end);
            }
            let edit = TextEdit { span: self.root.span.clone(), text: new };
            return if empty {
                Ok((vec![edit], whole))
            } else {
                Err(unsupported_layout("it is not an object"))
            };
        }
        // The file has comments only.
        if !matches!(self.root.content, Content::Null) || !self.root.span.is_empty() {
            return Err(unsupported_layout("it is not a mapping"));
        }
        let mut lines = Vec::new();
        if document.profile == Profile::Dominds {
            lines.push("version: 1".to_owned());
        }
        lines.extend(output::member_lines(key, &list));
        let mut new: String = lines.into_iter().map(|it| it + end).collect();
        if !(text.is_empty() || text.ends_with(['\n', '\u{feff}'])) {
            new.insert_str(0, end);
        }
        Ok((vec![TextEdit { span: text.len()..text.len(), text: new }], whole))
    }

    /// Edits that remove the only entry of a list or map.
    fn remove_only_entry(&self, pointer: &str, list: &Node) -> Result<Vec<TextEdit>, EditError> {
        let empty = if list.items().is_some() { "[]" } else { "{}" };
        if entry_edits::is_flow(self.layout, list) {
            let edit = entry_edits::remove_only(self.layout, list, empty);
            return Ok(vec![edit.ok_or_else(|| unsupported_layout(SHARED_LINES))?]);
        }
        let member = parent(pointer).and_then(|it| self.root.at(it)?.get(&last(pointer)));
        let key = &member.ok_or_else(|| unsupported_layout("its list of servers has no key"))?.key;
        let colon = self.layout.text()[key.span.end..].find(':').map(|it| key.span.end + it + 1);
        let lines = entry_edits::entry_lines(self.layout, list, 0);
        match (colon, lines) {
            (Some(colon), Some(lines)) if colon <= lines.start => {
                let lines = entry_edits::cut_lines(self.layout, lines);
                let text = format!(" {empty}");
                if lines.start == colon {
                    return Ok(vec![TextEdit { span: lines, text }]);
                }
                Ok(vec![TextEdit { span: colon..colon, text }, TextEdit { span: lines, text: String::new() }])
            }
            _ => Err(unsupported_layout(SHARED_LINES)),
        }
    }
}

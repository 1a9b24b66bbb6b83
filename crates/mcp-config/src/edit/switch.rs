//! Enables and disables a server: by a key or list that its program obeys, else by turning its lines into comments.

use mcp_host_model::Profile;

use crate::diagnostic::TextEdit;
use crate::dialect::editor::conventions::{DISABLED, ENABLED, SwitchKey};
use crate::dialect::editor::conventions::{Disabling, JsonExtensions};
use crate::dialect::editor::name_lists::{self, NameLists};
use crate::edit::editable_file::{EditableFile, SHARED_LINES, ok_or_unsupported, unsupported_layout};
use crate::edit::error::EditError;
use crate::edit::server_list::list_pointers;
use crate::read::{Document, Reading, ServerEntry, read};
use crate::syntax::commented_entry::{CommentedEntry, comment_out};
use crate::syntax::entry_edits::{InsertPosition, NewEntry, insert};
use crate::syntax::output::OutputValue;
use crate::syntax::{ChangedPointers, Content, Node, child_pointer, last_key, parent_pointer};

/// Enables or disables a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a server is enabled or disabled")]
pub enum Switch {
    /// Enable the server.
    On,
    /// Disable the server.
    Off,
}

/// How a server is enabled or disabled.
enum SwitchMethod {
    /// By setting a key to this value.
    Key(SwitchKey, bool),
    /// By adding its name to the list at a pointer.
    AddTo(&'static str),
    /// By removing its name from the list at a pointer.
    RemoveFrom(&'static str),
    /// By turning the entry into comments.
    Comment,
    /// Not at all: it is enabled or disabled already.
    Unchanged,
}

/// The number of ways to disable a server: two keys and two lists.
const MAX_METHODS: usize = 4;

/// Enables or disables a server. Returns the same text if nothing changes.
///
/// A server is disabled by the key or list that the program of the file obeys. If the program has none and accepts
/// comments, the entry becomes a comment; else the edit is refused (DIA-07, DMX-02).
pub fn set_enabled(document: &Document<'_>, name: &str, switch: Switch) -> Result<String, EditError> {
    let mut text = document.text.to_owned();
    // A server may be disabled by several keys and lists.
    for _ in 0..MAX_METHODS {
        let current = Document { text: &text, ..*document };
        let next = switch_once(&current, name, switch)?;
        let is_done = next == text || is_switched(&read(&Document { text: &next, ..current }), name, switch);
        text = next;
        if is_done {
            return Ok(text);
        }
    }
    Err(unsupported_layout("the server would not change"))
}

/// Whether a server is enabled or disabled, as `switch` demands.
fn is_switched(reading: &Reading, name: &str, switch: Switch) -> bool {
    let entry = reading.entries.iter().find(|it| it.name == name);
    match switch {
        Switch::On => entry.is_some_and(|it| !it.disabled),
        Switch::Off => entry.is_none_or(|it| it.disabled),
    }
}

/// Enables or disables a server by one key or list.
fn switch_once(document: &Document<'_>, name: &str, switch: Switch) -> Result<String, EditError> {
    let file = EditableFile::read(document)?;
    let entry = match file.find_server(name) {
        Ok(entry) => entry,
        Err(error @ EditError::CommentedOut { .. }) => {
            return match CommentedEntry::find(file.layout, name).filter(|_| switch == Switch::On) {
                Some(entry) => uncomment(&file, document, name, &entry),
                None if switch == Switch::Off => Ok(document.text.to_owned()),
                None => Err(error),
            };
        }
        Err(error) => return Err(error),
    };
    let pointer = &entry.pointer;
    let node = ok_or_unsupported(file.root.at(pointer), "the server was not found")?;
    match choose_method(&file, document, entry, node, switch)? {
        SwitchMethod::Unchanged => Ok(document.text.to_owned()),
        SwitchMethod::Key(key, value) if file.is_toml() => {
            file.set(&child_pointer(pointer, key.name), &OutputValue::scalar(value))
        }
        SwitchMethod::Key(key, value) => set_key(&file, node, &child_pointer(pointer, key.name), value),
        SwitchMethod::AddTo(list) => file.append(list, &OutputValue::text(name)),
        SwitchMethod::RemoveFrom(list) => {
            let items = file.root.at(list).and_then(Node::items).unwrap_or_default();
            let index = items.iter().position(|it| it.text() == Some(name)).unwrap_or_default();
            file.remove_added(&child_pointer(list, &index.to_string()), document)
        }
        SwitchMethod::Comment => {
            let list = parent_pointer(pointer).and_then(|it| file.root.at(it));
            let edits = list.and_then(|it| comment_out(file.layout, it, &last_key(pointer)));
            let edits = ok_or_unsupported(edits, SHARED_LINES)?;
            file.apply_verified(&edits, &ChangedPointers { old: vec![pointer.clone()], new: Vec::new() })
        }
    }
}

/// Chooses how a server is enabled or disabled next.
fn choose_method(
    file: &EditableFile<'_>,
    document: &Document<'_>,
    ServerEntry { name, pointer, .. }: &ServerEntry,
    node: &Node,
    switch: Switch,
) -> Result<SwitchMethod, EditError> {
    let bool_value = |key: &str| match node.get(key).map(|it| it.value.resolved_content()) {
        Some(Content::Bool(value)) => Some(*value),
        _ => None,
    };
    let set_key_if_needed = |key: SwitchKey| match (switch, bool_value(key.name) == Some(key.disabled_value))
    {
        (Switch::On, true) => SwitchMethod::Key(key, !key.disabled_value),
        (Switch::Off, false) => SwitchMethod::Key(key, key.disabled_value),
        (Switch::On, false) | (Switch::Off, true) => SwitchMethod::Unchanged,
    };
    match document.profile {
        Profile::HoloDeck | Profile::HoloDeck07 | Profile::AcpV1 | Profile::AcpV2 => {
            return Err(EditError::CannotDisable(document.profile.dialect()));
        }
        Profile::Dominds => return Ok(set_key_if_needed(ENABLED)),
        Profile::McpJson => {}
    }
    let list = parent_pointer(pointer).unwrap_or_default();
    let program = file.program_of(list);
    let lists = NameLists::read(&file.root);
    if switch == Switch::On {
        let obeys_lists = program.disabling == Disabling::NameLists;
        return Ok(match set_key_if_needed(DISABLED) {
            SwitchMethod::Unchanged if obeys_lists && lists.excludes(name) => {
                SwitchMethod::RemoveFrom(name_lists::EXCLUDED)
            }
            SwitchMethod::Unchanged if obeys_lists && lists.is_not_allowed(name) => {
                SwitchMethod::AddTo(name_lists::ALLOWED)
            }
            SwitchMethod::Unchanged => set_key_if_needed(ENABLED),
            method => method,
        });
    }
    match (program.disabling, program.json_extensions) {
        (Disabling::NameLists, _) if lists.disables(name) => Ok(SwitchMethod::Unchanged),
        (Disabling::NameLists, _) => Ok(SwitchMethod::AddTo(name_lists::EXCLUDED)),
        // A program that is not known may obey the key that the entry has.
        (Disabling::Key(DISABLED), _) if bool_value(ENABLED.name).is_some() && program.is_unknown() => {
            Ok(set_key_if_needed(ENABLED))
        }
        (Disabling::Key(key), _) => Ok(set_key_if_needed(key)),
        (Disabling::Unsupported(_), JsonExtensions::Comments | JsonExtensions::CommentsAndCommas) => {
            Ok(SwitchMethod::Comment)
        }
        (Disabling::Unsupported(own_way), JsonExtensions::None | JsonExtensions::Unknown) => {
            Err(EditError::NoDisablingKey { program: program.name, own_way })
        }
    }
}

/// The text with this value of the key at a pointer, which becomes the first key of the entry if it is missing.
fn set_key(file: &EditableFile<'_>, node: &Node, pointer: &str, value: bool) -> Result<String, EditError> {
    let key = last_key(pointer);
    let data = OutputValue::scalar(value);
    let changed = vec![pointer.to_owned()];
    let (edits, old) = match node.get(&key) {
        Some(member) if matches!(member.value.content, Content::Bool(_)) => {
            let edit = TextEdit { span: member.value.span.clone(), text: value.to_string() };
            (Some(vec![edit]), changed.clone())
        }
        Some(_) => (None, Vec::new()),
        None => (insert(file.layout, node, InsertPosition::First, NewEntry::Member(&key, &data)), Vec::new()),
    };
    let edits = ok_or_unsupported(edits, "the server's entry cannot take another key")?;
    file.apply_verified(&edits, &ChangedPointers { old, new: changed })
}

/// Turns a commented-out entry into an entry again.
fn uncomment(
    file: &EditableFile<'_>,
    document: &Document<'_>,
    name: &str,
    entry: &CommentedEntry,
) -> Result<String, EditError> {
    let is_around =
        |it: &&String| file.root.at(it).is_some_and(|list| list.members().is_some() && entry.is_in(list));
    let pointers = list_pointers(file, document);
    let list = pointers.iter().find(is_around);
    let list = ok_or_unsupported(list, "the commented-out entry is not among the servers")?;
    let node = ok_or_unsupported(file.root.at(list), "the list of servers was not found")?;
    let changed = ChangedPointers { old: Vec::new(), new: vec![child_pointer(list, name)] };
    file.apply_verified(&entry.restore(file.layout, node), &changed)
}

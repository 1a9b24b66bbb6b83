//! Enables and disables a server: by a key that its program obeys, else by turning its lines into comments.

use crate::diagnostic::TextEdit;
use crate::dialect::editor::program::{Disabling, JsonExtensions, Program};
use crate::edit::editable_file::{EditableFile, unsupported_layout};
use crate::edit::{EditError, list_pointers};
use crate::profile::Profile;
use crate::read::{Document, read};
use crate::syntax::commented_entry::{CommentedEntry, comment_out};
use crate::syntax::entry_edits::{InsertPosition, NewEntry, insert};
use crate::syntax::output::OutputValue;
use crate::syntax::{ChangedPointers, Content, Node, child, last, parent};

/// Enables or disables a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Enable the server.
    On,
    /// Disable the server.
    Off,
}

/// How a server is switched.
enum SwitchMethod {
    /// By the value of a key.
    Key(&'static str, &'static str),
    /// By turning the entry into comments.
    Comment,
    /// Not at all: it is in this state.
    Unchanged,
}

/// Enables or disables a server. Returns the same text if nothing changes.
///
/// A server is disabled by the key that the program of the file obeys. If the program has none and accepts comments, the
/// entry becomes a comment; else the edit is refused (DIA-07, DMX-02).
pub fn set_enabled(document: &Document<'_>, name: &str, switch: Switch) -> Result<String, EditError> {
    let file = EditableFile::open(document)?;
    let seen = match file.server(name) {
        Ok(seen) => seen,
        Err(error @ EditError::NoSuchServer { .. }) => {
            return match CommentedEntry::find(file.layout, name) {
                None => Err(error),
                Some(entry) if switch == Switch::On => restore(&file, document, name, &entry),
                Some(_) => Ok(document.text.to_owned()),
            };
        }
        Err(error) => return Err(error),
    };
    let pointer = &seen.pointer;
    let node = file.root.at(pointer).ok_or_else(|| unsupported_layout("the server was not found"))?;
    let edits = match method(&file, document, pointer, node, switch)? {
        SwitchMethod::Unchanged => return Ok(document.text.to_owned()),
        SwitchMethod::Key(key, word) if file.is_toml() => {
            return file.set(&child(pointer, key), &OutputValue::scalar(word));
        }
        SwitchMethod::Key(key, word) => set_key(&file, node, pointer, (key, word))?,
        SwitchMethod::Comment => {
            let list = parent(pointer).and_then(|it| file.root.at(it));
            let edits = list.and_then(|it| comment_out(file.layout, it, &last(pointer)));
            let edits =
                edits.ok_or_else(|| unsupported_layout("the entry shares its lines with something else"))?;
            return file
                .apply_verified(&edits, &ChangedPointers { old: vec![pointer.clone()], new: Vec::new() });
        }
    };
    let text = file.apply_verified(&edits.0, &edits.1)?;
    let again = read(&Document { text: &text, ..*document });
    let settled = again.entries.iter().any(|it| it.name == name && it.disabled == (switch == Switch::Off));
    if settled { Ok(text) } else { Err(unsupported_layout("the server would not change")) }
}

fn method(
    file: &EditableFile<'_>,
    document: &Document<'_>,
    pointer: &str,
    node: &Node,
    switch: Switch,
) -> Result<SwitchMethod, EditError> {
    let value = |key: &str| match node.get(key).map(|it| it.value.content()) {
        Some(Content::Bool(value)) => Some(*value),
        _ => None,
    };
    let enabled = match switch {
        Switch::On if value("enabled") != Some(false) => SwitchMethod::Unchanged,
        Switch::On => SwitchMethod::Key("enabled", "true"),
        Switch::Off if value("enabled") == Some(false) => SwitchMethod::Unchanged,
        Switch::Off => SwitchMethod::Key("enabled", "false"),
    };
    match document.profile {
        Profile::HoloDeck | Profile::HoloDeck07 | Profile::AcpV1 | Profile::AcpV2 => {
            return Err(EditError::CannotDisable(document.profile.dialect()));
        }
        Profile::Dominds => return Ok(enabled),
        Profile::McpJson => {}
    }
    if switch == Switch::On {
        let is_disabled = value("disabled") == Some(true);
        return Ok(if is_disabled { SwitchMethod::Key("disabled", "false") } else { enabled });
    }
    let list = parent(pointer).unwrap_or_default();
    let key = last(list);
    let key = if list == "/mcp/servers" { "mcp.servers" } else { &*key };
    let program = match file.root.at(list) {
        Some(servers) => Program::of_servers(document.name, key, servers),
        None => return Err(unsupported_layout("the server was not found")),
    };
    match (program.disabling, program.syntax) {
        (Disabling::Enabled, _) => Ok(enabled),
        // A program that is not known may obey the key that the entry has.
        (Disabling::Disabled, _) if value("enabled").is_some() && program.is_unknown() => Ok(enabled),
        (Disabling::Disabled, _) if value("disabled") == Some(true) => Ok(SwitchMethod::Unchanged),
        (Disabling::Disabled, _) => Ok(SwitchMethod::Key("disabled", "true")),
        (Disabling::Unsupported(_), JsonExtensions::Comments | JsonExtensions::CommentsAndCommas) => {
            Ok(SwitchMethod::Comment)
        }
        (Disabling::Unsupported(own_way), JsonExtensions::None | JsonExtensions::Unknown) => {
            Err(EditError::NoDisablingKey { program: program.name, own_way })
        }
    }
}

fn set_key(
    file: &EditableFile<'_>,
    node: &Node,
    pointer: &str,
    (key, word): (&str, &str),
) -> Result<(Vec<TextEdit>, ChangedPointers), EditError> {
    let place = child(pointer, key);
    let (edit, changed) = match node.get(key) {
        Some(member) if matches!(member.value.content, Content::Bool(_)) => {
            let edit = TextEdit { span: member.value.span.clone(), text: word.to_owned() };
            (Some(vec![edit]), ChangedPointers { old: vec![place.clone()], new: vec![place] })
        }
        Some(_) => (None, ChangedPointers::default()),
        None => {
            let data = OutputValue::scalar(word);
            let edit = insert(file.layout, node, InsertPosition::First, NewEntry::Member(key, &data));
            (edit, ChangedPointers { old: Vec::new(), new: vec![place] })
        }
    };
    let edit = edit.ok_or_else(|| unsupported_layout("the server's entry cannot take another key"))?;
    Ok((edit, changed))
}

/// Turns a commented-out entry into an entry again.
fn restore(
    file: &EditableFile<'_>,
    document: &Document<'_>,
    name: &str,
    entry: &CommentedEntry,
) -> Result<String, EditError> {
    let is_around =
        |it: &&String| file.root.at(it).is_some_and(|list| list.members().is_some() && entry.is_in(list));
    let pointers = list_pointers(document);
    let list = pointers.iter().find(is_around);
    let list = list.ok_or_else(|| unsupported_layout("the commented-out entry is not among the servers"))?;
    let node = file.root.at(list).ok_or_else(|| unsupported_layout("the list of servers was not found"))?;
    let changed = ChangedPointers { old: Vec::new(), new: vec![child(list, name)] };
    file.apply_verified(&entry.restore(file.layout, node), &changed)
}

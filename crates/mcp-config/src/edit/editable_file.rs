//! A file to edit: computes the text after a change, and verifies that nothing else changed.

use mcp_host_model::{Profile, RawJson, Severity};

use crate::diagnostic::{Code, Diagnostic, TextEdit, apply_edits};
use crate::dialect::editor::conventions::Program;
use crate::dialect::editor::programs::UNKNOWN;
use crate::edit::error::EditError;
use crate::edit::toml;
use crate::profile::rules::ProfileRules;
use crate::read::{Document, Reading, ServerEntry, read};
use crate::syntax::commented_entry::CommentedEntry;
use crate::syntax::entry_edits::{self, InsertPosition, NewEntry, insert, remove, replace};
use crate::syntax::layout::Layout;
use crate::syntax::output::OutputValue;
use crate::syntax::{
    self, ChangedPointers, Content, Member, Node, Syntax, child_pointer, find_difference, last_key,
    parent_pointer, to_json,
};

// Reasons of `EditError::UnsupportedLayout`.
pub(super) const SHARED_LINES: &str = "the entry shares its lines with something else";
const LIST_LAYOUT: &str = "its list of servers has an unsupported layout";
const FIELD_LAYOUT: &str = "the layout of the field is not supported";

pub(super) fn unsupported_layout(reason: &str) -> EditError {
    EditError::UnsupportedLayout { reason: reason.to_owned() }
}

/// The value; without one, the error for an unsupported layout.
pub(super) fn ok_or_unsupported<T>(value: Option<T>, reason: &str) -> Result<T, EditError> {
    value.ok_or_else(|| unsupported_layout(reason))
}

/// The diagnostics of a reading that are errors.
pub(super) fn error_diagnostics(reading: &Reading) -> impl Iterator<Item = &Diagnostic> {
    reading.diagnostics.iter().filter(|it| it.severity == Severity::Error)
}

/// A file without errors that prevent editing. Its methods return the text after a change.
pub(super) struct EditableFile<'a> {
    pub(super) layout: Layout<'a>,
    syntax: Syntax,
    pub(super) root: Node,
    pub(super) reading: Reading,
    /// The program that the path belongs to.
    path_program: Option<&'static Program>,
}

impl<'a> EditableFile<'a> {
    /// Reads a document. Fails if an error prevents editing.
    pub(super) fn read(document: &Document<'a>) -> Result<EditableFile<'a>, EditError> {
        let reading = read(document);
        let syntax = ProfileRules::for_profile(document.profile).syntax_of(document.name, document.text);
        let syntax::ParsedText { root, dropped: _, diagnostics, extensions: _ } =
            syntax::parse_as(document.text, syntax);
        let prevents_editing = |it: &Diagnostic| {
            let is_new_file = it.code == Code::UnsupportedVersion && document.text.trim().is_empty();
            it.code.rejects_file() && !is_new_file
        };
        // Reading tolerates some mistakes of syntax, such as a repeated key; editing tolerates none.
        let mistake = error_diagnostics(&reading).find(|it| prevents_editing(it)).or_else(|| {
            let first = diagnostics.first()?;
            reading.diagnostics.iter().find(|it| it.code == first.code)
        });
        match (root, mistake) {
            (Some(root), None) => {
                let (layout, path_program) = (Layout::new(document.text), Program::of_file(document.name));
                Ok(EditableFile { layout, syntax, root, reading, path_program })
            }
            (_, Some(mistake)) => {
                Err(EditError::InvalidFile { line: mistake.line, message: mistake.to_string() })
            }
            (None, None) => Err(unsupported_layout("it cannot be read")),
        }
    }

    /// The program of the file, by its path.
    pub(super) fn program(&self) -> &'static Program {
        self.path_program.unwrap_or(&UNKNOWN)
    }

    /// The program of the servers at a pointer.
    pub(super) fn program_of(&self, servers: &str) -> &'static Program {
        Program::choose(self.path_program, &self.root, servers)
    }

    pub(super) fn is_toml(&self) -> bool {
        self.syntax == Syntax::Toml
    }

    /// Finds the only server with a name.
    pub(super) fn find_server(&self, name: &str) -> Result<&ServerEntry, EditError> {
        let entries = &self.reading.entries;
        let mut found = entries.iter().filter(|it| it.name == name);
        match (found.next(), found.next()) {
            (Some(entry), None) => Ok(entry),
            (Some(_), Some(_)) => Err(EditError::Ambiguous { name: name.to_owned() }),
            (None, _) if CommentedEntry::find(self.layout, name).is_some() => {
                Err(EditError::CommentedOut { name: name.to_owned() })
            }
            (None, _) => {
                let names = entries.iter().map(|it| it.name.clone()).collect();
                Err(EditError::NoSuchServer { name: name.to_owned(), names })
            }
        }
    }

    /// The text with these edits. Fails if any value changes that is not in `changed`.
    pub(super) fn apply_verified(
        &self,
        edits: &[TextEdit],
        changed: &ChangedPointers,
    ) -> Result<String, EditError> {
        self.verify(apply_edits(self.layout.text(), edits), "the edits overlap", changed)
    }

    /// The new text. Fails with the reason `why` if there is none, and if any value differs that is not in `changed`.
    fn verify(&self, new: Option<String>, why: &str, changed: &ChangedPointers) -> Result<String, EditError> {
        let text = ok_or_unsupported(new, why)?;
        let syntax::ParsedText { root, dropped: _, diagnostics, extensions: _ } =
            syntax::parse_as(&text, self.syntax);
        let Some(root) = root.filter(|_| diagnostics.is_empty()) else {
            return Err(unsupported_layout(
                "another part of it depends on the entry, perhaps through an anchor",
            ));
        };
        match find_difference(&self.root, &root, changed) {
            None => Ok(text),
            Some(pointer) => Err(unsupported_layout(&format!("the value at '{pointer}' would change too"))),
        }
    }

    /// The member at a pointer.
    fn member(&self, pointer: &str) -> Option<&Member> {
        self.root.at(parent_pointer(pointer)?)?.get(&last_key(pointer))
    }

    /// The text with an entry added to the list or map of servers or inputs at a pointer, which is created if missing.
    pub(super) fn add_entry(
        &self,
        at: &str,
        entry: NewEntry<'_>,
        document: &Document<'_>,
    ) -> Result<String, EditError> {
        if let (Syntax::Toml, NewEntry::Member(name, data)) = (self.syntax, entry) {
            return self.set(&child_pointer(at, name), data);
        }
        if let Some(list) = self.member(at) {
            let (edits, changed) = self.insert_into(at, list, entry)?;
            return self.apply_verified(&edits, &changed);
        }
        let list = match entry {
            NewEntry::Item(data) => OutputValue::List(vec![data.clone()]),
            NewEntry::Member(name, data) => OutputValue::Map(vec![(name.to_owned(), data.clone())]),
        };
        if self.root.members().is_some_and(|it| !it.is_empty()) {
            return self.set(at, &list);
        }
        self.fill_file(at, list, document)
    }

    /// The text with this value at a pointer. A missing value is added after the others, with its parents.
    pub(super) fn set(&self, pointer: &str, value: &OutputValue) -> Result<String, EditError> {
        // The outermost missing value, if the parents are missing too.
        let (mut outermost, mut data) = (pointer, value.clone());
        while let Some(above) = parent_pointer(outermost).filter(|it| self.root.at(it).is_none()) {
            data = OutputValue::Map(vec![(last_key(outermost), data)]);
            outermost = above;
        }
        let above = ok_or_unsupported(parent_pointer(outermost), FIELD_LAYOUT)?;
        let node = ok_or_unsupported(self.root.at(above), FIELD_LAYOUT)?;
        let replaced = ChangedPointers { old: vec![outermost.to_owned()], new: vec![outermost.to_owned()] };
        if self.syntax == Syntax::Toml {
            return self.verify(toml::set(self.layout.text(), pointer, value), FIELD_LAYOUT, &replaced);
        }
        let key = last_key(outermost);
        if let Some(index) = entry_index(node, &key) {
            let edit = ok_or_unsupported(replace(self.layout, node, index, &data), FIELD_LAYOUT)?;
            return self.apply_verified(&[edit], &replaced);
        }
        if node.members().is_none() && !matches!(node.resolved_content(), Content::Null) {
            return Err(unsupported_layout(&format!("'{}' is not a mapping there", last_key(above))));
        }
        let entry = NewEntry::Member(&key, &data);
        if node.members().is_none_or(<[_]>::is_empty)
            && let Some(member) = self.member(above)
        {
            let (edits, changed) = self.insert_into(above, member, entry)?;
            return self.apply_verified(&edits, &changed);
        }
        let edits = insert(self.layout, node, InsertPosition::Last, entry);
        let changed = ChangedPointers { old: Vec::new(), new: vec![outermost.to_owned()] };
        self.apply_verified(&ok_or_unsupported(edits, FIELD_LAYOUT)?, &changed)
    }

    /// The text with a value at the end of the list at a pointer, which is created if missing.
    pub(super) fn append(&self, pointer: &str, value: &OutputValue) -> Result<String, EditError> {
        let list = self.root.at(pointer);
        let count = list.and_then(Node::items).map_or(0, <[_]>::len);
        let list = match list {
            Some(list) if count > 0 => list,
            Some(node) if !matches!(node.resolved_content(), Content::Null | Content::Sequence(_)) => {
                return Err(unsupported_layout(&format!("'{}' is not a list there", last_key(pointer))));
            }
            Some(_) | None => return self.set(pointer, &OutputValue::List(vec![value.clone()])),
        };
        let new = child_pointer(pointer, &count.to_string());
        let changed = ChangedPointers { old: Vec::new(), new: vec![new] };
        if self.syntax == Syntax::Toml {
            let text = toml::append(self.layout.text(), pointer, value);
            return self.verify(text, FIELD_LAYOUT, &changed);
        }
        let edits = insert(self.layout, list, InsertPosition::Last, NewEntry::Item(value));
        self.apply_verified(&ok_or_unsupported(edits, FIELD_LAYOUT)?, &changed)
    }

    /// The text without the value at a pointer, and without the comments inside it and directly above it.
    pub(super) fn remove(&self, pointer: &str) -> Result<String, EditError> {
        let changed = ChangedPointers { old: vec![pointer.to_owned()], new: Vec::new() };
        if self.syntax == Syntax::Toml {
            return self.verify(toml::remove(self.layout.text(), pointer), SHARED_LINES, &changed);
        }
        let found = parent_pointer(pointer).and_then(|above| {
            let list = self.root.at(above)?;
            Some((above, list, entry_index(list, &last_key(pointer))?))
        });
        let (above, list, index) = ok_or_unsupported(found, "the entry was not found")?;
        let edits = if entry_count(list) > 1 {
            ok_or_unsupported(remove(self.layout, list, index), SHARED_LINES)?
        } else {
            self.remove_only_entry(above, list)?
        };
        self.apply_verified(&edits, &changed)
    }

    /// Like [`EditableFile::remove`], and also removes the lists and maps that would be empty, if adding the
    /// value again gives the same text.
    pub(super) fn remove_added(&self, pointer: &str, document: &Document<'_>) -> Result<String, EditError> {
        let outermost = self.outermost_emptied("", pointer);
        if outermost != pointer
            && let Some(text) = self.remove(outermost).ok()
            && let Some(before) = EditableFile::read(&document.with_text(&text)).ok()
            && self.is_result_of_adding(pointer, &before, document)
        {
            return Ok(text);
        }
        self.remove(pointer)
    }

    /// Whether adding the value at a pointer to the file `before` gives the text of this file.
    fn is_result_of_adding(&self, pointer: &str, before: &EditableFile<'_>, document: &Document<'_>) -> bool {
        let value = self.root.at(pointer).and_then(to_json).and_then(|it| RawJson::parse(it.into()).ok());
        let value = value.and_then(|it| OutputValue::from_json(&it));
        let (Some(value), Some(at)) = (value, parent_pointer(pointer)) else { return false };
        let is_list = self.root.at(at).is_some_and(|it| it.items().is_some());
        let key = last_key(pointer);
        let entry = if is_list { NewEntry::Item(&value) } else { NewEntry::Member(&key, &value) };
        before.add_entry(at, entry, document).is_ok_and(|it| it == self.layout.text())
    }

    /// The pointer to the outermost value below `root` that would be empty without the value at `pointer`; else
    /// `pointer`.
    pub(super) fn outermost_emptied<'p>(&self, root: &str, pointer: &'p str) -> &'p str {
        let mut res = pointer;
        while let Some(above) = parent_pointer(res).filter(|it| *it != root) {
            if self.root.at(above).map_or(0, entry_count) != 1 {
                break;
            }
            res = above;
        }
        res
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
        let count = entry_count(value);
        let new = match entry {
            NewEntry::Member(name, _) => child_pointer(&at, name),
            NewEntry::Item(_) => child_pointer(&at, &count.to_string()),
        };
        // A null is replaced by a list or map, so only the whole value can be excluded from the comparison.
        let from_nothing = matches!(value.resolved_content(), Content::Null);
        let old = if from_nothing { vec![at.clone()] } else { Vec::new() };
        let changed = ChangedPointers { old, new: vec![if from_nothing { at } else { new }] };
        if matches!(value.content, Content::Shared(_)) {
            return Err(unsupported_layout("the list of servers is shared, by an anchor or an alias"));
        }
        if count > 0 {
            let edits = insert(self.layout, value, InsertPosition::Last, entry);
            return Ok((ok_or_unsupported(edits, LIST_LAYOUT)?, changed));
        }
        let empty = matches!(value.content, Content::Null | Content::Sequence(_) | Content::Mapping(_));
        if !empty {
            return Err(unsupported_layout("the value of the servers' key is not a list or mapping"));
        }
        if entry_edits::is_flow(self.layout, &self.root) {
            let edit = entry_edits::fill_empty(self.layout, key.span.start, value, entry);
            return Ok((vec![ok_or_unsupported(edit, LIST_LAYOUT)?], changed));
        }
        let start = key.span.start;
        let column = ok_or_unsupported(self.layout.column(start), "its indentation is not supported")?;
        let last_line = self.layout.last_line_start(&(start..value.span.end.max(key.span.end)));
        let at_line = self.layout.next_line(last_line);
        let mut edits = vec![entry_edits::insert_lines(self.layout, at_line, column + 2, false, entry)];
        if !value.span.is_empty() {
            // Removes `[]` or `null` and the blanks before it.
            let before = &self.layout.text()[..value.span.start];
            let start = before.trim_end_matches(' ').len();
            edits.insert(0, TextEdit { span: start..value.span.end, text: String::new() });
        }
        Ok((edits, changed))
    }

    /// The text of a file without content, after a value was added at a pointer.
    fn fill_file(&self, at: &str, value: OutputValue, document: &Document<'_>) -> Result<String, EditError> {
        let (mut above, mut data) = (at, value);
        while let Some(next) = parent_pointer(above) {
            data = OutputValue::Map(vec![(last_key(above), data)]);
            above = next;
        }
        let text = self.layout.text();
        let end = self.layout.line_end();
        let is_blank = text.trim_start_matches('\u{feff}').trim().is_empty();
        let edit = if self.syntax != Syntax::Yaml {
            let mut new = data.to_json_lines().join(end);
            if !text[self.root.span.end..].contains('\n') && self.root.members().is_none() {
                new.push_str(end);
            }
            if self.root.members().is_none() && !is_blank {
                return Err(unsupported_layout("it is not an object"));
            }
            TextEdit { span: self.root.span.clone(), text: new }
        } else {
            // The file has comments only.
            if !matches!(self.root.content, Content::Null) || !self.root.span.is_empty() {
                return Err(unsupported_layout("it is not a mapping"));
            }
            let required = match document.profile {
                Profile::Dominds => &["version: 1"],
                Profile::McpJson => self.program().required_lines,
                Profile::HoloDeck | Profile::HoloDeck07 | Profile::AcpV1 | Profile::AcpV2 => &[],
            };
            let lines = required.iter().map(|it| (*it).to_owned()).chain(data.to_block_lines());
            let mut new: String = lines.map(|it| it + end).collect();
            if !(text.is_empty() || text.ends_with(['\n', '\u{feff}'])) {
                new.insert_str(0, end);
            }
            TextEdit { span: text.len()..text.len(), text: new }
        };
        let root = || vec![String::new()];
        self.apply_verified(&[edit], &ChangedPointers { old: root(), new: root() })
    }

    /// Edits that remove the only entry of a list or map.
    fn remove_only_entry(&self, pointer: &str, list: &Node) -> Result<Vec<TextEdit>, EditError> {
        let empty = if list.items().is_some() { "[]" } else { "{}" };
        if entry_edits::is_flow(self.layout, list) {
            let edit = entry_edits::remove_only_entry(self.layout, list, empty);
            return Ok(vec![ok_or_unsupported(edit, SHARED_LINES)?]);
        }
        let key = &ok_or_unsupported(self.member(pointer), "its list of servers has no key")?.key;
        let colon = self.layout.text()[key.span.end..].find(':').map(|it| key.span.end + it + 1);
        let lines = entry_edits::entry_lines(self.layout, list, 0);
        match (colon, lines) {
            (Some(colon), Some(lines)) if colon <= lines.start => {
                let lines = entry_edits::removed_lines(self.layout, lines);
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

/// The number of members or items.
fn entry_count(node: &Node) -> usize {
    node.members().map_or(0, <[_]>::len) + node.items().map_or(0, <[_]>::len)
}

/// The index of the member with this key, or of the item with this index as text.
fn entry_index(node: &Node, key: &str) -> Option<usize> {
    match (node.members(), node.items()) {
        (Some(members), _) => members.iter().position(|it| *it.key.text == *key),
        (None, Some(items)) => key.parse().ok().filter(|it| *it < items.len()),
        (None, None) => None,
    }
}

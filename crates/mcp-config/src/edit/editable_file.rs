//! A file that is edited: finds places in its text and verifies each edit.

use mcp_model::Severity;

use crate::diagnostic::{Code, Diagnostic, TextEdit, apply_edits};
use crate::edit::{EditError, toml};
use crate::profile::Profile;
use crate::profile::policy::Policy;
use crate::read::{Document, Reading, ServerEntry, read};
use crate::syntax::entry_edits::{self, InsertPosition, NewEntry, insert, remove, replace};
use crate::syntax::layout::Layout;
use crate::syntax::output::{self, OutputValue};
use crate::syntax::{self, ChangedPointers, Content, Member, Node, Syntax, child, difference, last, parent};

const SHARED_LINES: &str = "the entry shares its lines with something else";
const LIST_LAYOUT: &str = "its list of servers has an unsupported layout";
const FIELD_LAYOUT: &str = "the layout of the field is not supported";

pub(super) fn unsupported_layout(why: &str) -> EditError {
    EditError::UnsupportedLayout { reason: why.to_owned() }
}

pub(super) fn errors(reading: &Reading) -> impl Iterator<Item = &Diagnostic> {
    reading.diagnostics.iter().filter(|it| it.severity == Severity::Error)
}

/// A file without errors that prevent editing.
pub(super) struct EditableFile<'a> {
    pub(super) layout: Layout<'a>,
    syntax: Syntax,
    pub(super) root: Node,
    pub(super) reading: Reading,
}

impl<'a> EditableFile<'a> {
    pub(super) fn open(document: &Document<'a>) -> Result<EditableFile<'a>, EditError> {
        let reading = read(document);
        let syntax = Policy::for_profile(document.profile).syntax_of(document.name, document.text);
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

    pub(super) fn is_toml(&self) -> bool {
        self.syntax == Syntax::Toml
    }

    pub(super) fn server(&self, name: &str) -> Result<&ServerEntry, EditError> {
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
    pub(super) fn apply_verified(
        &self,
        edits: &[TextEdit],
        changed: &ChangedPointers,
    ) -> Result<String, EditError> {
        let text =
            apply_edits(self.layout.text(), edits).ok_or_else(|| unsupported_layout("the edits overlap"))?;
        self.verified(text, changed)
    }

    /// The new text, if only the values in `changed` differ.
    fn verified(&self, text: String, changed: &ChangedPointers) -> Result<String, EditError> {
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

    /// The text with an entry added to the list or map of servers or inputs at a pointer, which is created if missing.
    pub(super) fn add_entry(
        &self,
        at: &str,
        entry: NewEntry<'_>,
        document: &Document<'_>,
    ) -> Result<String, EditError> {
        if let (Syntax::Toml, NewEntry::Member(name, data)) = (self.syntax, entry) {
            return self.set(&child(at, name), data);
        }
        let (edits, changed) = match self.member(at) {
            None => self.new_list(at, entry, document)?,
            Some(list) => self.insert_into(at, list, entry)?,
        };
        self.apply_verified(&edits, &changed)
    }

    /// The text with this value at a pointer. A missing value is added after the others, with its parents.
    pub(super) fn set(&self, pointer: &str, value: &OutputValue) -> Result<String, EditError> {
        let touched =
            |old: &str, new: &str| ChangedPointers { old: vec![old.to_owned()], new: vec![new.to_owned()] };
        // The outermost missing value.
        let (mut new, mut data) = (pointer, value.clone());
        while let Some(above) = parent(new).filter(|it| self.root.at(it).is_none()) {
            data = OutputValue::Map(vec![(last(new), data)]);
            new = above;
        }
        let above = parent(new).ok_or_else(|| unsupported_layout(FIELD_LAYOUT))?;
        let Some(node) = self.root.at(above) else { return Err(unsupported_layout(FIELD_LAYOUT)) };
        if self.syntax == Syntax::Toml {
            let text = toml::set(self.layout.text(), pointer, value);
            return self.verified(text.ok_or_else(|| unsupported_layout(FIELD_LAYOUT))?, &touched(new, new));
        }
        let key = last(new);
        if let Some(index) = index_of(node, &key) {
            let edit = replace(self.layout, node, index, &data);
            let edit = edit.ok_or_else(|| unsupported_layout(FIELD_LAYOUT))?;
            return self.apply_verified(&[edit], &touched(new, new));
        }
        if node.members().is_none() && !matches!(node.content(), Content::Null) {
            return Err(unsupported_layout(&format!("'{}' is not a mapping there", last(above))));
        }
        let entry = NewEntry::Member(&key, &data);
        if let (true, Some(member)) = (node.members().is_none_or(<[_]>::is_empty), self.member(above)) {
            let (edits, changed) = self.insert_into(above, member, entry)?;
            return self.apply_verified(&edits, &changed);
        }
        let edits = insert(self.layout, node, InsertPosition::Last, entry);
        let changed = ChangedPointers { old: Vec::new(), new: vec![new.to_owned()] };
        self.apply_verified(&edits.ok_or_else(|| unsupported_layout(FIELD_LAYOUT))?, &changed)
    }

    /// The text with a value at the end of the non-empty list at a pointer.
    pub(super) fn append(&self, pointer: &str, value: &OutputValue) -> Result<String, EditError> {
        let list = self.root.at(pointer).filter(|it| it.items().is_some());
        let list = list.ok_or_else(|| unsupported_layout(FIELD_LAYOUT))?;
        let count = list.items().map_or(0, <[_]>::len);
        let changed = ChangedPointers { old: Vec::new(), new: vec![child(pointer, &count.to_string())] };
        if self.syntax == Syntax::Toml {
            let text = toml::append(self.layout.text(), pointer, value);
            return self.verified(text.ok_or_else(|| unsupported_layout(FIELD_LAYOUT))?, &changed);
        }
        let edits = insert(self.layout, list, InsertPosition::Last, NewEntry::Item(value));
        self.apply_verified(&edits.ok_or_else(|| unsupported_layout(FIELD_LAYOUT))?, &changed)
    }

    /// The text without the value at a pointer, and without the comments inside it and directly above it.
    pub(super) fn remove(&self, pointer: &str) -> Result<String, EditError> {
        let changed = ChangedPointers { old: vec![pointer.to_owned()], new: Vec::new() };
        if self.syntax == Syntax::Toml {
            let text = toml::remove(self.layout.text(), pointer);
            return self.verified(text.ok_or_else(|| unsupported_layout(SHARED_LINES))?, &changed);
        }
        let found = parent(pointer).and_then(|above| {
            let list = self.root.at(above)?;
            Some((above, list, index_of(list, &last(pointer))?))
        });
        let (above, list, index) = found.ok_or_else(|| unsupported_layout("the entry was not found"))?;
        let count = list.members().map_or(0, <[_]>::len) + list.items().map_or(0, <[_]>::len);
        let edits = if count > 1 {
            remove(self.layout, list, index).ok_or_else(|| unsupported_layout(SHARED_LINES))?
        } else {
            self.remove_only_entry(above, list)?
        };
        self.apply_verified(&edits, &changed)
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

/// The index of the member or item with this key.
fn index_of(node: &Node, key: &str) -> Option<usize> {
    match (node.members(), node.items()) {
        (Some(members), _) => members.iter().position(|it| *it.key.text == *key),
        (None, Some(items)) => key.parse().ok().filter(|it| *it < items.len()),
        (None, None) => None,
    }
}

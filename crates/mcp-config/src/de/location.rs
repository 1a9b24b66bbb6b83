//! Locations of values in a document, cheap enough to create one for every value.
//!
//! A location is an index into a [`LocationTable`]. Each entry of the table has the index of its parent. A JSON pointer
//! is only built for a diagnostic. The missing fields of a struct share one entry, because an entry of a file lacks
//! most fields.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use crate::syntax::{Member, Node, push_key};

/// The location of a value, or of a missing value.
///
/// Invariant: it belongs to one [`LocationTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    index: u32,
    part: LocationPart,
}

/// What a location points at: the value, its key, or a missing field of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LocationPart {
    Value,
    Key,
    /// The missing field with this index in [`PathSegment::MissingFields`].
    MissingField(u8),
}

/// The locations that were created so far.
#[derive(Debug, Default)]
pub(crate) struct LocationTable(RefCell<Vec<LocationEntry>>);

/// An entry of the table: a value and the index of its parent.
#[derive(Debug)]
struct LocationEntry {
    parent: u32,
    segment: PathSegment,
    /// The value; for a missing value, the start of its parent. A file has at most 1 MiB, so 32 bits suffice.
    span: Range<u32>,
    /// The key of the value; the value itself if it has no key.
    key: Range<u32>,
}

/// The last segment of a path.
#[derive(Debug)]
enum PathSegment {
    Root,
    Key(Rc<str>),
    Index(u32),
    /// Any missing field of a struct with these fields; [`LocationPart::MissingField`] says which.
    MissingFields(&'static [&'static str]),
}

impl Location {
    /// The location of the document's root.
    pub(crate) fn root(node: &Node, context: &impl AsRef<LocationTable>) -> Location {
        context.as_ref().add(0, PathSegment::Root, &node.span, &node.highlight_span())
    }

    /// The location of a list item.
    pub(crate) fn item(self, index: usize, node: &Node, context: &impl AsRef<LocationTable>) -> Location {
        let segment = PathSegment::Index(index as u32);
        context.as_ref().add(self.index, segment, &node.span, &node.highlight_span())
    }

    /// The location of a mapping member.
    pub(crate) fn member(self, member: &Member, context: &impl AsRef<LocationTable>) -> Location {
        let Member { key, value } = member;
        // A key without a value has no value to point at.
        let span = if value.span.is_empty() { &key.span } else { &value.span };
        context.as_ref().add(self.index, PathSegment::Key(Rc::clone(&key.text)), span, &key.span)
    }

    /// The location of the missing key `key`.
    pub(crate) fn missing(self, key: &str, context: &impl AsRef<LocationTable>) -> Location {
        let parent = self.key_span(context);
        context.as_ref().add(self.index, PathSegment::Key(key.into()), &parent, &parent)
    }

    /// The location that the missing fields of a struct share; [`Location::missing_field`] selects one.
    pub(super) fn missing_fields(
        self,
        fields: &'static [&'static str],
        context: &impl AsRef<LocationTable>,
    ) -> Location {
        let parent = self.key_span(context);
        context.as_ref().add(self.index, PathSegment::MissingFields(fields), &parent, &parent)
    }

    /// The location of the missing field with this index.
    pub(super) fn missing_field(self, index: u8) -> Location {
        Location { part: LocationPart::MissingField(index), ..self }
    }

    /// Returns whether this is the location of a missing field.
    pub(super) fn is_missing_field(self) -> bool {
        matches!(self.part, LocationPart::MissingField(_))
    }

    /// The same location, pointing at its key. A missing field has none.
    pub(crate) fn at_key(self) -> Location {
        if self.is_missing_field() { self } else { Location { part: LocationPart::Key, ..self } }
    }

    /// The bytes of the value; for a missing value, the start of its parent.
    pub(crate) fn span(self, context: &impl AsRef<LocationTable>) -> Range<usize> {
        if self.part == LocationPart::Key {
            return self.key_span(context);
        }
        let Range { start, end } = context.as_ref().0.borrow()[self.index as usize].span;
        start as usize..end as usize
    }

    /// The bytes of the key; of the value itself if it has no key.
    pub(crate) fn key_span(self, context: &impl AsRef<LocationTable>) -> Range<usize> {
        let Range { start, end } = context.as_ref().0.borrow()[self.index as usize].key;
        start as usize..end as usize
    }

    /// The JSON pointer.
    pub(crate) fn pointer(self, context: &impl AsRef<LocationTable>) -> String {
        let entries = context.as_ref().0.borrow();
        let mut pointer = String::with_capacity(64);
        push_path(&entries, self.index, &mut pointer);
        if let (LocationPart::MissingField(number), PathSegment::MissingFields(fields)) =
            (self.part, &entries[self.index as usize].segment)
        {
            push_key(&mut pointer, fields[usize::from(number)]);
        }
        pointer
    }

    /// The location as a number, which serde can pass.
    pub(super) fn number(self) -> u64 {
        let part = match self.part {
            LocationPart::Value => 0,
            LocationPart::Key => 1,
            LocationPart::MissingField(number) => 2 + u64::from(number),
        };
        u64::from(self.index) << 8 | part
    }

    /// The location with this [`Location::number`].
    pub(super) fn from_number(number: u64) -> Location {
        let part = match number as u8 {
            0 => LocationPart::Value,
            1 => LocationPart::Key,
            field => LocationPart::MissingField(field - 2),
        };
        Location { index: (number >> 8) as u32, part }
    }
}

impl LocationTable {
    /// The starts of the values that were visited.
    pub(crate) fn value_starts(&self) -> BTreeSet<usize> {
        self.0.borrow().iter().map(|it| it.span.start as usize).collect()
    }

    /// Adds a location.
    fn add(&self, parent: u32, segment: PathSegment, span: &Range<usize>, key: &Range<usize>) -> Location {
        let bytes = |range: &Range<usize>| range.start as u32..range.end as u32;
        let mut entries = self.0.borrow_mut();
        entries.push(LocationEntry { parent, segment, span: bytes(span), key: bytes(key) });
        Location { index: entries.len() as u32 - 1, part: LocationPart::Value }
    }
}

/// Appends the pointer of an entry. The recursion is bounded, because a file has at most 64 levels.
fn push_path(entries: &[LocationEntry], index: u32, pointer: &mut String) {
    let LocationEntry { parent, segment, span: _, key: _ } = &entries[index as usize];
    if matches!(segment, PathSegment::Root) {
        return;
    }
    push_path(entries, *parent, pointer);
    match segment {
        PathSegment::Key(key) => push_key(pointer, key),
        PathSegment::Index(index) => push_key(pointer, &index.to_string()),
        PathSegment::Root | PathSegment::MissingFields(_) => {}
    }
}

//! Locations of values, cheap enough to create for every value.
//!
//! A location is an index into a [`LocationTable`], whose entries know their parents. A JSON pointer is only built for
//! a diagnostic.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use crate::de::ReadContext;
use crate::syntax::{Member, Node, push};

/// The location of a value, or of a missing value.
///
/// Invariant: it belongs to one [`ReadContext`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    index: u32,
    /// The location of the key, not of the value.
    is_key: bool,
}

/// The locations that were created so far.
#[derive(Debug, Default)]
pub(super) struct LocationTable(RefCell<Vec<LocationEntry>>);

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
    Missing(&'static str),
    Index(u32),
}

impl Location {
    /// The location of the document's root.
    pub(crate) fn root(node: &Node, context: &ReadContext) -> Location {
        context.locations.push(0, PathSegment::Root, &node.span, &node.highlight_span())
    }

    /// The location of a list item.
    pub(crate) fn item(self, index: usize, node: &Node, context: &ReadContext) -> Location {
        let segment = PathSegment::Index(index as u32);
        context.locations.push(self.index, segment, &node.span, &node.highlight_span())
    }

    /// The location of a mapping member.
    pub(crate) fn member(self, member: &Member, context: &ReadContext) -> Location {
        let Member { key, value } = member;
        // A key without a value has no value to point at.
        let span = if value.span.is_empty() { &key.span } else { &value.span };
        context.locations.push(self.index, PathSegment::Key(Rc::clone(&key.text)), span, &key.span)
    }

    /// The location of the missing key `key`.
    pub(crate) fn missing(self, key: &'static str, context: &ReadContext) -> Location {
        let parent = self.key(context);
        context.locations.push(self.index, PathSegment::Missing(key), &parent, &parent)
    }

    /// The same location, pointing at its key.
    pub(crate) fn at_key(self) -> Location {
        Location { is_key: true, ..self }
    }

    /// The bytes of the value; for a missing value, the start of its parent.
    pub(crate) fn span(self, context: &ReadContext) -> Range<usize> {
        if self.is_key {
            return self.key(context);
        }
        let Range { start, end } = context.locations.0.borrow()[self.index as usize].span;
        start as usize..end as usize
    }

    /// The bytes of the key; of the value itself if it has no key.
    pub(crate) fn key(self, context: &ReadContext) -> Range<usize> {
        let Range { start, end } = context.locations.0.borrow()[self.index as usize].key;
        start as usize..end as usize
    }

    /// The JSON pointer.
    pub(crate) fn pointer(self, context: &ReadContext) -> String {
        let entries = context.locations.0.borrow();
        let mut path = Vec::with_capacity(16);
        let mut entry = &entries[self.index as usize];
        while !matches!(entry.segment, PathSegment::Root) {
            path.push(&entry.segment);
            entry = &entries[entry.parent as usize];
        }
        let mut pointer = String::with_capacity(64);
        for segment in path.into_iter().rev() {
            match segment {
                PathSegment::Root => {}
                PathSegment::Key(key) => push(&mut pointer, key),
                PathSegment::Missing(key) => push(&mut pointer, key),
                PathSegment::Index(index) => push(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }

    /// The location as a number, which serde can pass.
    pub(super) fn index(self) -> u32 {
        self.index
    }

    /// The location with this [`Location::index`].
    pub(super) fn from_index(index: u32) -> Location {
        Location { index, is_key: false }
    }
}

impl LocationTable {
    fn push(&self, parent: u32, segment: PathSegment, span: &Range<usize>, key: &Range<usize>) -> Location {
        let bytes = |range: &Range<usize>| range.start as u32..range.end as u32;
        let mut entries = self.0.borrow_mut();
        entries.push(LocationEntry { parent, segment, span: bytes(span), key: bytes(key) });
        Location::from_index(entries.len() as u32 - 1)
    }
}

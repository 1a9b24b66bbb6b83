//! Locations of values, cheap enough to create for every value.
//!
//! A location is a few integers. It refers to a path as a node in a [`PathTable`], which knows its parent. A JSON
//! pointer is only built for a diagnostic.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use crate::de::ReadContext;
use crate::syntax::{Member, Node, push};

/// The location of a value, or of a missing value.
///
/// Invariant: it belongs to one [`ReadContext`]. A file has at most 1 MiB, so byte offsets fit into 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    /// The index of the path node; 0 is the document.
    step: u32,
    /// If the node is a struct: the index of the missing field, from 1.
    field: u8,
    /// The value; for a missing value, the start of its parent.
    span: ByteSpan,
    /// The key of the value; the value itself if it has no key.
    key: ByteSpan,
}

/// A range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ByteSpan {
    start: u32,
    end: u32,
}

impl ByteSpan {
    fn of(range: &Range<usize>) -> ByteSpan {
        ByteSpan { start: range.start as u32, end: range.end as u32 }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn to_bits(self) -> u64 {
        u64::from(self.start) << 32 | u64::from(self.end)
    }

    fn from_bits(word: u64) -> ByteSpan {
        ByteSpan { start: (word >> 32) as u32, end: word as u32 }
    }
}

impl Location {
    /// The location of the document's root.
    pub(crate) fn root(node: &Node) -> Location {
        Location {
            step: 0,
            field: 0,
            span: ByteSpan::of(&node.span),
            key: ByteSpan::of(&node.highlight_span()),
        }
    }

    /// The location of a list item.
    pub(crate) fn item(self, index: usize, node: &Node, context: &ReadContext) -> Location {
        let step = context.paths.push(self.last(context), PathSegment::Index(index as u32));
        Location { step, field: 0, span: ByteSpan::of(&node.span), key: ByteSpan::of(&node.highlight_span()) }
    }

    /// The location of a mapping member.
    pub(crate) fn member(self, member: &Member, context: &ReadContext) -> Location {
        let Member { key, value } = member;
        // A key without a value has no value to point at.
        let span = if value.span.is_empty() { &key.span } else { &value.span };
        let step = context.paths.push(self.last(context), PathSegment::Key(Rc::clone(&key.text)));
        Location { step, field: 0, span: ByteSpan::of(span), key: ByteSpan::of(&key.span) }
    }

    /// The location of the missing key `key`.
    pub(crate) fn missing(self, key: &'static str, context: &ReadContext) -> Location {
        let step = context.paths.push(self.last(context), PathSegment::Missing(key));
        Location { step, field: 0, span: self.key, key: self.key }
    }

    /// The location of a struct, for [`Location::field`].
    pub(super) fn with_fields(self, fields: &'static [&'static str], context: &ReadContext) -> Location {
        let step = context.paths.push(self.last(context), PathSegment::Fields(fields));
        Location { step, field: 0, ..self }
    }

    /// The location of a missing field, by index from 0. Most fields are missing, so this adds no path node.
    pub(super) fn field(self, number: u8) -> Location {
        Location { step: self.step, field: number + 1, span: self.key, key: self.key }
    }

    /// The path node of this location; for a missing field, a new node.
    fn last(self, context: &ReadContext) -> u32 {
        match self.field {
            0 => self.step,
            number => context.paths.push(self.step, PathSegment::Field(number - 1)),
        }
    }

    /// The same location, pointing at its key.
    pub(crate) fn at_key(self) -> Location {
        Location { span: self.key, ..self }
    }

    /// The same location, pointing at the key of another.
    pub(crate) fn with_key_of(self, other: &Location) -> Location {
        Location { span: other.key, ..self }
    }

    /// The bytes of the value; for a missing value, the start of its parent.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.range()
    }

    /// The bytes of the key; of the value itself if it has no key.
    pub(crate) fn key(&self) -> Range<usize> {
        self.key.range()
    }

    /// The JSON pointer.
    pub(crate) fn pointer(&self, context: &ReadContext) -> String {
        context.paths.pointer(self.step, self.field)
    }

    /// Encodes the location of a missing field as one integer.
    pub(super) fn encode_missing(self) -> u128 {
        let Location { step, field, span: _, key } = self;
        u128::from(field) << 96 | u128::from(step) << 64 | u128::from(key.to_bits())
    }

    /// Decodes [`Location::encode_missing`].
    pub(super) fn decode_missing(number: u128) -> Location {
        let (step, field) = ((number >> 64) as u32, (number >> 96) as u8);
        let key = ByteSpan::from_bits(number as u64);
        Location { step, field, span: key, key }
    }

    /// Encodes the location and one more byte as integers, which serde can pass.
    pub(super) fn encode(self, other: u8) -> [u64; 3] {
        let Location { step, field, span, key } = self;
        let first = u64::from(other) << 40 | u64::from(field) << 32 | u64::from(step);
        [first, span.to_bits(), key.to_bits()]
    }

    /// Decodes [`Location::encode`].
    pub(super) fn decode([first, span, key]: [u64; 3]) -> (Location, u8) {
        let (step, field) = (first as u32, (first >> 32) as u8);
        let at = Location { step, field, span: ByteSpan::from_bits(span), key: ByteSpan::from_bits(key) };
        (at, (first >> 40) as u8)
    }
}

/// The paths of all visited locations, as a tree.
#[derive(Debug, Default)]
pub(super) struct PathTable(RefCell<Vec<PathNode>>);

#[derive(Debug)]
struct PathNode {
    parent: u32,
    segment: PathSegment,
}

#[derive(Debug)]
enum PathSegment {
    Key(Rc<str>),
    Missing(&'static str),
    Index(u32),
    /// A struct and the names of its fields; not a segment of the pointer.
    Fields(&'static [&'static str]),
    /// A field of the parent struct.
    Field(u8),
}

impl PathTable {
    /// Adds a node below `parent` and returns its index.
    fn push(&self, above: u32, segment: PathSegment) -> u32 {
        let mut steps = self.0.borrow_mut();
        steps.push(PathNode { parent: above, segment });
        steps.len() as u32
    }

    /// The pointer to a node or, if `field` is not 0, to its missing field.
    fn pointer(&self, last: u32, field: u8) -> String {
        let steps = self.0.borrow();
        let mut way = Vec::with_capacity(16);
        let mut next = last;
        while let Some(at) = (next as usize).checked_sub(1) {
            way.push(&steps[at]);
            next = steps[at].parent;
        }
        let mut res = String::with_capacity(64);
        let mut names: &[&str] = &[];
        for step in way.into_iter().rev() {
            match &step.segment {
                PathSegment::Key(key) => push(&mut res, key),
                PathSegment::Missing(key) => push(&mut res, key),
                PathSegment::Index(index) => push(&mut res, &index.to_string()),
                PathSegment::Fields(fields) => names = fields,
                PathSegment::Field(number) => push(&mut res, names[usize::from(*number)]),
            }
        }
        if let Some(number) = usize::from(field).checked_sub(1) {
            push(&mut res, names[number]);
        }
        res
    }
}

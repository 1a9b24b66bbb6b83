//! Where values stand: cheap to carry along with every value, and spelled out only where somebody asks.
//!
//! A file has ten thousand values and, mostly, nothing wrong with any of them. So a place is a few numbers, and the
//! pointer to it a number too: that of a step, which knows the step above it. A pointer is made of them when a complaint
//! needs one.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use crate::de::ReadContext;
use crate::syntax::{Member, Node, push};

/// Where a value stands, or should stand.
///
/// Invariant: made for the pass that it is asked with; a file has at most 1 MiB, so that its bytes fit into 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    /// The last step to it; 0 is the document itself.
    step: u32,
    /// Where that step is a struct's: the number of its field, from 1, that is missing.
    field: u8,
    /// The value; of a missing one, where its parent begins.
    span: ByteSpan,
    /// The key that leads to it; the value where no key does.
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
    /// The place of a document's root.
    pub(crate) fn root(node: &Node) -> Location {
        Location {
            step: 0,
            field: 0,
            span: ByteSpan::of(&node.span),
            key: ByteSpan::of(&node.highlight_span()),
        }
    }

    /// The place of an item of a list.
    pub(crate) fn item(self, index: usize, node: &Node, context: &ReadContext) -> Location {
        let step = context.paths.push(self.last(context), PathSegment::Index(index as u32));
        Location { step, field: 0, span: ByteSpan::of(&node.span), key: ByteSpan::of(&node.highlight_span()) }
    }

    /// The place of a member of a mapping.
    pub(crate) fn member(self, member: &Member, context: &ReadContext) -> Location {
        let Member { key, value } = member;
        // A key with nothing behind it has no value to point at.
        let span = if value.span.is_empty() { &key.span } else { &value.span };
        let step = context.paths.push(self.last(context), PathSegment::Key(Rc::clone(&key.text)));
        Location { step, field: 0, span: ByteSpan::of(span), key: ByteSpan::of(&key.span) }
    }

    /// The place where `key` is missing.
    pub(crate) fn missing(self, key: &'static str, context: &ReadContext) -> Location {
        let step = context.paths.push(self.last(context), PathSegment::Missing(key));
        Location { step, field: 0, span: self.key, key: self.key }
    }

    /// The place of a struct, as [`At::field`] wants it.
    pub(super) fn with_fields(self, fields: &'static [&'static str], context: &ReadContext) -> Location {
        let step = context.paths.push(self.last(context), PathSegment::Fields(fields));
        Location { step, field: 0, ..self }
    }

    /// The place where a field is missing, by its number from 0. Most fields of most structs are, so this is no step.
    pub(super) fn field(self, number: u8) -> Location {
        Location { step: self.step, field: number + 1, span: self.key, key: self.key }
    }

    /// The last step to it; of a missing field one that is made now.
    fn last(self, context: &ReadContext) -> u32 {
        match self.field {
            0 => self.step,
            number => context.paths.push(self.step, PathSegment::Field(number - 1)),
        }
    }

    /// The same place, pointed at by its key.
    pub(crate) fn at_key(self) -> Location {
        Location { span: self.key, ..self }
    }

    /// The value's bytes; of a missing one, where its parent begins.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.range()
    }

    /// The bytes of the key that leads to it; of the value where no key does.
    pub(crate) fn key(&self) -> Range<usize> {
        self.key.range()
    }

    /// The JSON pointer to it.
    pub(crate) fn pointer(&self, context: &ReadContext) -> String {
        context.paths.pointer(self.step, self.field)
    }

    /// The place of a missing field as one number.
    pub(super) fn encode_missing(self) -> u128 {
        let Location { step, field, span: _, key } = self;
        u128::from(field) << 96 | u128::from(step) << 64 | u128::from(key.to_bits())
    }

    /// The place of a missing field that this number is.
    pub(super) fn decode_missing(number: u128) -> Location {
        let (step, field) = ((number >> 64) as u32, (number >> 96) as u8);
        let key = ByteSpan::from_bits(number as u64);
        Location { step, field, span: key, key }
    }

    /// The place as numbers, which is what serde carries, and a byte of the caller's.
    pub(super) fn encode(self, other: u8) -> [u64; 3] {
        let Location { step, field, span, key } = self;
        let first = u64::from(other) << 40 | u64::from(field) << 32 | u64::from(step);
        [first, span.to_bits(), key.to_bits()]
    }

    /// The place that these numbers are, and the caller's byte.
    pub(super) fn decode([first, span, key]: [u64; 3]) -> (Location, u8) {
        let (step, field) = (first as u32, (first >> 32) as u8);
        let at = Location { step, field, span: ByteSpan::from_bits(span), key: ByteSpan::from_bits(key) };
        (at, (first >> 40) as u8)
    }
}

/// The steps to all places that were looked at.
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
    /// A struct, and what its fields are called: no step of a pointer.
    Fields(&'static [&'static str]),
    /// One of the fields of the struct above.
    Field(u8),
}

impl PathTable {
    /// The number of the step from `above` on.
    fn push(&self, above: u32, segment: PathSegment) -> u32 {
        let mut steps = self.0.borrow_mut();
        steps.push(PathNode { parent: above, segment });
        steps.len() as u32
    }

    /// The pointer to a step, or to a field that is missing there, by its number from 1.
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

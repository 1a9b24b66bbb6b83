//! Where values stand: cheap to carry along with every value, and spelled out only where somebody asks.
//!
//! A file has ten thousand values and, mostly, nothing wrong with any of them. So a place is a few numbers, and the
//! pointer to it a number too: that of a step, which knows the step above it. A pointer is made of them when a complaint
//! needs one.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use super::Pass;
use crate::tree::{Member, Node, child};

/// Where a value stands, or should stand.
///
/// Invariant: made for the pass that it is asked with; a file has at most 1 MiB, so that its bytes fit into 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    /// The last step to it; 0 is the document itself.
    step: u32,
    /// The value; of a missing one, where its parent begins.
    span: Bytes,
    /// The key that leads to it; the value where no key does.
    key: Bytes,
}

/// A range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bytes {
    start: u32,
    end: u32,
}

impl Bytes {
    fn of(range: &Range<usize>) -> Bytes {
        Bytes { start: range.start as u32, end: range.end as u32 }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn to_word(self) -> u64 {
        u64::from(self.start) << 32 | u64::from(self.end)
    }

    fn of_word(word: u64) -> Bytes {
        Bytes { start: (word >> 32) as u32, end: word as u32 }
    }
}

impl At {
    /// The place of a document's root.
    pub(crate) fn root(node: &Node) -> At {
        At { step: 0, span: Bytes::of(&node.span), key: Bytes::of(&node.head()) }
    }

    /// The place of an item of a list.
    pub(crate) fn item(self, index: usize, node: &Node, pass: &Pass) -> At {
        let step = pass.ways.go(self.step, Segment::Index(index as u32));
        At { step, span: Bytes::of(&node.span), key: Bytes::of(&node.head()) }
    }

    /// The place of a member of a mapping.
    pub(crate) fn member(self, member: &Member, pass: &Pass) -> At {
        let Member { key, value } = member;
        // A key with nothing behind it has no value to point at.
        let span = if value.span.is_empty() { &key.span } else { &value.span };
        let step = pass.ways.go(self.step, Segment::Key(Rc::clone(&key.text)));
        At { step, span: Bytes::of(span), key: Bytes::of(&key.span) }
    }

    /// The place where `key` is missing.
    pub(crate) fn missing(self, key: &'static str, pass: &Pass) -> At {
        At { step: pass.ways.go(self.step, Segment::Missing(key)), span: self.key, key: self.key }
    }

    /// The same place, pointed at by its key.
    pub(crate) fn at_key(self) -> At {
        At { span: self.key, ..self }
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
    pub(crate) fn pointer(&self, pass: &Pass) -> String {
        pass.ways.pointer(self.step)
    }

    /// The place as numbers, which is what serde carries, and half a word of the caller's.
    pub(super) fn to_words(self, other: u32) -> [u64; 3] {
        let At { step, span, key } = self;
        [u64::from(other) << 32 | u64::from(step), span.to_word(), key.to_word()]
    }

    /// The place that these numbers are, and the caller's half word.
    pub(super) fn of_words([step, span, key]: [u64; 3]) -> (At, u32) {
        let at = At { step: step as u32, span: Bytes::of_word(span), key: Bytes::of_word(key) };
        (at, (step >> 32) as u32)
    }
}

/// The steps to all places that were looked at.
#[derive(Debug, Default)]
pub(super) struct Ways(RefCell<Vec<Step>>);

#[derive(Debug)]
struct Step {
    above: u32,
    segment: Segment,
}

#[derive(Debug)]
enum Segment {
    Key(Rc<str>),
    Missing(&'static str),
    Index(u32),
}

impl Ways {
    /// The number of the step from `above` on.
    fn go(&self, above: u32, segment: Segment) -> u32 {
        let mut steps = self.0.borrow_mut();
        steps.push(Step { above, segment });
        steps.len() as u32
    }

    fn pointer(&self, last: u32) -> String {
        let steps = self.0.borrow();
        let above = |it: u32| (it as usize).checked_sub(1).map(|at| &steps[at]);
        let mut way: Vec<_> = std::iter::successors(above(last), |it| above(it.above)).collect();
        way.reverse();
        way.into_iter().fold(String::new(), |res, it| match &it.segment {
            Segment::Key(key) => child(&res, key),
            Segment::Missing(key) => child(&res, key),
            Segment::Index(index) => child(&res, &index.to_string()),
        })
    }
}

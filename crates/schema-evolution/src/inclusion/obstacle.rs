//! A part of an inclusion that could not be proven.

use std::rc::Rc;

use serde_json::Value;

use super::left::{Left, Site, location};
use crate::document::Node;

/// Identifies a comparison: the left schemas and types, and the right schema.
pub(super) type Key = (Vec<usize>, u8, usize, Descriptions);

/// What an obstacle is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A value may be accepted on the left and refused on the right.
    Refused,
    /// The right schema names a key that the left one accepts as unknown.
    Added,
    /// The left schema describes a key that the right one does not read.
    Ignored,
    /// A key has another default.
    Default,
    /// The obstacles of an earlier comparison of the same schemas.
    Repeated(Key),
}

/// A part of an inclusion that could not be proven.
#[derive(Clone)]
pub(crate) struct Obstacle<'a> {
    pub kind: Kind,
    pub keyword: String,
    /// The values of the keyword on both sides.
    pub values: (Option<&'a Value>, Option<&'a Value>),
    /// The schema of the left side that has the keyword, or the first one.
    pub(super) source: Option<Node<'a>>,
    pub(super) right: Node<'a>,
    pub site: Site<'a>,
    /// Other locations with the same schemas.
    pub others: Vec<Site<'a>>,
    pub left: Rc<Left<'a>>,
    /// Values for the location that the right side may refuse.
    pub samples: Vec<Value>,
    /// The size of a text, array or object that the right side may refuse.
    pub size: Option<usize>,
}

impl Obstacle<'_> {
    pub(crate) fn location(&self) -> String {
        location(&self.site)
    }

    /// A JSON pointer to the schema on the left side.
    pub(crate) fn left_pointer(&self) -> String {
        self.source.map_or_else(String::new, |it| it.pointer())
    }

    /// A JSON pointer to the keyword on the right side, or to the schema if it has no such keyword.
    pub(crate) fn right_pointer(&self) -> String {
        let keyword = self.right.get(&self.keyword).map(|_| format!("/{}", self.keyword));
        self.right.pointer() + &keyword.unwrap_or_default()
    }
}

/// Whether keys that lose their description are obstacles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Descriptions {
    /// A key of the left side must be described on the right side.
    Needed,
    /// Unknown keys are accepted.
    Optional,
}

//! A part of an inclusion that could not be proven.

use std::rc::Rc;

use serde_json::Value;

use super::conjunction::{Conjunction, Location, location_text};
use crate::document::Node;
use crate::keyword::TypeSet;

/// Identifies a comparison of a conjunction with a schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ComparisonKey {
    /// The addresses of the left schemas, in order.
    pub left: Vec<usize>,
    /// The types that the left side allows.
    pub left_types: TypeSet,
    /// The address of the right schema.
    pub right: usize,
    pub descriptions: KeyDescriptions,
}

/// The kind of an obstacle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObstacleKind {
    /// A value may be accepted on the left and refused on the right.
    Refused,
    /// The right schema names a key that the left one accepts as unknown.
    Added,
    /// The left schema describes a key that the right one does not read.
    Ignored,
    /// A key has another default.
    Default,
    /// The obstacles of an earlier comparison of the same schemas.
    Repeated(ComparisonKey),
}

/// A part of an inclusion that could not be proven.
#[derive(Clone)]
pub(crate) struct Obstacle<'a> {
    pub kind: ObstacleKind,
    /// The keyword of the right side that is not proven.
    pub keyword: String,
    /// The values of the keyword, the left one first.
    pub values: (Option<&'a Value>, Option<&'a Value>),
    /// The schema of the left side that has the keyword, or the first one.
    pub(super) source: Option<Node<'a>>,
    /// The schema of the right side.
    pub(super) right: Node<'a>,
    /// The location of the values that the obstacle is about.
    pub location: Location<'a>,
    /// Other locations with the same schemas.
    pub other_locations: Vec<Location<'a>>,
    /// The schemas that a value at the location satisfies on the left side.
    pub left: Rc<Conjunction<'a>>,
    /// Values for the location that the right side may refuse.
    pub samples: Vec<Value>,
    /// The size of a text, array or object that the right side may refuse.
    pub size: Option<usize>,
}

impl Obstacle<'_> {
    pub(crate) fn location_text(&self) -> String {
        location_text(&self.location)
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

/// Whether each key that the left side describes needs a description on the right side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyDescriptions {
    /// A key without a description on the right side is an obstacle.
    Required,
    /// Such a key is no obstacle.
    Optional,
}

//! Two schemas that are compared at a location.

use std::rc::Rc;

use super::conjunction::{Conjunction, Location, LocationNode, LocationStep};
use super::obstacle::{Obstacle, ObstacleKind};
use crate::document::Node;

/// The two sides of a comparison, and the location of the compared values.
#[derive(Clone)]
pub(super) struct Pair<'a> {
    pub left: Rc<Conjunction<'a>>,
    pub right: Node<'a>,
    pub location: Location<'a>,
}

impl<'a> Pair<'a> {
    /// A comparison of another left side with the same right side.
    pub(super) fn with_left(&self, left: Conjunction<'a>) -> Self {
        Self { left: Rc::new(left), ..self.clone() }
    }

    /// A comparison of the same left side with another right side.
    pub(super) fn with_right(&self, right: Node<'a>) -> Self {
        Self { right, ..self.clone() }
    }

    /// The location of a part of the value.
    pub(super) fn part_location(&self, step: LocationStep) -> Location<'a> {
        Some(Rc::new(LocationNode { left: Rc::clone(&self.left), step, parent: self.location.clone() }))
    }

    /// The same schemas at the location of a part, for an obstacle that concerns the part.
    pub(super) fn at_part(&self, step: LocationStep) -> Self {
        Self { location: self.part_location(step), ..self.clone() }
    }

    /// An obstacle of this comparison.
    pub(super) fn obstacle(&self, kind: ObstacleKind, keyword: &str) -> Obstacle<'a> {
        let nodes = &self.left.nodes;
        let source = nodes.iter().find(|it| it.get(keyword).is_some()).or(nodes.first());
        Obstacle {
            kind,
            keyword: keyword.to_owned(),
            values: (source.and_then(|it| it.get(keyword)), self.right.get(keyword)),
            source: source.copied(),
            right: self.right,
            location: self.location.clone(),
            other_locations: Vec::new(),
            left: Rc::clone(&self.left),
            samples: Vec::new(),
            size: None,
        }
    }
}

//! Two schemas that are compared at a location.

use std::rc::Rc;

use super::left::{Frame, Left, Site, Step};
use super::obstacle::{Kind, Obstacle};
use crate::document::Node;

/// The two sides of a comparison, and the location of the compared values.
#[derive(Clone)]
pub(super) struct Pair<'a> {
    pub left: Rc<Left<'a>>,
    pub right: Node<'a>,
    pub site: Site<'a>,
}

impl<'a> Pair<'a> {
    /// Another left side at the same location.
    pub(super) fn with_left(&self, left: Left<'a>) -> Self {
        Self { left: Rc::new(left), ..self.clone() }
    }

    /// Another right side at the same location.
    pub(super) fn with_right(&self, right: Node<'a>) -> Self {
        Self { right, ..self.clone() }
    }

    /// The location of a part of the value.
    pub(super) fn site_of(&self, step: Step) -> Site<'a> {
        Some(Rc::new(Frame { left: Rc::clone(&self.left), step, parent: self.site.clone() }))
    }

    /// The same schemas at the location of a part, for an obstacle that concerns the part.
    pub(super) fn at(&self, step: Step) -> Self {
        Self { site: self.site_of(step), ..self.clone() }
    }

    pub(super) fn obstacle(&self, kind: Kind, keyword: &str) -> Obstacle<'a> {
        let nodes = &self.left.nodes;
        let source = nodes.iter().find(|it| it.get(keyword).is_some()).or(nodes.first());
        Obstacle {
            kind,
            keyword: keyword.to_owned(),
            values: (source.and_then(|it| it.get(keyword)), self.right.get(keyword)),
            source: source.copied(),
            right: self.right,
            site: self.site.clone(),
            others: Vec::new(),
            left: Rc::clone(&self.left),
            samples: Vec::new(),
            size: None,
        }
    }
}

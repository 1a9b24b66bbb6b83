//! Items of arrays.

use std::rc::Rc;

use serde_json::Value;

use super::left::{Left, Site, Step, has_applicators, items};
use super::obstacle::{Kind, Obstacle};
use super::prover::Prover;
use crate::document::Node;

impl<'a> Prover<'a> {
    pub(super) fn arrays(
        &mut self,
        left: &Rc<Left<'a>>,
        right: &Node<'a>,
        site: &Site<'a>,
    ) -> Vec<Obstacle<'a>> {
        let (prefix, rest) = items(right);
        let mut res = Vec::new();
        let positions = left.prefix_length().max(prefix.len());
        for index in 0..positions {
            if let Some(schema) = prefix.get(index).or(rest.as_ref()) {
                res.extend(self.part(left, Step::Index(index), left.item(index), *schema, site));
            }
        }
        if let Some(rest) = rest {
            res.extend(self.part(left, Step::Index(positions), left.item(positions), rest, site));
        }
        res.extend(self.contains(left, right, site));
        if right.get("unevaluatedItems").is_some_and(|it| it != &Value::Bool(true))
            && (has_applicators(right) || right.get("contains").is_some())
        {
            res.push(self.obstacle(Kind::Refused, "unevaluatedItems", left, right, site));
        }
        res
    }

    fn contains(&mut self, left: &Rc<Left<'a>>, right: &Node<'a>, site: &Site<'a>) -> Vec<Obstacle<'a>> {
        let Some(wanted) = right.child("contains") else { return Vec::new() };
        let counts = |it: &Node<'a>| (it.get("minContains").cloned(), it.get("maxContains").cloned());
        let sources: Vec<Node<'a>> = left.nodes.clone();
        for source in sources {
            let Some(own) = source.child("contains") else { continue };
            if counts(&source) != counts(right) {
                continue;
            }
            let is_exact = self.identity.of(&own, &wanted);
            let is_plain = counts(right) == (None, None);
            if is_exact || (is_plain && self.part(left, Step::Index(0), vec![own], wanted, site).is_empty()) {
                return Vec::new();
            }
        }
        vec![self.obstacle(Kind::Refused, "contains", left, right, site)]
    }
}

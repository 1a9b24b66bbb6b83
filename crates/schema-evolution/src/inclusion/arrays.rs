//! Items of arrays.

use serde_json::Value;

use super::left::{Step, has_applicators, items};
use super::obstacle::{Kind, Obstacle};
use super::pair::Pair;
use super::prover::Prover;
use crate::document::Node;

impl<'a> Prover<'a> {
    pub(super) fn arrays(&mut self, pair: &Pair<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        let (prefix, rest) = items(right);
        let mut res = Vec::new();
        let positions = left.prefix_length().max(prefix.len());
        for index in 0..positions {
            if let Some(schema) = prefix.get(index).or(rest.as_ref()) {
                res.extend(self.part(pair, Step::Index(index), left.item(index), *schema));
            }
        }
        if let Some(rest) = rest {
            res.extend(self.part(pair, Step::Index(positions), left.item(positions), rest));
        }
        res.extend(self.contains(pair));
        if right.get("unevaluatedItems").is_some_and(|it| it != &Value::Bool(true))
            && (has_applicators(right) || right.get("contains").is_some())
        {
            res.push(pair.obstacle(Kind::Refused, "unevaluatedItems"));
        }
        res
    }

    fn contains(&mut self, pair: &Pair<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        let Some(wanted) = right.child("contains") else { return Vec::new() };
        let counts = |it: &Node<'a>| (it.get("minContains").cloned(), it.get("maxContains").cloned());
        for source in &left.nodes {
            let Some(own) = source.child("contains") else { continue };
            if counts(source) != counts(right) {
                continue;
            }
            let is_exact = self.identity.of(&own, &wanted);
            let is_plain = counts(right) == (None, None);
            if is_exact || (is_plain && self.part(pair, Step::Index(0), vec![own], wanted).is_empty()) {
                return Vec::new();
            }
        }
        vec![pair.obstacle(Kind::Refused, "contains")]
    }
}

//! Items of arrays.

use serde_json::Value;

use super::conjunction::{LocationStep, has_applicators, item_schemas};
use super::obstacle::{Obstacle, ObstacleKind};
use super::pair::Pair;
use super::prover::Prover;
use crate::document::Node;

impl<'a> Prover<'a> {
    /// Compares the items of arrays.
    pub(super) fn compare_arrays(&mut self, pair: &Pair<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        let (prefix, rest) = item_schemas(right);
        let mut res = Vec::new();
        let positions = left.prefix_length().max(prefix.len());
        for index in 0..positions {
            if let Some(schema) = prefix.get(index).or(rest.as_ref()) {
                res.extend(self.compare_part(pair, LocationStep::Index(index), left.item(index), *schema));
            }
        }
        if let Some(rest) = rest {
            res.extend(self.compare_part(pair, LocationStep::Index(positions), left.item(positions), rest));
        }
        res.extend(self.compare_contains(pair));
        if right.get("unevaluatedItems").is_some_and(|it| it != &Value::Bool(true))
            && (has_applicators(right) || right.get("contains").is_some())
        {
            res.push(pair.obstacle(ObstacleKind::Refused, "unevaluatedItems"));
        }
        res
    }

    /// Compares `contains` with its bounds.
    fn compare_contains(&mut self, pair: &Pair<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        let Some(wanted) = right.child("contains") else { return Vec::new() };
        let counts = |it: &Node<'a>| (it.get("minContains").cloned(), it.get("maxContains").cloned());
        for source in &left.nodes {
            let Some(own) = source.child("contains") else { continue };
            if counts(source) != counts(right) {
                continue;
            }
            let is_exact = self.equality.are_equal(&own, &wanted);
            let is_plain = counts(right) == (None, None);
            if is_exact
                || (is_plain && self.compare_part(pair, LocationStep::Index(0), vec![own], wanted).is_empty())
            {
                return Vec::new();
            }
        }
        vec![pair.obstacle(ObstacleKind::Refused, "contains")]
    }
}

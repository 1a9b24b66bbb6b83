//! Keys that a schema describes, and keys that lose their description.

use std::collections::HashSet;

use serde_json::Value;

use super::conjunction::{Conjunction, LocationStep};
use super::obstacle::{KeyDescriptions, Obstacle, ObstacleKind};
use super::pair::Pair;
use super::prover::{Prover, Scope};
use crate::document::Node;
use crate::keyword::{PatternMatch, accepts_all, match_pattern};
use crate::samples::sample_of_pattern;

/// All schemas that may apply to the same value, without the skipped lists of alternatives.
fn schemas_in_place<'a>(roots: &[Node<'a>], skipped: &[usize]) -> Vec<Node<'a>> {
    let mut open: Vec<Node<'a>> = roots.to_vec();
    let mut seen = HashSet::new();
    let mut res = Vec::new();
    while let Some(node) = open.pop() {
        if !seen.insert(node.id()) {
            continue;
        }
        open.extend(node.target());
        for keyword in ["allOf", "anyOf", "oneOf"] {
            if node.child(keyword).is_some_and(|it| !skipped.contains(&it.id())) {
                open.extend(node.child_list(keyword));
            }
        }
        open.extend(["if", "then", "else"].into_iter().filter_map(|it| node.child(it)));
        for keyword in ["dependentSchemas", "dependencies"] {
            open.extend(node.child_map(keyword).into_iter().map(|it| it.1));
        }
        res.push(node);
    }
    res
}

/// The schema of all keys that are not named. `None` without one, or if it is `false`.
fn open_rest_schema<'a>(node: &Node<'a>) -> Option<&'a Value> {
    let keywords = ["additionalProperties", "unevaluatedProperties"];
    keywords.into_iter().find_map(|it| node.get(it).filter(|it| *it != &Value::Bool(false)))
}

/// Whether one of the schemas describes a key, by name, by pattern or as the rest.
fn describe_key(nodes: &[Node<'_>], key: &str) -> bool {
    nodes.iter().any(|node| {
        let is_named = node.get("properties").and_then(|it| it.get(key)).is_some();
        let mut patterns = node.child_map("patternProperties").into_iter();
        is_named
            || patterns.any(|it| match_pattern(it.0, key) != PatternMatch::No)
            || open_rest_schema(node).is_some()
    })
}

/// Whether some schema of the left side describes a key. Unknown parts describe every key.
pub(super) fn is_described(left: &Conjunction<'_>, key: &str) -> bool {
    left.is_partial || describe_key(&schemas_in_place(&left.nodes, &left.chosen), key)
}

impl<'a> Prover<'a> {
    /// The keys of the left side that no schema of the right side describes.
    pub(super) fn find_ignored_keys(&mut self, pair: &Pair<'a>, scope: &Scope<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        if self.descriptions == KeyDescriptions::Optional || left.types & crate::keyword::OBJECT == 0 {
            return Vec::new();
        }
        // An object that is refused is not read either, and the obstacle is found already.
        let accepted = Conjunction::new(vec![*right]);
        if accepted.is_impossible || accepted.types & crate::keyword::OBJECT == 0 {
            return Vec::new();
        }
        let readers = [std::slice::from_ref(&scope.root), &scope.chosen].concat();
        let readers = schemas_in_place(&readers, &scope.skipped);
        let own = schemas_in_place(&left.nodes, &left.chosen);
        let mut res = Vec::new();
        if left.is_partial {
            res.push(pair.obstacle(ObstacleKind::Refused, "$ref"));
        }
        let mut note = |kind: ObstacleKind, keyword: &str, step: LocationStep, schemas: Vec<Node<'a>>| {
            let inner = Conjunction::new(schemas);
            if !inner.is_empty() {
                res.push(pair.at_part(step).with_left(inner).obstacle(kind, keyword));
            }
        };
        let mut seen = HashSet::new();
        for (name, schema) in own.iter().flat_map(|it| it.child_map("properties")) {
            if seen.insert(name) && !describe_key(&readers, name) {
                let mut schemas = left.property(name);
                schemas.push(schema);
                note(ObstacleKind::Ignored, "properties", LocationStep::Key(name.to_owned()), schemas);
            }
        }
        let is_open = readers.iter().any(|it| open_rest_schema(it).is_some());
        if is_open {
            return res;
        }
        for (pattern, schema) in own.iter().flat_map(|it| it.child_map("patternProperties")) {
            let same =
                |it: &Node<'a>| it.get("patternProperties").is_some_and(|it| it.get(pattern).is_some());
            if !readers.iter().any(same) {
                let sample = sample_of_pattern(pattern).unwrap_or_else(|| "x".to_owned());
                note(ObstacleKind::Ignored, "patternProperties", LocationStep::AnyKey(sample), vec![schema]);
            }
        }
        // Without a schema, other keys are accepted as they are by one that accepts everything.
        let rest = own.iter().find(|it| open_rest_schema(it).is_some_and(|rest| !accepts_all(Some(rest))));
        if let Some(node) = rest {
            let step = LocationStep::AnyKey("unlisted-key".to_owned());
            let schemas = super::conjunction::rest_schema(node).into_iter().collect();
            note(ObstacleKind::Ignored, "additionalProperties", step, schemas);
        }
        res
    }
}

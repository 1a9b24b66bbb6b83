//! Keys that a schema describes, and keys that lose their description.

use std::collections::HashSet;

use serde_json::Value;

use super::left::{Left, Step};
use super::obstacle::{Descriptions, Kind, Obstacle};
use super::pair::Pair;
use super::prover::{Prover, Scope};
use crate::document::Node;
use crate::keyword::matches;
use crate::samples::sample_of_pattern;

/// All schemas that may apply to the same value, without the skipped lists of alternatives.
fn in_place<'a>(roots: &[Node<'a>], skipped: &[usize]) -> Vec<Node<'a>> {
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
                open.extend(node.list(keyword));
            }
        }
        open.extend(["if", "then", "else"].into_iter().filter_map(|it| node.child(it)));
        for keyword in ["dependentSchemas", "dependencies"] {
            open.extend(node.map(keyword).into_iter().map(|it| it.1));
        }
        res.push(node);
    }
    res
}

/// A schema of all keys that are not named. `None` without one, or if it is `false`.
fn open_rest<'a>(node: &Node<'a>) -> Option<&'a Value> {
    let keywords = ["additionalProperties", "unevaluatedProperties"];
    keywords.into_iter().find_map(|it| node.get(it).filter(|it| *it != &Value::Bool(false)))
}

fn describes(nodes: &[Node<'_>], key: &str) -> bool {
    nodes.iter().any(|node| {
        let named = node.get("properties").and_then(|it| it.get(key)).is_some();
        let mut patterns = node.map("patternProperties").into_iter();
        named || patterns.any(|it| matches(it.0, key) != Some(false)) || open_rest(node).is_some()
    })
}

/// Whether some schema of the left side describes a key. Unknown parts describe every key.
pub(super) fn is_described(left: &Left<'_>, key: &str) -> bool {
    left.is_partial || describes(&in_place(&left.nodes, &left.chosen), key)
}

impl<'a> Prover<'a> {
    /// The keys of the left side that no schema of the right side describes.
    pub(super) fn ignored_keys(&mut self, pair: &Pair<'a>, scope: &Scope<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        if self.descriptions == Descriptions::Optional || left.types & crate::keyword::OBJECT == 0 {
            return Vec::new();
        }
        // An object that is refused is not read either, and the obstacle is found already.
        let accepted = Left::of(vec![*right]);
        if accepted.is_impossible || accepted.types & crate::keyword::OBJECT == 0 {
            return Vec::new();
        }
        let readers = [std::slice::from_ref(&scope.root), &scope.chosen].concat();
        let readers = in_place(&readers, &scope.skipped);
        let own = in_place(&left.nodes, &left.chosen);
        let mut res = Vec::new();
        if left.is_partial {
            res.push(pair.obstacle(Kind::Refused, "$ref"));
        }
        let mut note = |kind: Kind, keyword: &str, step: Step, schemas: Vec<Node<'a>>| {
            let inner = Left::of(schemas);
            if !inner.is_empty() {
                res.push(pair.at(step).with_left(inner).obstacle(kind, keyword));
            }
        };
        let mut seen = HashSet::new();
        for (name, schema) in own.iter().flat_map(|it| it.map("properties")) {
            if seen.insert(name) && !describes(&readers, name) {
                let mut schemas = left.property(name);
                schemas.push(schema);
                note(Kind::Ignored, "properties", Step::Key(name.to_owned()), schemas);
            }
        }
        let is_open = readers.iter().any(|it| open_rest(it).is_some());
        if is_open {
            return res;
        }
        for (pattern, schema) in own.iter().flat_map(|it| it.map("patternProperties")) {
            let same =
                |it: &Node<'a>| it.get("patternProperties").is_some_and(|it| it.get(pattern).is_some());
            if !readers.iter().any(same) {
                let sample = sample_of_pattern(pattern).unwrap_or_else(|| "x".to_owned());
                note(Kind::Ignored, "patternProperties", Step::AnyKey(sample), vec![schema]);
            }
        }
        let rests: Vec<&Node<'a>> = own.iter().filter(|it| open_rest(it).is_some()).collect();
        if let Some(node) = rests.first() {
            let is_any = rests.iter().all(|it| crate::keyword::accepts_all(open_rest(it)));
            // A schema that accepts everything may also stand for keys that nothing reads.
            let kind = if is_any { Kind::Refused } else { Kind::Ignored };
            let step = Step::AnyKey("unlisted-key".to_owned());
            note(kind, "additionalProperties", step, super::left::rest(node).into_iter().collect());
        }
        res
    }
}

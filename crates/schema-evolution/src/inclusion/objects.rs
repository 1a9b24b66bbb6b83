//! Keys of objects.

use std::rc::Rc;

use serde_json::{Value, json};

use super::conjunction::{Conjunction, LocationStep, has_applicators, rest_schema};
use super::obstacle::{Obstacle, ObstacleKind};
use super::pair::Pair;
use super::prover::{Prover, Scope};
use crate::document::Node;
use crate::keyword::{self, PatternMatch, string_items};
use crate::samples::sample_of_pattern;

impl<'a> Prover<'a> {
    /// Compares the keys of objects.
    pub(super) fn compare_objects(&mut self, pair: &Pair<'a>, scope: &Scope<'a>) -> Vec<Obstacle<'a>> {
        let mut res = missing_required_keys(pair);
        res.extend(self.compare_named_keys(pair));
        res.extend(self.compare_other_keys(pair));
        res.extend(self.compare_key_names(pair));
        res.extend(self.compare_dependencies(pair, scope));
        if pair.right.get("unevaluatedProperties").is_some_and(|it| it != &Value::Bool(true))
            && has_applicators(&pair.right)
        {
            let mut obstacle = pair.obstacle(ObstacleKind::Refused, "unevaluatedProperties");
            obstacle.samples = vec![json!({ "unlisted-key": 1 }), json!({ "unlisted-key": "x" })];
            res.push(obstacle);
        }
        res
    }

    /// Compares the keys that the right schema names.
    fn compare_named_keys(&mut self, pair: &Pair<'a>) -> Vec<Obstacle<'a>> {
        let mut res = Vec::new();
        for (name, schema) in pair.right.child_map("properties") {
            let own = pair.left.property(name);
            let is_unknown = own.is_empty() && !super::described::is_described(&pair.left, name);
            if is_unknown {
                // Documents with unknown keys are not compared key by key: their authors were warned.
                let at = pair.at_part(LocationStep::Key(name.to_owned())).with_right(schema);
                res.push(at.obstacle(ObstacleKind::Added, "properties"));
                continue;
            }
            res.extend(self.find_changed_default(pair, name, schema));
            res.extend(self.compare_part(pair, LocationStep::Key(name.to_owned()), own, schema));
        }
        res
    }

    /// The obstacle of a key whose default differs.
    fn find_changed_default(&self, pair: &Pair<'a>, name: &str, right: Node<'a>) -> Option<Obstacle<'a>> {
        if self.descriptions == super::obstacle::KeyDescriptions::Optional {
            return None;
        }
        let named = pair.left.nodes.iter().filter_map(|it| it.child("properties")?.child(name));
        let stated = |it: Node<'a>| it.get("default").or_else(|| it.target()?.get("default"));
        let (before, after) = ({ named }.find_map(stated), stated(right));
        let text = |it: Option<&Value>| keyword::canonical(it.unwrap_or(&Value::Null));
        // A default of null is none.
        if text(before) == text(after) {
            return None;
        }
        let inner = Conjunction::new(pair.left.property(name));
        let at = pair.at_part(LocationStep::Key(name.to_owned()));
        let mut res = at.with_left(inner).with_right(right).obstacle(ObstacleKind::Default, "default");
        res.values = (before, after);
        Some(res)
    }

    /// Compares the keys that the right schema covers by pattern or as the rest.
    fn compare_other_keys(&mut self, pair: &Pair<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        let patterns = right.child_map("patternProperties");
        let named: Vec<&str> = right.child_map("properties").into_iter().map(|it| it.0).collect();
        let left_patterns: Vec<(&str, Node<'a>)> =
            left.nodes.iter().flat_map(|it| it.child_map("patternProperties")).collect();
        let mut res = Vec::new();
        for (pattern, schema) in &patterns {
            for name in left.names() {
                if keyword::match_pattern(pattern, name) != PatternMatch::No {
                    res.extend(self.compare_part(
                        pair,
                        LocationStep::Key(name.to_owned()),
                        left.property(name),
                        *schema,
                    ));
                }
            }
            let sample = sample_of_pattern(pattern).unwrap_or_else(|| "x".to_owned());
            let same: Vec<Node<'a>> =
                left_patterns.iter().filter(|it| it.0 == *pattern).map(|it| it.1).collect();
            // A key matches some patterns of the left side, or none.
            let mut cases = vec![same];
            if cases[0].is_empty() {
                cases = left_patterns.iter().map(|it| vec![it.1]).collect();
                cases.push(left.unnamed());
            }
            for own in cases {
                res.extend(self.compare_part(pair, LocationStep::AnyKey(sample.clone()), own, *schema));
            }
        }
        let Some(rest) = rest_schema(right) else { return res };
        let is_covered = |name: &str| {
            named.contains(&name)
                || patterns.iter().any(|it| keyword::match_pattern(it.0, name) == PatternMatch::Yes)
        };
        for name in left.names().into_iter().filter(|it| !is_covered(it)) {
            let own = left.property(name);
            if rest.value == &Value::Bool(false) {
                let inner = Conjunction::new(own);
                if !inner.is_empty() {
                    let at =
                        pair.at_part(LocationStep::Key(name.to_owned())).with_left(inner).with_right(rest);
                    res.push(at.obstacle(ObstacleKind::Refused, "properties"));
                }
                continue;
            }
            res.extend(self.compare_part(pair, LocationStep::Key(name.to_owned()), own, rest));
        }
        for (pattern, schema) in &left_patterns {
            // Keys of an equal pattern are covered by it.
            if !patterns.iter().any(|it| it.0 == *pattern) {
                let sample = sample_of_pattern(pattern).unwrap_or_else(|| "x".to_owned());
                res.extend(self.compare_part(pair, LocationStep::AnyKey(sample), vec![*schema], rest));
            }
        }
        let candidates = ["unlisted-key", "unlisted_key", "x-unlisted", "Unlisted", "u"].into_iter();
        let mut free = candidates.filter(|it| {
            !is_covered(it) && left.property(it).iter().all(|it| it.value != &Value::Bool(false))
        });
        let sample = free.next().unwrap_or("unlisted-key").to_owned();
        if rest.value == &Value::Bool(false) {
            let inner = Rc::new(Conjunction::new(left.unnamed()));
            if !inner.is_empty() {
                let mut obstacle = pair
                    .at_part(LocationStep::AnyKey(sample))
                    .obstacle(ObstacleKind::Refused, "additionalProperties");
                obstacle.left = inner;
                res.push(obstacle);
            }
            return res;
        }
        res.extend(self.compare_part(pair, LocationStep::AnyKey(sample), left.unnamed(), rest));
        res
    }

    /// Compares `propertyNames`.
    fn compare_key_names(&mut self, pair: &Pair<'a>) -> Vec<Obstacle<'a>> {
        let Some(wanted) = pair.right.child("propertyNames") else { return Vec::new() };
        let own: Vec<Node<'a>> = pair.left.nodes.iter().filter_map(|it| it.child("propertyNames")).collect();
        let mut left_names = Conjunction::new(own);
        left_names.types &= keyword::STRING;
        let scope = Scope { root: wanted, skipped: Vec::new(), chosen: Vec::new() };
        self.compare_bounded(
            &pair.at_part(LocationStep::Name).with_left(left_names).with_right(wanted),
            &scope,
            true,
        )
    }

    /// Compares the keywords that depend on a key.
    fn compare_dependencies(&mut self, pair: &Pair<'a>, scope: &Scope<'a>) -> Vec<Obstacle<'a>> {
        let mut res = Vec::new();
        let Pair { left, right, .. } = pair;
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            for (key, wanted) in right.child_map(keyword) {
                let own: Vec<Node<'a>> = left
                    .nodes
                    .iter()
                    .flat_map(|it| it.child_map(keyword))
                    .filter(|it| it.0 == key)
                    .map(|it| it.1)
                    .collect();
                let is_proven = match wanted.value {
                    Value::Array(_) => string_items(Some(wanted.value)).all(|name| {
                        let mut lists = own.iter().map(|it| it.value);
                        lists.any(|it| string_items(Some(it)).any(|own| own == name))
                            || left
                                .nodes
                                .iter()
                                .any(|it| string_items(it.get("required")).any(|own| own == name))
                    }),
                    _ => {
                        let schemas = own.into_iter().filter(|it| !it.value.is_array());
                        let dependent = pair.with_left(left.with(schemas)).with_right(wanted);
                        self.compare_bounded(&dependent, scope, false)
                            .iter()
                            .all(|it| it.kind == ObstacleKind::Added)
                    }
                };
                if !is_proven {
                    let mut obstacle = pair.obstacle(ObstacleKind::Refused, keyword);
                    obstacle.samples = vec![json!({ key: 1 }), json!({ key: "x" })];
                    res.push(obstacle);
                }
            }
        }
        res
    }
}

/// The obstacles of the keys that only the right schema requires.
fn missing_required_keys<'a>(pair: &Pair<'a>) -> Vec<Obstacle<'a>> {
    let has =
        |name: &str| pair.left.nodes.iter().any(|it| string_items(it.get("required")).any(|own| own == name));
    let missing = string_items(pair.right.get("required")).filter(|name| !has(name));
    let of = |name: &str| {
        let mut res =
            pair.at_part(LocationStep::Key(name.to_owned())).obstacle(ObstacleKind::Refused, "required");
        res.values = (None, None);
        res
    };
    missing.map(of).collect()
}

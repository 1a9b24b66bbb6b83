//! Inclusion of schemas: whether every value that one accepts is accepted by the other.
//!
//! The answer is a list of obstacles. An empty list is a proof. An obstacle is only a part of the proof that failed; a
//! witness shows whether it is real.

mod alternatives;
mod arrays;
pub(crate) mod conjunction;
mod described;
mod equality;
mod locations;
mod objects;
mod obstacle;
mod pair;
mod prover;
mod scalars;

pub(crate) use locations::MAX_LOCATIONS;
pub(crate) use obstacle::{KeyDescriptions, Obstacle, ObstacleKind};
pub(crate) use prover::{Prover, Scope};
pub(crate) use scalars::number_value;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::Value;

use crate::document::Node;
use crate::keyword::{is_annotation, is_definitions};
use conjunction::{Conjunction, Location, LocationStep, is_plain_reference};
use equality::{DefaultHandling, SchemaEquality};
use locations::FailedComparison;
use obstacle::ComparisonKey;
use pair::Pair;

/// The maximum depth of nested locations and in-place schemas.
const MAX_DEPTH: usize = 96;

/// The maximum number of comparisons of two schemas. Beyond it, the rest counts as not proven.
const MAX_STEPS: usize = 60_000;

/// Finds all obstacles to the inclusion of `left` in `right`: to the proof that `right` accepts what `left` accepts.
pub(crate) fn obstacles<'a>(
    left: Node<'a>,
    right: Node<'a>,
    descriptions: KeyDescriptions,
) -> Vec<Obstacle<'a>> {
    let mut prover = Prover {
        descriptions,
        equality: SchemaEquality::new(match descriptions {
            KeyDescriptions::Required => DefaultHandling::Compare,
            KeyDescriptions::Optional => DefaultHandling::Ignore,
        }),
        equality_without_defaults: SchemaEquality::new(DefaultHandling::Ignore),
        in_progress: Vec::new(),
        lowest_assumption: usize::MAX,
        proven: HashSet::new(),
        failed: HashMap::new(),
        depth: 0,
        steps: 0,
        is_splitting: false,
    };
    let found = prover.compare_location(vec![left], right, None);
    locations::expand(found, &prover.failed)
}

impl<'a> Prover<'a> {
    /// Compares the schemas that apply to the values at one location.
    fn compare_location(
        &mut self,
        nodes: Vec<Node<'a>>,
        mut right: Node<'a>,
        location: Location<'a>,
    ) -> Vec<Obstacle<'a>> {
        // Comparisons of the same targets are remembered, however many references there are.
        for _ in 0..MAX_DEPTH {
            match right.target().filter(|_| is_plain_reference(&right)) {
                Some(target) => right = target,
                None => break,
            }
        }
        if right.value == &Value::Bool(true) || nodes.iter().any(|it| self.equality.are_equal(it, &right)) {
            return Vec::new();
        }
        let pair = Pair { left: Rc::new(Conjunction::new(nodes)), right, location };
        let scope = Scope { root: right, skipped: Vec::new(), chosen: Vec::new() };
        self.compare_bounded(&pair, &scope, true)
    }

    /// Compares the two sides within the bounds. If `is_location`, the pair is a whole location and not a part of one:
    /// it is compared once, and its result is kept.
    fn compare_bounded(
        &mut self,
        pair: &Pair<'a>,
        scope: &Scope<'a>,
        is_location: bool,
    ) -> Vec<Obstacle<'a>> {
        let Pair { left, right, location } = pair;
        if left.is_empty() {
            return Vec::new();
        }
        let mut ids: Vec<usize> = left.nodes.iter().map(Node::id).collect();
        ids.sort_unstable();
        let key = ComparisonKey {
            left: ids,
            left_types: left.types,
            right: right.id(),
            descriptions: self.descriptions,
        };
        if is_location {
            if self.proven.contains(&key) {
                return Vec::new();
            }
            if self.failed.contains_key(&key) {
                return vec![pair.obstacle(ObstacleKind::Repeated(key), "")];
            }
            if let Some(at) = self.in_progress.iter().position(|it| *it == key) {
                self.lowest_assumption = self.lowest_assumption.min(at);
                return Vec::new();
            }
        }
        self.steps += 1;
        if self.depth >= MAX_DEPTH || self.steps > MAX_STEPS {
            return vec![pair.obstacle(ObstacleKind::Refused, "(limit)")];
        }
        self.depth += 1;
        let index = self.in_progress.len();
        if is_location {
            self.in_progress.push(key.clone());
        }
        let mut res = self.compare_keywords(pair, scope);
        if is_location {
            res.extend(self.find_ignored_keys(pair, scope));
            self.in_progress.truncate(index);
            if res.is_empty() {
                if self.lowest_assumption >= index {
                    self.lowest_assumption = usize::MAX;
                    self.proven.insert(key);
                }
            } else {
                self.failed
                    .insert(key.clone(), FailedComparison { location: location.clone(), obstacles: res });
                res = vec![pair.obstacle(ObstacleKind::Repeated(key), "")];
            }
        }
        self.depth -= 1;
        res
    }

    /// Compares the left side with the right schema, keyword by keyword.
    fn compare_keywords(&mut self, pair: &Pair<'a>, scope: &Scope<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        let Some(keywords) = right.keywords() else {
            return match right.value {
                Value::Bool(true) => Vec::new(),
                _ => vec![pair.obstacle(ObstacleKind::Refused, "false")],
            };
        };
        if left.is_empty() || left.nodes.iter().any(|it| self.equality.are_equal(it, right)) {
            return Vec::new();
        }
        let mut res = Vec::new();
        if right.reference().is_some() {
            match right.target() {
                Some(target) => res.extend(self.compare_bounded(&pair.with_right(target), scope, false)),
                None => res.push(pair.obstacle(ObstacleKind::Refused, "$ref")),
            }
            if right.document.reference_hides_siblings() {
                return res;
            }
        }
        for part in right.child_list("allOf") {
            res.extend(self.compare_bounded(&pair.with_right(part), scope, false));
        }
        res.extend(self.compare_scalars(pair));
        res.extend(self.compare_alternatives(pair, scope));
        res.extend(self.compare_conditions(pair, scope));
        if left.types & crate::keyword::OBJECT != 0 {
            res.extend(self.compare_objects(pair, scope));
        }
        if left.types & crate::keyword::ARRAY != 0 {
            res.extend(self.compare_arrays(pair));
        }
        let unknown = keywords.keys().filter(|it| !is_known(it));
        for keyword in unknown {
            let value = keywords.get(keyword);
            let same = left.nodes.iter().any(|it| it.get(keyword) == value);
            // The text of a dynamic reference does not identify its target.
            if !same || keyword == "$dynamicRef" || keyword == "$recursiveRef" {
                res.push(pair.obstacle(ObstacleKind::Refused, keyword));
            }
        }
        if self.has_only_added_keys(&res) {
            return res;
        }
        // A keyword of the right side may hold for each alternative of the left side.
        // Cases of cases would multiply.
        if self.is_splitting {
            return res;
        }
        let Some(cases) = alternatives::split_alternatives(left) else { return res };
        self.is_splitting = true;
        let mut found = Vec::new();
        for case in cases {
            found.extend(self.compare_bounded(&pair.with_left(case), scope, false));
        }
        self.is_splitting = false;
        if self.has_only_added_keys(&found) || self.count_obstacles(&found) <= self.count_obstacles(&res) {
            found
        } else {
            res
        }
    }

    /// Compares the schemas that apply to a part of the value.
    fn compare_part(
        &mut self,
        pair: &Pair<'a>,
        step: LocationStep,
        nodes: Vec<Node<'a>>,
        right: Node<'a>,
    ) -> Vec<Obstacle<'a>> {
        self.compare_location(nodes, right, pair.part_location(step))
    }
}

/// Whether a keyword is compared, or does not matter.
fn is_known(keyword: &str) -> bool {
    const COMPARED: &[&str] = &[
        "$ref",
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "if",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "required",
        "then",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    ];
    COMPARED.contains(&keyword) || is_annotation(keyword) || is_definitions(keyword)
}

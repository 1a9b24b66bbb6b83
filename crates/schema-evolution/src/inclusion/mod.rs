//! Inclusion of schemas: whether every value that one accepts is accepted by the other.
//!
//! The answer is a list of obstacles. An empty list is a proof. An obstacle is only a part of the proof that failed; a
//! witness shows whether it is real.

mod alternatives;
mod arrays;
mod described;
mod identity;
pub(crate) mod left;
mod objects;
mod obstacle;
mod pair;
mod places;
mod prover;
mod scalars;

pub(crate) use obstacle::{Descriptions, Kind, Obstacle};
pub(crate) use places::MAX_LOCATIONS;
pub(crate) use prover::{Prover, Scope};
pub(crate) use scalars::number as number_value;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::Value;

use crate::document::Node;
use crate::keyword::{is_annotation, is_definitions};
use identity::{Defaults, Identity};
use left::{Left, Site, Step, is_plain_reference};
use pair::Pair;
use places::Failed;

/// The depth of nested locations and in-place schemas.
const MAX_DEPTH: usize = 96;

/// The number of comparisons of two schemas. Beyond it, the rest counts as not proven.
const MAX_STEPS: usize = 60_000;

/// All obstacles to the inclusion of `left` in `right`.
pub(crate) fn obstacles<'a>(
    left: Node<'a>,
    right: Node<'a>,
    descriptions: Descriptions,
) -> Vec<Obstacle<'a>> {
    let mut prover = Prover {
        descriptions,
        identity: Identity::new(match descriptions {
            Descriptions::Needed => Defaults::Compared,
            Descriptions::Optional => Defaults::Ignored,
        }),
        validity: Identity::new(Defaults::Ignored),
        open: Vec::new(),
        lowest: usize::MAX,
        proven: HashSet::new(),
        failed: HashMap::new(),
        depth: 0,
        steps: 0,
        is_splitting: false,
    };
    let found = prover.location(vec![left], right, None);
    places::expand(found, &prover.failed)
}

impl<'a> Prover<'a> {
    /// Compares the schemas of one location.
    fn location(&mut self, nodes: Vec<Node<'a>>, mut right: Node<'a>, site: Site<'a>) -> Vec<Obstacle<'a>> {
        // Comparisons of the same targets are remembered, however many references there are.
        for _ in 0..MAX_DEPTH {
            match right.target().filter(|_| is_plain_reference(&right)) {
                Some(target) => right = target,
                None => break,
            }
        }
        if right.value == &Value::Bool(true) || nodes.iter().any(|it| self.identity.of(it, &right)) {
            return Vec::new();
        }
        let pair = Pair { left: Rc::new(Left::of(nodes)), right, site };
        let scope = Scope { root: right, skipped: Vec::new(), chosen: Vec::new() };
        self.guarded(&pair, &scope, true)
    }

    /// Compares two schemas, with the bounds and the memory of earlier comparisons.
    fn guarded(&mut self, pair: &Pair<'a>, scope: &Scope<'a>, is_location: bool) -> Vec<Obstacle<'a>> {
        let Pair { left, right, site } = pair;
        if left.is_empty() {
            return Vec::new();
        }
        let mut ids: Vec<usize> = left.nodes.iter().map(Node::id).collect();
        ids.sort_unstable();
        let key = (ids, left.types, right.id(), self.descriptions);
        if is_location {
            if self.proven.contains(&key) {
                return Vec::new();
            }
            if self.failed.contains_key(&key) {
                return vec![pair.obstacle(Kind::Repeated(key), "")];
            }
            if let Some(at) = self.open.iter().position(|it| *it == key) {
                self.lowest = self.lowest.min(at);
                return Vec::new();
            }
        }
        self.steps += 1;
        if self.depth >= MAX_DEPTH || self.steps > MAX_STEPS {
            return vec![pair.obstacle(Kind::Refused, "(limit)")];
        }
        self.depth += 1;
        let index = self.open.len();
        if is_location {
            self.open.push(key.clone());
        }
        let mut res = self.schema(pair, scope);
        if is_location {
            res.extend(self.ignored_keys(pair, scope));
            self.open.truncate(index);
            if res.is_empty() {
                if self.lowest >= index {
                    self.lowest = usize::MAX;
                    self.proven.insert(key);
                }
            } else {
                self.failed.insert(key.clone(), Failed { site: site.clone(), obstacles: res });
                res = vec![pair.obstacle(Kind::Repeated(key), "")];
            }
        }
        self.depth -= 1;
        res
    }

    /// Compares with one schema of the right side, keyword by keyword.
    fn schema(&mut self, pair: &Pair<'a>, scope: &Scope<'a>) -> Vec<Obstacle<'a>> {
        let Pair { left, right, .. } = pair;
        let Some(keywords) = right.keywords() else {
            return match right.value {
                Value::Bool(true) => Vec::new(),
                _ => vec![pair.obstacle(Kind::Refused, "false")],
            };
        };
        if left.is_empty() || left.nodes.iter().any(|it| self.identity.of(it, right)) {
            return Vec::new();
        }
        let mut res = Vec::new();
        if right.reference().is_some() {
            match right.target() {
                Some(target) => res.extend(self.guarded(&pair.with_right(target), scope, false)),
                None => res.push(pair.obstacle(Kind::Refused, "$ref")),
            }
            if right.document.reference_hides_siblings() {
                return res;
            }
        }
        for part in right.list("allOf") {
            res.extend(self.guarded(&pair.with_right(part), scope, false));
        }
        res.extend(self.scalars(pair));
        res.extend(self.alternatives(pair, scope));
        res.extend(self.conditions(pair, scope));
        if left.types & crate::keyword::OBJECT != 0 {
            res.extend(self.objects(pair, scope));
        }
        if left.types & crate::keyword::ARRAY != 0 {
            res.extend(self.arrays(pair));
        }
        let unknown = keywords.keys().filter(|it| !is_known(it));
        for keyword in unknown {
            let value = keywords.get(keyword);
            let same = left.nodes.iter().any(|it| it.get(keyword) == value);
            // The text of a dynamic reference does not identify its target.
            if !same || keyword == "$dynamicRef" || keyword == "$recursiveRef" {
                res.push(pair.obstacle(Kind::Refused, keyword));
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
            found.extend(self.guarded(&pair.with_left(case), scope, false));
        }
        self.is_splitting = false;
        if self.has_only_added_keys(&found) || self.size(&found) <= self.size(&res) { found } else { res }
    }

    /// Compares the schemas of a part of the value.
    fn part(
        &mut self,
        pair: &Pair<'a>,
        step: Step,
        nodes: Vec<Node<'a>>,
        right: Node<'a>,
    ) -> Vec<Obstacle<'a>> {
        self.location(nodes, right, pair.site_of(step))
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

//! Equality of schemas apart from annotations, through references.

use std::collections::HashSet;

use serde_json::Value;

use crate::document::Node;
use crate::keyword::{canonical, is_annotation, is_definitions};

/// Decides whether two schemas mean the same. It never claims equality of different schemas.
pub(crate) struct Identity {
    defaults: Defaults,
    equal: HashSet<(usize, usize)>,
    different: HashSet<(usize, usize)>,
    /// Pairs of references that are held for equal until the end of the current decision.
    assumed: HashSet<(usize, usize)>,
    steps: usize,
}

/// A bound on the work of all decisions. Beyond it, schemas count as different.
const MAX_STEPS: usize = 5_000_000;

/// Whether `default` belongs to the meaning of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defaults {
    Compared,
    Ignored,
}

impl Identity {
    pub(crate) fn new(defaults: Defaults) -> Self {
        let empty = HashSet::new;
        Self { defaults, equal: empty(), different: empty(), assumed: empty(), steps: 0 }
    }

    pub(crate) fn of(&mut self, one: &Node<'_>, other: &Node<'_>) -> bool {
        let pair = (one.id(), other.id());
        if pair.0 == pair.1 || self.equal.contains(&pair) {
            return true;
        }
        if self.different.contains(&pair) {
            return false;
        }
        self.assumed.clear();
        let res = self.schemas(one, other, 0);
        if res {
            self.equal.extend(self.assumed.drain());
            self.equal.insert(pair);
        } else {
            self.different.insert(pair);
        }
        res
    }

    fn schemas(&mut self, one: &Node<'_>, other: &Node<'_>, depth: usize) -> bool {
        self.steps += 1;
        if self.steps > MAX_STEPS || depth > 200 {
            return false;
        }
        let (Some(left), Some(right)) = (one.keywords(), other.keywords()) else {
            return one.value == other.value;
        };
        if one.document.reference_hides_siblings() != other.document.reference_hides_siblings()
            && one.reference().is_some()
        {
            return false;
        }
        if self.defaults == Defaults::Compared && default(left) != default(right) {
            return false;
        }
        let relevant = |keyword: &&String| !is_annotation(keyword) && !is_definitions(keyword);
        left.keys().filter(relevant).all(|keyword| right.contains_key(keyword))
            && right
                .keys()
                .filter(relevant)
                .all(|keyword| left.contains_key(keyword) && self.keyword(keyword, one, other, depth + 1))
    }

    fn keyword(&mut self, keyword: &str, one: &Node<'_>, other: &Node<'_>, depth: usize) -> bool {
        let (Some(left), Some(right)) = (one.child(keyword), other.child(keyword)) else { return false };
        match keyword {
            "$ref" => match (one.target(), other.target()) {
                (Some(one), Some(other)) => {
                    let pair = (one.id(), other.id());
                    let known = self.equal.contains(&pair) || !self.assumed.insert(pair);
                    known || self.schemas(&one, &other, depth)
                }
                _ => false,
            },
            // Their targets depend on the way to them.
            "$dynamicRef" | "$recursiveRef" => false,
            "items" if left.value.is_array() != right.value.is_array() => false,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => self.same_lists(keyword, one, other, depth),
            "items" if left.value.is_array() => self.same_lists(keyword, one, other, depth),
            "properties" | "patternProperties" | "dependentSchemas" | "dependencies" => {
                let (left, right) = (one.map(keyword), other.map(keyword));
                left.len() == right.len()
                    && left.iter().all(|(key, one)| {
                        let other = right.iter().find(|it| it.0 == *key);
                        other.is_some_and(|(_, other)| match (one.value, other.value) {
                            (Value::Array(_), _) | (_, Value::Array(_)) => {
                                canonical(one.value) == canonical(other.value)
                            }
                            _ => self.schemas(one, other, depth),
                        })
                    })
            }
            "items"
            | "additionalItems"
            | "additionalProperties"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else" => self.schemas(&left, &right, depth),
            "required" | "type" => {
                let sorted = |it: &Value| {
                    let mut res: Vec<String> = it
                        .as_array()
                        .map_or(vec![it.to_string()], |it| it.iter().map(Value::to_string).collect());
                    res.sort();
                    res.dedup();
                    res
                };
                sorted(left.value) == sorted(right.value)
            }
            _ => canonical(left.value) == canonical(right.value),
        }
    }

    fn same_lists(&mut self, keyword: &str, one: &Node<'_>, other: &Node<'_>, depth: usize) -> bool {
        let (left, right) = (one.list(keyword), other.list(keyword));
        left.len() == right.len()
            && left.iter().zip(&right).all(|(one, other)| self.schemas(one, other, depth))
    }
}

/// The default of a schema as a text. A missing one is null.
pub(crate) fn default(schema: &serde_json::Map<String, Value>) -> String {
    canonical(schema.get("default").unwrap_or(&Value::Null))
}

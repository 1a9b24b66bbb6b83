//! Equality of schemas apart from annotations, through references.

use std::collections::HashSet;

use serde_json::Value;

use crate::document::Node;
use crate::keyword::{canonical, is_annotation, is_definitions};

/// Decides whether two schemas have the same meaning, and remembers its decisions. Different schemas are never equal;
/// equal ones may be called different.
pub(crate) struct SchemaEquality {
    defaults: DefaultHandling,
    /// Pairs that are known to be equal, by address.
    equal: HashSet<(usize, usize)>,
    /// Pairs that are known to be different, or could not be decided.
    different: HashSet<(usize, usize)>,
    /// Pairs of schemas that are assumed to be equal until the end of the current decision.
    assumed: HashSet<(usize, usize)>,
    /// The number of compared pairs so far.
    steps: usize,
}

/// The maximum number of compared pairs. Beyond it, schemas count as different.
const MAX_STEPS: usize = 5_000_000;
/// The maximum depth of compared pairs.
const MAX_DEPTH: usize = 200;

/// The handling of `default` in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultHandling {
    /// Schemas with different defaults are different.
    Compare,
    /// Defaults are not compared.
    Ignore,
}

impl SchemaEquality {
    pub(crate) fn new(defaults: DefaultHandling) -> Self {
        let empty = HashSet::new;
        Self { defaults, equal: empty(), different: empty(), assumed: empty(), steps: 0 }
    }

    /// Whether two schemas are equal, so that they accept the same values.
    pub(crate) fn are_equal(&mut self, one: &Node<'_>, other: &Node<'_>) -> bool {
        let pair = (one.id(), other.id());
        if pair.0 == pair.1 || self.equal.contains(&pair) {
            return true;
        }
        if self.different.contains(&pair) {
            return false;
        }
        self.assumed.clear();
        let res = self.are_schemas_equal(one, other, 0);
        if res {
            self.equal.extend(self.assumed.drain());
            self.equal.insert(pair);
        } else {
            self.different.insert(pair);
        }
        res
    }

    fn are_schemas_equal(&mut self, one: &Node<'_>, other: &Node<'_>, depth: usize) -> bool {
        self.steps += 1;
        if self.steps > MAX_STEPS || depth > MAX_DEPTH {
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
        if self.defaults == DefaultHandling::Compare && default_text(left) != default_text(right) {
            return false;
        }
        let relevant = |keyword: &&String| !is_annotation(keyword) && !is_definitions(keyword);
        left.keys().filter(relevant).all(|keyword| right.contains_key(keyword))
            && right.keys().filter(relevant).all(|keyword| {
                left.contains_key(keyword) && self.are_keywords_equal(keyword, one, other, depth + 1)
            })
    }

    fn are_keywords_equal(&mut self, keyword: &str, one: &Node<'_>, other: &Node<'_>, depth: usize) -> bool {
        let (Some(left), Some(right)) = (one.child(keyword), other.child(keyword)) else { return false };
        match keyword {
            "$ref" => match (one.target(), other.target()) {
                (Some(one), Some(other)) => {
                    let pair = (one.id(), other.id());
                    let known = self.equal.contains(&pair) || !self.assumed.insert(pair);
                    known || self.are_schemas_equal(&one, &other, depth)
                }
                _ => false,
            },
            // Their targets depend on the way to them.
            "$dynamicRef" | "$recursiveRef" => false,
            "items" if left.value.is_array() != right.value.is_array() => false,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => self.are_lists_equal(keyword, one, other, depth),
            "items" if left.value.is_array() => self.are_lists_equal(keyword, one, other, depth),
            "properties" | "patternProperties" | "dependentSchemas" | "dependencies" => {
                let (left, right) = (one.child_map(keyword), other.child_map(keyword));
                left.len() == right.len()
                    && left.iter().all(|(key, one)| {
                        let other = right.iter().find(|it| it.0 == *key);
                        other.is_some_and(|(_, other)| match (one.value, other.value) {
                            (Value::Array(_), _) | (_, Value::Array(_)) => {
                                canonical(one.value) == canonical(other.value)
                            }
                            _ => self.are_schemas_equal(one, other, depth),
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
            | "else" => self.are_schemas_equal(&left, &right, depth),
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

    fn are_lists_equal(&mut self, keyword: &str, one: &Node<'_>, other: &Node<'_>, depth: usize) -> bool {
        let (left, right) = (one.child_list(keyword), other.child_list(keyword));
        left.len() == right.len()
            && left.iter().zip(&right).all(|(one, other)| self.are_schemas_equal(one, other, depth))
    }
}

/// The default of a schema as a text. A missing one is null.
pub(crate) fn default_text(schema: &serde_json::Map<String, Value>) -> String {
    canonical(schema.get("default").unwrap_or(&Value::Null))
}

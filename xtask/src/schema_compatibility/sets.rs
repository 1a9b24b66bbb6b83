//! Schema keywords as sets and bounds that can be compared.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::effect::Effect;

/// Keywords that do not affect validity.
///
/// `format` is one of them: draft 2020-12 makes it an annotation by default.
pub(super) const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$id",
    "format",
];

/// The seven types of JSON Schema; `number` means a number that is not an integer.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The types a schema allows. `number` includes `integer`.
pub(super) fn types(schema: &Map<String, Value>) -> BTreeSet<&str> {
    let mut res: BTreeSet<&str> = match schema.get("type") {
        Some(Value::String(one)) => BTreeSet::from([one.as_str()]),
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => TYPES.into(),
    };
    if res.contains("number") {
        res.insert("integer");
    }
    res
}

/// The values that `const` or `enum` allow, as JSON text; `None` without these keywords.
pub(super) fn values(schema: &Map<String, Value>) -> Option<BTreeSet<String>> {
    let enumerated = schema.get("enum").and_then(Value::as_array);
    match (schema.get("const"), enumerated) {
        (Some(one), _) => Some(BTreeSet::from([one.to_string()])),
        (None, Some(several)) => Some(several.iter().map(Value::to_string).collect()),
        (None, None) => None,
    }
}

/// The names in a list of names, such as `required`.
pub(super) fn names(list: Option<&Value>) -> BTreeSet<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The effect of a change of the allowed set; `None` allows everything.
pub(super) fn step<T: Ord>(old: Option<&BTreeSet<T>>, new: Option<&BTreeSet<T>>) -> Option<Effect> {
    match (old, new) {
        (None, None) => None,
        (None, Some(_)) => Some(Effect::Narrows),
        (Some(_), None) => Some(Effect::Widens),
        (Some(old), Some(new)) => Effect::of(!old.is_subset(new), !new.is_subset(old)),
    }
}

/// The direction in which a bound gets stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// A larger number allows less.
    AtLeast,
    /// A larger number allows more.
    AtMost,
}

impl Bound {
    pub(super) fn of(keyword: &str) -> Option<Self> {
        match keyword {
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                Some(Self::AtLeast)
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => Some(Self::AtMost),
            _ => None,
        }
    }

    /// The effect of a change of a bound. A bound that is not a number breaks.
    pub(super) fn step(self, old: Option<&Value>, new: Option<&Value>) -> Option<Effect> {
        let (old, new) = match (old, new) {
            (None, None) => return None,
            (None, Some(_)) => return Some(Effect::Narrows),
            (Some(_), None) => return Some(Effect::Widens),
            (Some(old), Some(new)) => (old, new),
        };
        let (Some(old), Some(new)) = (old.as_f64(), new.as_f64()) else {
            return (old != new).then_some(Effect::Breaks);
        };
        let stricter = match self {
            Self::AtLeast => new > old,
            Self::AtMost => new < old,
        };
        Effect::of(stricter, new != old && !stricter)
    }
}

/// Whether no document can match two of these branches, so that `oneOf` means the same as `anyOf`.
pub(super) fn are_disjoint(branches: &[&Map<String, Value>]) -> bool {
    let pairs =
        branches.iter().enumerate().flat_map(|(at, one)| branches[at + 1..].iter().map(move |it| (one, it)));
    pairs.into_iter().all(|(one, other)| disjoint(one, other))
}

fn disjoint(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    if types(one).is_disjoint(&types(other)) {
        return true;
    }
    if let (Some(one), Some(other)) = (values(one), values(other)) {
        return one.is_disjoint(&other);
    }
    // Both require a member with disjoint schemas. This holds for objects only.
    if [one, other].iter().any(|schema| types(schema).iter().any(|kind| *kind != "object")) {
        return false;
    }
    let (names_of_one, names_of_other) = (names(one.get("required")), names(other.get("required")));
    let mut shared = names_of_one.intersection(&names_of_other);
    shared.any(|name| match (member(one, name), member(other, name)) {
        (Some(one), Some(other)) => disjoint(one, other),
        _ => false,
    })
}

fn member<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    schema.get("properties")?.get(name)?.as_object()
}

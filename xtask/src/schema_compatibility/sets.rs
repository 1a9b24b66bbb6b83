//! Keywords whose meaning is a set or a bound: what a schema allows, as values that can be compared.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::effect::Effect;

/// Keywords that say nothing about which documents are valid.
///
/// `format` is among them: draft 2020-12 makes it an annotation unless a vocabulary says otherwise, and ours do not.
pub(super) const WORDS: &[&str] = &[
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

/// The seven types of JSON Schema; `number` stands for what is no integer, so that the two can be told apart.
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

/// The values a schema allows by name, each in its JSON text; `None` where it names none.
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

/// The step from one set of what is allowed to another; `None` is everything.
pub(super) fn step<T: Ord>(old: Option<&BTreeSet<T>>, new: Option<&BTreeSet<T>>) -> Option<Effect> {
    match (old, new) {
        (None, None) => None,
        (None, Some(_)) => Some(Effect::Narrows),
        (Some(_), None) => Some(Effect::Widens),
        (Some(old), Some(new)) => Effect::of(!old.is_subset(new), !new.is_subset(old)),
    }
}

/// Whether a keyword is a bound, and which way it grows stricter.
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

    /// The step from one bound to another; what is no number is as good as broken.
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

/// Whether no document can please two of these branches, so that `oneOf` over them means what `anyOf` would.
pub(super) fn apart(branches: &[&Map<String, Value>]) -> bool {
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
    // A member that both must have, and that no value can please both about. What is no object has no members to
    // tell the two apart by.
    if [one, other].iter().any(|it| types(it).iter().any(|it| *it != "object")) {
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

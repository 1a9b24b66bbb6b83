//! Keywords of JSON Schema as sets and bounds that can be compared.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::document::Node;

/// Keywords that do not affect validity, and members of a document that hold no constraint.
pub(crate) const ANNOTATIONS: &[&str] = &[
    "$anchor",
    "$comment",
    "$id",
    "$schema",
    "contentSchema",
    "default",
    "defaultSnippets",
    "deprecated",
    "deprecationMessage",
    "description",
    "doNotSuggest",
    "enumDescriptions",
    "enumNames",
    "errorMessage",
    "example",
    "examples",
    "id",
    "markdownDescription",
    "markdownEnumDescriptions",
    "readOnly",
    "title",
    "tsType",
    "writeOnly",
];

/// Whether a keyword is an annotation or a private extension.
pub(crate) fn is_annotation(keyword: &str) -> bool {
    keyword.starts_with("x-") || ANNOTATIONS.contains(&keyword)
}

/// Formats that validators check.
const FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// The format of a schema, if validators check it.
pub(crate) fn format<'a>(schema: &Node<'a>) -> Option<&'a str> {
    schema.get("format")?.as_str().filter(|it| FORMATS.contains(it))
}

/// A set of types, as bits. `INTEGER` and `FRACTION` together are `number`; `FRACTION` has only numbers that are not
/// whole.
pub(crate) type TypeSet = u8;
pub(crate) const NULL: TypeSet = 1;
pub(crate) const BOOLEAN: TypeSet = 2;
pub(crate) const INTEGER: TypeSet = 4;
pub(crate) const FRACTION: TypeSet = 8;
pub(crate) const STRING: TypeSet = 16;
pub(crate) const ARRAY: TypeSet = 32;
pub(crate) const OBJECT: TypeSet = 64;
pub(crate) const NUMBER: TypeSet = INTEGER | FRACTION;
pub(crate) const ALL_TYPES: TypeSet = 127;

/// The sets of one type.
pub(crate) const SINGLE_TYPES: [TypeSet; 7] = [OBJECT, ARRAY, STRING, INTEGER, FRACTION, BOOLEAN, NULL];

/// The types that the keyword `type` allows.
pub(crate) fn allowed_types(schema: &Map<String, Value>) -> TypeSet {
    let type_set = |name: &str| match name {
        "null" => NULL,
        "boolean" => BOOLEAN,
        "integer" => INTEGER,
        "number" => NUMBER,
        "string" => STRING,
        "array" => ARRAY,
        "object" => OBJECT,
        _ => 0,
    };
    match schema.get("type") {
        Some(Value::String(name)) => type_set(name),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).fold(0, |res, name| res | type_set(name))
        }
        _ => ALL_TYPES,
    }
}

/// The type of a value.
pub(crate) fn type_of(value: &Value) -> TypeSet {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(number) if number.is_f64() && number.as_f64().is_some_and(|it| it.fract() != 0.0) => {
            FRACTION
        }
        Value::Number(_) => INTEGER,
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

/// The values that `const` and `enum` allow; `None` without these keywords.
pub(crate) fn allowed_values(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    let listed = schema.get("enum").and_then(Value::as_array).map(|it| it.iter().collect::<Vec<_>>());
    match (schema.get("const"), listed) {
        (Some(one), None) => Some(vec![one]),
        (Some(one), Some(several)) => {
            Some(several.into_iter().filter(|it| canonical(it) == canonical(one)).collect())
        }
        (None, listed) => listed,
    }
}

/// A text that is equal for values that JSON Schema considers equal, such as `1` and `1.0`.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        },
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let sorted: BTreeSet<String> =
                members.iter().map(|(key, value)| format!("{key:?}:{}", canonical(value))).collect();
            format!("{{{}}}", sorted.into_iter().collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.to_string(),
    }
}

/// The texts in a list, such as the names in `required`.
pub(crate) fn string_items(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// A lower or upper bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bound {
    pub limit: f64,
    /// Whether the limit itself is excluded.
    pub is_strict: bool,
}

/// A number that bounds restrict: a value, a length or a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measure {
    /// The keyword of the inclusive bound.
    pub keyword: &'static str,
    /// The keyword of the exclusive bound, for numbers.
    pub exclusive: Option<&'static str>,
    /// Whether larger values are refused.
    pub is_upper: bool,
    /// The types that are measured.
    pub types: TypeSet,
}

/// All bounds. A lower bound is followed by the upper bound of the same types.
pub(crate) const MEASURES: [Measure; 8] = [
    Measure { keyword: "minimum", exclusive: Some("exclusiveMinimum"), is_upper: false, types: NUMBER },
    Measure { keyword: "maximum", exclusive: Some("exclusiveMaximum"), is_upper: true, types: NUMBER },
    Measure { keyword: "minLength", exclusive: None, is_upper: false, types: STRING },
    Measure { keyword: "maxLength", exclusive: None, is_upper: true, types: STRING },
    Measure { keyword: "minItems", exclusive: None, is_upper: false, types: ARRAY },
    Measure { keyword: "maxItems", exclusive: None, is_upper: true, types: ARRAY },
    Measure { keyword: "minProperties", exclusive: None, is_upper: false, types: OBJECT },
    Measure { keyword: "maxProperties", exclusive: None, is_upper: true, types: OBJECT },
];

/// The numbers that a bound restricts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Domain {
    Reals,
    Integers,
}

impl Measure {
    /// The strictest bound that a schema sets. For integers, it is rounded to the nearest allowed one.
    pub(crate) fn bound(self, schema: &Map<String, Value>, domain: Domain) -> Option<Bound> {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        // In draft 4, the exclusive keyword is a mark on the other one.
        let is_marked = self.exclusive.is_some_and(|it| schema.get(it) == Some(&Value::Bool(true)));
        let plain = number(self.keyword).map(|limit| Bound { limit, is_strict: is_marked });
        let exclusive = self.exclusive.and_then(number).map(|limit| Bound { limit, is_strict: true });
        let rounded = |bound: Bound| {
            if domain == Domain::Reals {
                return bound;
            }
            let limit = match (self.is_upper, bound.is_strict) {
                (false, true) => bound.limit.floor() + 1.0,
                (false, false) => bound.limit.ceil(),
                (true, true) => bound.limit.ceil() - 1.0,
                (true, false) => bound.limit.floor(),
            };
            Bound { limit, is_strict: false }
        };
        match (plain.map(rounded), exclusive.map(rounded)) {
            (Some(one), Some(other)) => Some(if self.implies(one, other) { one } else { other }),
            (one, other) => one.or(other),
        }
    }

    /// Whether every value within `one` is within `other`.
    pub(crate) fn implies(self, one: Bound, other: Bound) -> bool {
        let is_tighter = if self.is_upper { one.limit < other.limit } else { one.limit > other.limit };
        is_tighter || (one.limit == other.limit && (one.is_strict || !other.is_strict))
    }

    /// Whether a value is within a bound. Values of other types are.
    pub(crate) fn allows(self, bound: Bound, value: &Value) -> bool {
        let Some(size) = self.measured_number(value) else { return true };
        let is_inside = if self.is_upper { size < bound.limit } else { size > bound.limit };
        is_inside || (size == bound.limit && !bound.is_strict)
    }

    /// The measured number of a value; `None` for values of other types.
    fn measured_number(self, value: &Value) -> Option<f64> {
        match value {
            Value::Number(number) if self.types == NUMBER => number.as_f64(),
            Value::String(text) if self.types == STRING => Some(text.chars().count() as f64),
            Value::Array(items) if self.types == ARRAY => Some(items.len() as f64),
            Value::Object(members) if self.types == OBJECT => Some(members.len() as f64),
            _ => None,
        }
    }
}

/// Whether a text matches a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternMatch {
    Yes,
    No,
    /// The pattern cannot be evaluated here.
    Unknown,
}

/// Matches a text against a pattern.
pub(crate) fn match_pattern(pattern: &str, text: &str) -> PatternMatch {
    match regex::RegexBuilder::new(pattern).size_limit(1 << 20).build() {
        Ok(regex) if regex.is_match(text) => PatternMatch::Yes,
        Ok(_) => PatternMatch::No,
        Err(_) => PatternMatch::Unknown,
    }
}

/// Whether a schema accepts everything. A missing one does.
pub(crate) fn accepts_all(schema: Option<&Value>) -> bool {
    match schema {
        None | Some(Value::Bool(true)) => true,
        Some(Value::Object(keywords)) => keywords.keys().all(|it| is_annotation(it)),
        Some(_) => false,
    }
}

/// Whether a keyword only contains schemas for references.
pub(crate) fn is_definitions(keyword: &str) -> bool {
    keyword == "$defs" || keyword == "definitions"
}

//! Converts `name=value` pairs to JSON by the types in the tool's schema.
//!
//! If the schema allows a string, the value is a string: `5` for a string is `"5"`. `name:=value` is JSON and
//! independent of the schema. Only types are checked here; the arguments are validated against the schema
//! later.

use std::collections::BTreeSet;

use mcp_host_model::RawJson;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call_arguments::error::{ArgumentError, excerpt};
use crate::call_arguments::schema::resolve_ref;

/// The maximum depth of nested `anyOf` and `oneOf`.
const MAX_DEPTH: usize = 4;

const HELP: &str = "`mcp-host tools FILE --schema TOOL` shows the arguments and their types; name:=JSON passes a \
    value as JSON";

/// One `name=value` argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    name: String,
    value: PairValue,
}

/// The value of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PairValue {
    /// Text, converted by the type in the schema.
    Text(String),
    /// JSON from `name:=value`.
    Json(String),
}

impl Pair {
    /// A pair whose value is converted by the schema.
    pub(crate) fn text(name: &str, value: &str) -> Pair {
        Pair { name: name.to_owned(), value: PairValue::Text(value.to_owned()) }
    }
}

/// Parses `name=value` or `name:=JSON`. The caller has checked for a name and `=`.
pub(super) fn parse_pair(word: &str) -> Result<Pair, ArgumentError> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let Some(name) = name.strip_suffix(':') else {
        return Ok(Pair::text(name, value));
    };
    match as_json(value) {
        Some(json) => Ok(Pair { name: name.to_owned(), value: PairValue::Json(json) }),
        None => Err(ArgumentError {
            message: format!("the value of `{}` is not valid JSON", excerpt(name)),
            help: HELP,
        }),
    }
}

/// Converts the pairs to a JSON object. Fails at the first value that has none of the types that `schema` allows.
pub(crate) fn pairs_to_object(pairs: &[Pair], schema: Option<&RawJson>) -> Result<RawJson, ArgumentError> {
    let root = schema.and_then(|it| it.read::<Value>().ok()).unwrap_or(Value::Null);
    let mut members: Vec<(&str, Vec<&PairValue>)> = Vec::new();
    for Pair { name, value } in pairs {
        match members.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(value),
            None => members.push((name, vec![value])),
        }
    }
    let mut object = String::from("{");
    for (index, (name, values)) in members.iter().enumerate() {
        let value = argument_value(&root, name, values)?;
        let comma = if index == 0 { "" } else { "," };
        object.push_str(&format!("{comma}{}:{value}", json_string(name)));
    }
    object.push('}');
    Ok(RawJson::parse(object.into()).expect("quoted names and JSON values form an object"))
}

/// Converts the pairs to a JSON object of strings, as prompts expect. Of two pairs with the same name, the
/// later one is used.
pub(crate) fn pairs_to_strings(pairs: &[Pair]) -> RawJson {
    let member = |pair: &Pair| match &pair.value {
        PairValue::Text(text) | PairValue::Json(text) => (pair.name.clone(), Value::from(text.as_str())),
    };
    let object: serde_json::Map<String, Value> = pairs.iter().map(member).collect();
    RawJson::from_value(&object).expect("an object of strings is valid JSON")
}

/// The value of one argument as JSON. A name that is given several times becomes an array.
fn argument_value(root: &Value, name: &str, values: &[&PairValue]) -> Result<String, ArgumentError> {
    let any_schema = Value::Null;
    let top = resolve_ref(root, root);
    let property = top.get("properties").and_then(|it| it.get(name)).unwrap_or(&any_schema);
    let types = SchemaTypes::from_schema(root, property, 1);
    match values {
        [PairValue::Json(json)] => Ok(json.clone()),
        [PairValue::Text(text)] if !types.is_array_only() || text.trim_start().starts_with('[') => {
            types.convert(text).ok_or_else(|| type_error(name, text, &types))
        }
        values if types.is_array_only() || values.len() > 1 && types.0.contains("array") => {
            let types = item_schema(root, property)
                .map_or_else(SchemaTypes::default, |schema| SchemaTypes::from_schema(root, schema, 1));
            let items = values.iter().map(|value| match value {
                PairValue::Json(json) => Ok(json.clone()),
                PairValue::Text(text) => types.convert(text).ok_or_else(|| type_error(name, text, &types)),
            });
            Ok(format!("[{}]", items.collect::<Result<Vec<_>, _>>()?.join(",")))
        }
        _ => {
            let message = format!("`{}` is given {} times, but takes one value", excerpt(name), values.len());
            Err(ArgumentError { message, help: HELP })
        }
    }
}

/// The schema of an array's items, also if the array is one of several alternatives.
fn item_schema<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    let schema = resolve_ref(root, schema);
    let others = ["anyOf", "oneOf"].into_iter().filter_map(|it| schema.get(it)?.as_array()).flatten();
    schema.get("items").or_else(|| others.map(|it| resolve_ref(root, it)).find_map(|it| it.get("items")))
}

fn type_error(name: &str, text: &str, types: &SchemaTypes) -> ArgumentError {
    let message =
        format!("`{}` must be {}, but `{}` is not", excerpt(name), types.description(), excerpt(text));
    ArgumentError { message, help: HELP }
}

/// The types of JSON Schema with their descriptions, in the order in which messages list them.
const TYPES: [(&str, &str); 7] = [
    ("null", "null"),
    ("boolean", "true or false"),
    ("integer", "an integer"),
    ("number", "a number"),
    ("string", "a string"),
    ("array", "a JSON array"),
    ("object", "a JSON object"),
];

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The types that a schema allows; empty if it allows any type or is unknown.
#[derive(Debug, Default)]
struct SchemaTypes(BTreeSet<&'static str>);

impl SchemaTypes {
    /// Reads `schema`, at `depth` levels of alternatives; `root` is the document for its references.
    fn from_schema(root: &Value, schema: &Value, depth: usize) -> SchemaTypes {
        let schema = resolve_ref(root, schema);
        let known = |name: &Value| TYPES.iter().find(|known| name == known.0).map(|known| known.0);
        let mut res: BTreeSet<&str> = match schema.get("type") {
            Some(Value::Array(names)) => names.iter().filter_map(known).collect(),
            name => name.and_then(known).into_iter().collect(),
        };
        if !res.is_empty() || depth > MAX_DEPTH {
            return SchemaTypes(res);
        }
        res.extend(schema.get("const").map(json_type));
        res.extend(schema.get("enum").and_then(Value::as_array).into_iter().flatten().map(json_type));
        for key in ["anyOf", "oneOf"] {
            for alternative in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
                res.extend(SchemaTypes::from_schema(root, alternative, depth + 1).0);
            }
        }
        SchemaTypes(res)
    }

    /// Whether an array is allowed and nothing else but null.
    fn is_array_only(&self) -> bool {
        self.0.contains("array") && self.0.iter().all(|name| ["array", "null"].contains(name))
    }

    /// The text as JSON; `None` if it has none of the types.
    fn convert(&self, text: &str) -> Option<String> {
        if self.0.contains("string") {
            return Some(json_string(text));
        }
        let json = as_json(text);
        if self.0.is_empty() {
            return Some(json.unwrap_or_else(|| json_string(text)));
        }
        let json = json?;
        let value: Value = serde_json::from_str(&json).ok()?;
        let is_integer =
            || value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0);
        let is_allowed = self.0.contains(json_type(&value)) || self.0.contains("integer") && is_integer();
        is_allowed.then_some(json)
    }

    fn description(&self) -> String {
        let names = TYPES.iter().filter(|(name, _)| self.0.contains(name)).map(|(_, text)| *text);
        names.collect::<Vec<_>>().join(" or ")
    }
}

/// The text unchanged, if it is valid JSON.
fn as_json(text: &str) -> Option<String> {
    serde_json::from_str::<&RawValue>(text).ok().map(|it| it.get().to_owned())
}

fn json_string(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r##"{"properties":{
        "text":{"type":"string"},"count":{"type":"integer"},"ratio":{"type":"number"},"deep":{"type":"boolean"},
        "maybe":{"type":["integer","null"]},"either":{"anyOf":[{"type":"integer"},{"type":"string"}]},
        "mode":{"enum":["a","b"]},"level":{"enum":[1,2]},"tags":{"type":"array","items":{"type":"string"}},
        "ids":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]},
        "where":{"$ref":"#/$defs/where"},"any":{}},"$defs":{"where":{"type":"object"}}}"##;

    /// Checks the JSON of the pairs in `words`, which are separated by `|`.
    #[track_caller]
    fn check(words: &str, want: &str) {
        let schema = RawJson::parse(SCHEMA.into()).unwrap();
        let pairs: Result<Vec<Pair>, ArgumentError> = words.split('|').map(parse_pair).collect();
        let got = pairs.and_then(|pairs| pairs_to_object(&pairs, Some(&schema)));
        assert_eq!(got.map_or_else(|it| it.message, |it| it.as_str().to_owned()), want);
    }

    #[test]
    fn schema_determines_the_type() {
        check("text=5|count=5|deep=true|ratio=2.50", r#"{"text":"5","count":5,"deep":true,"ratio":2.50}"#);
        check("count=12345678901234567890123", r#"{"count":12345678901234567890123}"#);
        check("text=a=b|text2=", r#"{"text":"a=b","text2":""}"#);
        check("maybe=null|either=7|mode=a|level=2", r#"{"maybe":null,"either":"7","mode":"a","level":2}"#);
        check(r#"where={"a": 1}"#, r#"{"where":{"a": 1}}"#);
        check("any=7|other=x y|third=[1]", r#"{"any":7,"other":"x y","third":[1]}"#);
    }

    #[test]
    fn repeated_name_becomes_an_array() {
        check("tags=a|tags=5", r#"{"tags":["a","5"]}"#);
        check("tags=a", r#"{"tags":["a"]}"#);
        check(r#"tags=["a"]"#, r#"{"tags":["a"]}"#);
        check("ids=1|ids=2", r#"{"ids":[1,2]}"#);
        check("ids=1|ids=x", "`ids` must be an integer, but `x` is not");
        check("text=a|text=b", "`text` is given 2 times, but takes one value");
    }

    #[test]
    fn json_value_ignores_the_schema() {
        check(r#"text:=5|tags:=["x"]"#, r#"{"text":5,"tags":["x"]}"#);
        check("text:=x", "the value of `text` is not valid JSON");
    }

    #[test]
    fn type_error_names_the_expected_type() {
        check("count=many", "`count` must be an integer, but `many` is not");
        check("count=1.5", "`count` must be an integer, but `1.5` is not");
        check("deep=yes", "`deep` must be true or false, but `yes` is not");
        check("maybe=x", "`maybe` must be null or an integer, but `x` is not");
        check("where=x", "`where` must be a JSON object, but `x` is not");
    }

    #[test]
    fn without_a_schema_valid_json_stays_json() {
        let got = pairs_to_object(&[parse_pair("a=1").unwrap(), parse_pair("b=x").unwrap()], None).unwrap();
        assert_eq!(got.as_str(), r#"{"a":1,"b":"x"}"#);
    }
}

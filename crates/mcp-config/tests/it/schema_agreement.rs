//! Agreement of the schemas of all profiles with their readers, on generated documents.
//!
//! The documents are the valid fixtures and documents that are generated from the schema, each with one
//! change: a value at a bound of the schema, another type, a missing key, an additional unknown key. The reader
//! accepts exactly what the schema accepts, except for the reasons in `ONLY_THE_READER` and what
//! `ONLY_THE_SCHEMA` names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use jsonschema::Validator;
use mcp_host_config::{Profile, schema, text_to_json};
use mcp_host_model::Severity;
use schema_evolution::{Generator, generate};
use serde_json::{Map, Value, json};

use crate::read_text;

/// The reasons why only the reader refuses a document: a part of its message, and why the schema cannot express it.
const ONLY_THE_READER: &[(&str, &str)] = &[
    ("names no known encoding", "the labels of encodings are a long list with aliases"),
    ("is not a valid URL", "a pattern does not parse URLs"),
    ("must be a valid http(s) URL", "a pattern does not parse URLs"),
    (
        "must use https:// (or http:// for localhost)",
        "a pattern does not find the host of a URL, or variables",
    ),
    ("must use wss:// (or ws://)", "a pattern does not find variables"),
    ("there is no tool type", "an unknown type is allowed unless it looks like `mcp`"),
    ("is too large a number", "`integer` has no size"),
    ("must be a whole number without a fraction", "a number beyond 64 bits is not read as an integer"),
    ("must be an integer", "a number beyond 64 bits is not read as an integer"),
    ("has at most 256 bytes", "`maxLength` counts characters"),
    ("two tools of this agent are named", "a schema does not compare items by one key"),
    (
        "the name of an environment variable must not be empty",
        "names of variables occur in seven keys of editors",
    ),
    ("a header's name must be one word", "names of headers occur in five keys of editors"),
    ("two servers of this session are named", "a schema does not compare items by one key"),
    ("two servers of this file are named", "a schema does not compare keys of different objects"),
    ("have different values", "a schema does not compare values"),
    ("names two different transports", "three keys can name it, and the keys of URLs narrow it"),
    ("are both given; only one is allowed", "it is decided after the transport"),
    ("is given twice; only one is allowed", "many keys mean the same, and null counts as missing"),
    ("the file has no MCP servers", "settings files are known by their name"),
];

/// A part of a warning of the reader about what it ignores. The schema checks the type of such a value all the same.
const ONLY_THE_SCHEMA: &[(Profile, &str)] = &[(Profile::McpJson, "has no effect with")];

/// One value of each type, and values that other tests found to be special.
fn common_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(2.0),
        json!(1e300),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(""),
        json!(" "),
        json!("x"),
        json!("other"),
        json!([]),
        json!(["x"]),
        json!([1]),
        json!({}),
        json!({ "x": "y" }),
        json!({ "x": 1 }),
    ]
}

/// Adds the values at the bounds of a schema object, by its own keywords.
fn collect_bounds(keywords: &Map<String, Value>, res: &mut Vec<Value>) {
    let number = |name: &str| keywords.get(name).and_then(Value::as_f64);
    for name in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
        for step in number(name).into_iter().flat_map(|it| [it - 1.0, it - 0.5, it, it + 0.5, it + 1.0]) {
            res.push(if step.fract() == 0.0 { json!(step as i64) } else { json!(step) });
        }
    }
    let sizes = |names: [&str; 2]| -> BTreeSet<usize> {
        let limits = names.into_iter().filter_map(number).map(|it| it as usize);
        limits.flat_map(|it| [it.saturating_sub(1), it, it + 1]).collect()
    };
    for size in sizes(["minLength", "maxLength"]) {
        res.extend([json!("n".repeat(size)), json!("é".repeat(size))]);
    }
    for size in sizes(["minItems", "maxItems"]) {
        res.extend([json!(vec!["x"; size]), json!(vec![json!({}); size])]);
    }
    for size in sizes(["minProperties", "maxProperties"]) {
        res.push((0..size).map(|it| (format!("k{it}"), json!("x"))).collect::<Map<_, _>>().into());
    }
    if let Some(pattern) = keywords.get("pattern") {
        let text = json!({ "type": "string", "pattern": pattern });
        res.extend((0..6).filter_map(|seed| generate(&text, seed)));
        let other = json!({ "type": "string", "not": { "pattern": pattern } });
        res.extend((0..4).filter_map(|seed| generate(&other, seed)));
    }
    for word in
        keywords.get("enum").and_then(Value::as_array).into_iter().flatten().chain(keywords.get("const"))
    {
        res.push(word.clone());
        if let Some(word) = word.as_str() {
            res.extend([json!(word.to_uppercase()), json!(format!("{word} ")), json!(format!("{word}x"))]);
        }
    }
}

/// The keys of the documents of a schema, with values at their bounds.
#[derive(Default)]
struct Vocabulary {
    keys: BTreeMap<String, Vec<Value>>,
}

impl Vocabulary {
    fn new(schema: &Value) -> Vocabulary {
        let mut res = Vocabulary::default();
        res.collect(schema, schema, None, 0);
        for values in res.keys.values_mut() {
            values.extend(common_values());
            let mut seen = BTreeSet::new();
            values.retain(|it| seen.insert(it.to_string()));
        }
        res
    }

    /// Collects below `node`, which describes the value of `key`.
    fn collect(&mut self, root: &Value, node: &Value, key: Option<&str>, depth: usize) {
        match node {
            Value::Object(keywords) if depth < 24 => {
                if let Some(key) = key {
                    collect_bounds(keywords, self.keys.entry(key.to_owned()).or_default());
                }
                if let (Some(key), Some(name)) = (key, keywords.get("$ref").and_then(Value::as_str)) {
                    // One step, because references may be cycles.
                    let target = root.pointer(name.trim_start_matches('#')).and_then(Value::as_object);
                    collect_bounds(target.unwrap(), self.keys.entry(key.to_owned()).or_default());
                }
                for (name, inner) in keywords {
                    match (name.as_str(), inner) {
                        ("properties", Value::Object(members)) => {
                            for (key, inner) in members {
                                self.collect(root, inner, Some(key), depth + 1);
                            }
                        }
                        ("$defs", Value::Object(members)) => {
                            for inner in members.values() {
                                self.collect(root, inner, None, depth + 1);
                            }
                        }
                        (_, inner) => self.collect(root, inner, key, depth + 1),
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.collect(root, item, key, depth + 1);
                }
            }
            _ => {}
        }
    }
}

/// A profile with its schema and documents that both sides accept.
struct ProfileSchema {
    profile: Profile,
    validator: Validator,
    vocabulary: Vocabulary,
    documents: Vec<Value>,
}

impl ProfileSchema {
    fn new(profile: Profile) -> ProfileSchema {
        let schema = schema(profile);
        let generator = Generator::new(&schema).unwrap();
        let mut documents = valid_fixtures(profile);
        if profile == Profile::McpJson {
            // The first one, so that its keys get each value: with a value, the second key repeats the first.
            let entry = json!({ "command": "x", "env": { "A": "b" }, "environment": null });
            documents.insert(0, json!({ "mcpServers": { "a": entry } }));
        }
        documents.extend((0..40).filter_map(|seed| generator.document(seed)));
        let validator = jsonschema::validator_for(&schema).unwrap();
        ProfileSchema { profile, validator, vocabulary: Vocabulary::new(&schema), documents }
    }

    /// The reasons why only the reader refuses a document; none if both sides agree.
    ///
    /// Fails if only the schema refuses it, or if the reader has a reason that is not listed.
    #[track_caller]
    fn check(&self, document: &Value) -> BTreeSet<&'static str> {
        let text = document.to_string();
        let reading = read_text(self.profile, &text);
        let is_read = !reading.refused && !reading.has_errors();
        let profile = self.profile.as_str();
        match (is_read, self.validator.is_valid(document)) {
            (true, true) | (false, false) => BTreeSet::new(),
            (true, false)
                if reading.diagnostics.iter().any(|warning| {
                    let is_named =
                        |it: &(Profile, &str)| it.0 == self.profile && warning.to_string().contains(it.1);
                    ONLY_THE_SCHEMA.iter().any(is_named)
                }) =>
            {
                BTreeSet::new()
            }
            (true, false) => {
                let error = self.validator.iter_errors(document).next().unwrap();
                panic!("only the schema of {profile} refuses {text}: {} {error}", error.instance_path())
            }
            (false, true) => {
                let errors = reading.diagnostics.iter().filter(|it| it.severity == Severity::Error);
                let reason = |error: String| {
                    let listed = ONLY_THE_READER.iter().map(|it| it.0);
                    { listed }
                        .find(|it| error.contains(it))
                        .unwrap_or_else(|| panic!("only the reader of {profile} refuses {text}: {error}"))
                };
                errors.map(|it| reason(it.to_string())).collect()
            }
        }
    }
}

fn valid_fixtures(profile: Profile) -> Vec<Value> {
    let folder = if profile == Profile::HoloDeck07 { Profile::HoloDeck } else { profile };
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let entries = fs::read_dir(root.join(folder.as_str()).join("valid")).unwrap();
    let mut paths: Vec<_> = entries.map(|it| it.unwrap().path()).collect();
    paths.sort();
    let json = |it: &PathBuf| text_to_json(&fs::read_to_string(it).unwrap())?.read::<Value>().ok();
    paths.iter().filter_map(json).collect()
}

/// A location in a document.
#[derive(Clone)]
struct Location {
    pointer: String,
    /// The key of the value, if its parent is an object.
    key: Option<String>,
}

/// All locations, outer ones first.
fn locations(document: &Value) -> Vec<Location> {
    let mut res = vec![Location { pointer: String::new(), key: None }];
    let mut next = 0;
    while let Some(Location { pointer, .. }) = res.get(next).cloned() {
        next += 1;
        let inner = |step: String, key: Option<&String>| {
            let step = step.replace('~', "~0").replace('/', "~1");
            Location { pointer: format!("{pointer}/{step}"), key: key.cloned() }
        };
        match document.pointer(&pointer).unwrap() {
            Value::Object(members) => res.extend(members.keys().map(|it| inner(it.clone(), Some(it)))),
            Value::Array(items) => res.extend((0..items.len()).map(|it| inner(it.to_string(), None))),
            _ => {}
        }
    }
    res
}

/// The document with another value at a location.
fn with_value(document: &Value, location: &Location, value: Value) -> Value {
    let mut res = document.clone();
    *res.pointer_mut(&location.pointer).unwrap() = value;
    res
}

/// The document with another key in the object at a location; `None` if there is no object, or it has the key.
fn with_key(document: &Value, location: &Location, key: &str, value: Value) -> Option<Value> {
    let mut res = document.clone();
    let members = res.pointer_mut(&location.pointer).unwrap().as_object_mut()?;
    members.insert(key.to_owned(), value).is_none().then_some(res)
}

/// The documents without one of the members or items of a location, and with one of them repeated.
fn without_each(document: &Value, location: &Location) -> Vec<Value> {
    match document.pointer(&location.pointer).unwrap() {
        Value::Object(members) => {
            let without = |key: &String| {
                let mut members = members.clone();
                members.remove(key);
                with_value(document, location, members.into())
            };
            members.keys().map(without).collect()
        }
        Value::Array(items) => {
            let repeated = items.iter().chain(items.first()).cloned().collect();
            vec![
                with_value(document, location, Value::Array(Vec::new())),
                with_value(document, location, repeated),
            ]
        }
        _ => Vec::new(),
    }
}

/// The maximum number of locations at which each value is tried.
const MAX_LOCATIONS: usize = 2;

/// Checks every key with every value at its bounds, at a few locations, and every document without a key or item.
#[track_caller]
fn check(profile: Profile) -> BTreeSet<&'static str> {
    let subject = ProfileSchema::new(profile);
    let mut reasons = BTreeSet::new();
    let documents: Vec<(&Value, Vec<Location>)> =
        subject.documents.iter().map(|it| (it, locations(it))).collect();
    let all =
        || documents.iter().flat_map(|(document, locations)| locations.iter().map(move |it| (*document, it)));
    for (key, values) in &subject.vocabulary.keys {
        let own: Vec<_> = all().filter(|it| it.1.key.as_deref() == Some(key)).collect();
        let step = (own.len() / MAX_LOCATIONS).max(1);
        for (document, location) in own.into_iter().step_by(step).take(MAX_LOCATIONS) {
            for value in values {
                reasons.extend(subject.check(&with_value(document, location, value.clone())));
            }
        }
    }
    for (document, locations) in documents.iter().take(20) {
        for location in locations {
            for changed in without_each(document, location) {
                reasons.extend(subject.check(&changed));
            }
            for (key, value) in [("unknown-key", json!({ "a": [1] })), ("", json!("x"))] {
                let changed = with_key(document, location, key, value);
                reasons.extend(changed.iter().flat_map(|it| subject.check(it)));
            }
        }
    }
    assert!(subject.documents.len() > 20, "{} documents", subject.documents.len());
    reasons
}

#[test]
fn reader_and_schema_agree_at_each_bound() {
    let reasons: BTreeSet<_> = Profile::ALL.iter().copied().flat_map(check).collect();
    let listed: BTreeSet<_> = ONLY_THE_READER.iter().map(|it| it.0).collect();
    assert_eq!(reasons, listed, "each listed reason occurs");
}

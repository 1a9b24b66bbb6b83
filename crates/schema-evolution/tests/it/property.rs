//! No change is called harmless if a validator notices it.

use proptest::prelude::*;
use schema_evolution::{Generator, SchemaUser, Verdict, compare};
use serde_json::{Value, json};

/// Documents on which each pair of schemas is compare_checked.
fn documents() -> Vec<Value> {
    let members = json!([
        {}, { "a": 1 }, { "a": 1.5 }, { "a": "x" }, { "a": "longer" }, { "a": null }, { "b": 1 }, { "a": "x", "b": 2 },
        { "a": [] }, { "a": ["x"] }, { "a": ["x", "x"] }, { "a": [1] }, { "a": { "b": 1 } }, { "a": { "b": "x" } },
        { "a": { "c": true } }, { "kind": "one" }, { "kind": "two" }, { "kind": "one", "a": 1 }, { "kind": "three" },
        { "kind": "two", "a": 1 }, { "a": true }, { "x-1": "y" }, { "a": "y" }, { "a": { "a": 1 } },
        { "a": { "a": "x", "b": null } }, [], "x", "xyz", 1, 2.5, null, true, ["x"], [1, 2], [[1]],
            [{ "a": 1 }, { "b": "x" }]
    ]);
    members.as_array().unwrap().clone()
}

/// Small schemas of known keywords, so that two of them often differ in one keyword only.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({})),
        prop::sample::select(vec!["string", "integer", "number", "null", "object", "array"])
            .prop_map(|it| json!({ "type": it })),
        prop::sample::select(vec![json!(["x"]), json!(["x", 1]), json!([1, null])])
            .prop_map(|it| json!({ "enum": it })),
        (1..4u32).prop_map(|it| json!({ "minLength": it })),
        (1..3u32).prop_map(|it| json!({ "maximum": it })),
        (1..3u32).prop_map(|it| json!({ "exclusiveMinimum": it })),
        (0..3u32).prop_map(|it| json!({ "maxProperties": it })),
        prop::sample::select(vec!["^x", "x$", "^[a-z]+$"]).prop_map(|it| json!({ "pattern": it })),
        Just(json!({ "required": ["a"] })),
        Just(json!({ "required": ["a", "b"] })),
        Just(json!({ "dependentRequired": { "a": ["b"] } })),
        Just(json!({ "required": ["kind"], "type": "object", "properties": { "kind": { "const": "one" } } })),
        Just(json!({ "required": ["kind"], "type": "object", "properties": { "kind": { "const": "two" } } })),
        Just(json!({ "$ref": "#/$defs/A" })),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        let one = inner.clone();
        prop_oneof![
            one.clone().prop_map(|it| json!({ "properties": { "a": it } })),
            (one.clone(), one.clone())
                .prop_map(|(a, rest)| json!({ "properties": { "a": a }, "additionalProperties": rest })),
            (one.clone(), one.clone()).prop_map(
                |(a, rest)| json!({ "patternProperties": { "^a": a }, "additionalProperties": rest })
            ),
            (one.clone(), one.clone()).prop_map(
                |(a, b)| json!({ "anyOf": [{ "properties": { "a": a } }, b], "unevaluatedProperties": false })
            ),
            one.clone().prop_map(|it| json!({ "additionalProperties": it })),
            one.clone().prop_map(|it| json!({ "items": it })),
            (one.clone(), one.clone()).prop_map(|(a, b)| json!({ "prefixItems": [a], "items": b })),
            one.clone().prop_map(|it| json!({ "contains": it })),
            one.clone().prop_map(|it| json!({ "propertyNames": it })),
            one.clone().prop_map(|it| json!({ "not": it })),
            list.clone().prop_map(|it| json!({ "anyOf": it })),
            list.clone().prop_map(|it| json!({ "allOf": it })),
            list.prop_map(|it| json!({ "oneOf": it })),
            (one.clone(), one.clone(), one.clone())
                .prop_map(|(a, b, c)| json!({ "if": a, "then": b, "else": c })),
            (one.clone(), one).prop_map(|(a, b)| {
                let mut res = a;
                if let (Some(own), Value::Object(more)) = (res.as_object_mut(), b) {
                    own.extend(more);
                }
                res
            }),
        ]
    })
}

/// Two schemas: unrelated ones, or one and a copy with another part.
fn any_pair() -> impl Strategy<Value = (Value, Value)> {
    let unrelated = (any_schema(), any_schema());
    let related = (any_schema(), any_schema(), any_schema(), 0..5u8).prop_map(|(common, one, other, how)| {
        let schema_with = |part: &Value| match how {
            0 => json!({ "anyOf": [common, part] }),
            1 => json!({ "oneOf": [common, part] }),
            2 => json!({ "properties": { "a": common, "b": part } }),
            3 => json!({ "if": common, "then": part }),
            _ => json!({ "allOf": [common, { "items": part, "additionalProperties": part }] }),
        };
        (schema_with(&one), schema_with(&other))
    });
    prop_oneof![unrelated, related]
}

/// Whether a document has a key anywhere.
fn has_key(document: &Value, names: &[&str]) -> bool {
    match document {
        Value::Object(members) => {
            members.iter().any(|(key, it)| names.contains(&key.as_str()) || has_key(it, names))
        }
        Value::Array(items) => items.iter().any(|it| has_key(it, names)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_change_that_a_validator_notices_is_not_harmless(
        (old, new) in any_pair(), old_target in any_schema(), new_target in any_schema(),
    ) {
        let document = |it: Value, target: Value| {
            // A validator would not end on a reference to itself.
            let target = if target.to_string().contains("$ref") { json!({ "type": "string" }) } else { target };
            json!({ "allOf": [it], "$defs": { "A": target } })
        };
        let (old, new) = (document(old, old_target), document(new, new_target));
        let comparison = compare(&old, &new).unwrap();
        let validator = |it: &Value| jsonschema::draft202012::new(it).unwrap();
        let (before, after) = (validator(&old), validator(&new));
        let generated = |it: &Value| {
            let generator = Generator::new(it).unwrap();
            (0..12).filter_map(|seed| generator.document(seed)).collect::<Vec<_>>()
        };
        // A new name for an unknown key is no break, although a validator notices it.
        let renamed: Vec<&str> = comparison
            .changes
            .iter()
            .filter(|it| it.keyword == "properties")
            .map(|it| it.location.rsplit('.').next().unwrap())
            .collect();
        for (user, from, to, own) in [
            (SchemaUser::Reader, &before, &after, generated(&old)),
            (SchemaUser::Writer, &after, &before, generated(&new)),
        ] {
            if comparison.verdict(user) != Verdict::Harmless {
                continue;
            }
            for it in own.into_iter().chain(documents()).filter(|it| !has_key(it, &renamed)) {
                prop_assert!(!from.is_valid(&it) || to.is_valid(&it), "{user}: {it}\n{old}\n{new}\n{comparison:?}");
            }
        }
        // Every break has a document.
        for change in &comparison.changes {
            if let Some(it) = &change.reader.witness {
                prop_assert!(before.is_valid(it));
            }
            if let Some(it) = &change.writer.witness {
                prop_assert!(after.is_valid(it) && !before.is_valid(it));
            }
        }
        prop_assert_eq!(compare(&old, &old).unwrap().changes, vec![]);
    }
}

//! Changes behind references, alternatives, conditions and bounds.

use schema_evolution::{Error, MAX_DEPTH, SchemaUser, Side, Verdict, compare};
use serde_json::{Value, json};

use crate::mutations::compare_checked;

/// Checks the changes as lines `location keyword reader writer`.
#[track_caller]
fn check(old: Value, new: Value, expected: &[&str]) {
    let comparison = compare_checked(&old, &new);
    let lines: Vec<String> = comparison
        .changes
        .iter()
        .map(|it| format!("{} {} {} {}", it.location, it.keyword, it.reader.verdict, it.writer.verdict))
        .collect();
    assert_eq!(lines, expected, "{comparison:#?}");
}

fn object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

#[test]
fn equal_schemas_have_no_changes() {
    check(json!({}), json!({}), &[]);
    check(json!(true), json!({}), &[]);
    check(json!({ "required": ["a", "b"] }), json!({ "required": ["b", "a"] }), &[]);
    check(
        json!({ "definitions": { "A": { "type": "string" } }, "properties": { "a": { "$ref": "#/definitions/A" } } }),
        json!({ "$defs": { "B": { "type": "string" } }, "properties": { "a": { "$ref": "#/$defs/B" } } }),
        &[],
    );
}

#[test]
fn a_change_behind_references_is_found_once() {
    let schema_with = |kind: Value| {
        json!({
            "properties": { "a": { "$ref": "#/$defs/A" }, "z": { "$ref": "#/$defs/A" } },
            "$defs": { "A": { "properties": { "b": { "type": kind }, "a": { "$ref": "#/$defs/A" } } } }
        })
    };
    check(
        schema_with(json!(["string", "integer"])),
        schema_with(json!("string")),
        &["a.b type break harmless"],
    );
}

#[test]
fn keywords_beside_a_reference_count_since_draft_2019() {
    let schema_with = |draft: &str, length: u32| {
        json!({
            "$schema": draft,
            "definitions": { "A": { "type": "string" } },
            "properties": { "a": { "$ref": "#/definitions/A", "maxLength": length } }
        })
    };
    let (seven, current) =
        ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema");
    check(schema_with(seven, 9), schema_with(seven, 3), &[]);
    check(schema_with(current, 9), schema_with(current, 3), &["a maxLength break harmless"]);
}

#[test]
fn what_another_document_says_is_unknown() {
    let external = object(json!({ "a": { "$ref": "https://example.com/a.json" } }));
    check(
        object(json!({ "a": { "type": "string" } })),
        external.clone(),
        &["a $ref unknown harmless", "a type harmless unknown"],
    );
    let changed = object(json!({ "a": { "$ref": "https://example.com/b.json" } }));
    let found = compare(&external, &changed).unwrap();
    assert_eq!(
        (found.verdict(SchemaUser::Reader), found.verdict(SchemaUser::Writer)),
        (Verdict::Unknown, Verdict::Unknown)
    );
}

#[test]
fn unknown_keywords_are_unknown() {
    let schema_with = |it: &str| json!({ "customRule": it });
    check(schema_with("a"), schema_with("b"), &["(root) customRule unknown unknown"]);
    check(json!({ "x-order": 1 }), json!({ "x-order": 2 }), &["(root) x-order harmless harmless"]);
}

#[test]
fn alternatives_are_paired() {
    let schema_with = |list: Value| object(json!({ "a": { "anyOf": list } }));
    check(
        schema_with(json!([{ "type": "string" }, { "type": "null" }])),
        schema_with(json!([{ "type": "null" }, { "type": "string" }, { "type": "integer" }])),
        &["a anyOf harmless break"],
    );
    check(
        schema_with(json!([{ "type": "string" }, { "type": "null" }])),
        object(json!({ "a": { "type": ["string", "null"] } })),
        &[],
    );
    check(
        object(json!({ "a": { "type": "string" } })),
        schema_with(json!([{ "type": "string" }, { "type": "array" }])),
        &["a type harmless break"],
    );
}

#[test]
fn tagged_alternatives_are_compared_by_their_tag() {
    let branch = |kind: &str, properties: Value| {
        let mut res = json!({ "type": "object", "required": ["kind"], "properties": properties });
        res["properties"]["kind"] = json!({ "const": kind });
        res
    };
    let schema_with = |list: &[Value]| json!({ "oneOf": list });
    let (one, two) = (branch("one", json!({ "n": { "maximum": 9 } })), branch("two", json!({ "m": {} })));
    check(
        schema_with(std::slice::from_ref(&one)),
        schema_with(&[one.clone(), two.clone()]),
        &["(root) oneOf harmless break"],
    );
    let tight = branch("one", json!({ "n": { "maximum": 5 } }));
    check(
        schema_with(&[one.clone(), two.clone()]),
        schema_with(&[two.clone(), tight]),
        &["n maximum break harmless"],
    );
    // Another alternative still has the key, but this one does not read it.
    let bare = branch("two", json!({}));
    let both = branch("one", json!({ "m": {} }));
    check(schema_with(&[both.clone(), two]), schema_with(&[both, bare]), &["m properties break harmless"]);
}

#[test]
fn one_of_counts_the_matches() {
    // A document with both keys matched one alternative and matches two.
    check(
        json!({ "oneOf": [{ "required": ["a"] }] }),
        json!({ "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        &["(root) oneOf break harmless", "a required harmless break"],
    );
}

#[test]
fn a_key_may_move_to_a_part_of_the_same_object() {
    check(
        json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } } }),
        json!({
            "type": "object",
            "allOf": [{ "$ref": "#/$defs/Base" }],
            "properties": { "b": { "type": "string" } },
            "$defs": { "Base": { "properties": { "a": { "type": "string" } } } }
        }),
        &[],
    );
}

#[test]
fn negation_reverses_the_direction() {
    check(
        json!({ "type": "object", "not": { "required": ["a"] } }),
        json!({ "type": "object", "not": { "required": ["a", "b"] } }),
        &["(root) not harmless break"],
    );
}

#[test]
fn conditions_are_compared_under_the_same_if() {
    let schema_with = |kind: &str, then: Value| {
        json!({ "type": "object", "properties": { "kind": {}, "a": {} },
            "if": { "properties": { "kind": { "const": kind } }, "required": ["kind"] }, "then": then })
    };
    check(
        schema_with("one", json!({})),
        schema_with("one", json!({ "required": ["a"] })),
        &["a required break harmless"],
    );
    check(
        schema_with("one", json!({ "required": ["a"] })),
        schema_with("two", json!({ "required": ["a"] })),
        &["a required break break"],
    );
}

#[test]
fn items_are_compared_by_position() {
    let schema_with = |prefix: Value, rest: Value| {
        object(json!({ "a": { "type": "array", "prefixItems": prefix, "items": rest } }))
    };
    let text = || json!({ "type": "string" });
    check(
        schema_with(json!([text()]), json!(false)),
        schema_with(json!([text(), text()]), json!(false)),
        &["a[] false harmless break"],
    );
    check(
        schema_with(json!([text()]), text()),
        schema_with(json!([{ "type": "integer" }]), text()),
        &["a[] type break break"],
    );
}

#[test]
fn patterns_of_keys_are_compared() {
    let schema_with = |kind: &str| {
        let patterns = json!({ "^x-": { "type": kind } });
        json!({ "patternProperties": patterns, "additionalProperties": false })
    };
    check(schema_with("number"), schema_with("integer"), &["* type break harmless"]);
    check(
        json!({ "properties": { "x-a": { "type": "integer" } }, "additionalProperties": false }),
        schema_with("integer"),
        &["* false harmless break"],
    );
}

#[test]
fn keys_below_different_patterns_are_compared() {
    let schema_with = |pattern: &str, kind: &str| {
        let inner = object(json!({ "a": { "type": kind } }));
        json!({ "patternProperties": { pattern: inner } })
    };
    let comparison = compare_checked(&schema_with("^x-", "integer"), &schema_with("^x", "string"));
    assert_eq!(comparison.verdict(SchemaUser::Reader), Verdict::Break, "{comparison:#?}");
}

#[test]
fn formats_are_assertions() {
    let schema_with = |it: Value| object(json!({ "a": it }));
    check(
        schema_with(json!({ "type": "string" })),
        schema_with(json!({ "type": "string", "format": "date" })),
        &["a format break harmless"],
    );
    check(
        schema_with(json!({ "type": "integer" })),
        schema_with(json!({ "type": "integer", "format": "uint32" })),
        &[],
    );
}

#[test]
fn hostile_documents_are_bounded() {
    let deep = (0..200).fold(json!({}), |inner, _| json!({ "items": inner }));
    assert_eq!(compare(&deep, &json!({})).unwrap_err(), Error::TooDeep { side: Side::Old });
    let nested = (0..MAX_DEPTH - 5).fold(json!({ "type": "string" }), |inner, _| json!({ "items": inner }));
    let other = (0..MAX_DEPTH - 5).fold(json!({ "type": "integer" }), |inner, _| json!({ "items": inner }));
    let found = compare(&nested, &other).unwrap();
    assert_ne!(found.verdict(SchemaUser::Reader), Verdict::Harmless);
    for invalid in [json!(1), json!({ "type": 5 }), json!({ "properties": [] })] {
        let error = compare(&json!({}), &invalid).unwrap_err();
        assert!(matches!(error, Error::NotASchema { side: Side::New, .. }), "{error}");
    }
    // Many alternatives of alternatives end within the bound of comparisons.
    let wide = |at: u32| {
        let leaf: Vec<Value> = (0..20).map(|it| json!({ "minimum": it + at, "required": ["a"] })).collect();
        (0..6).fold(json!({ "anyOf": leaf }), |inner, _| {
            json!({ "anyOf": [{ "properties": { "a": inner } }, { "items": inner }, { "properties": { "b": inner } }] })
        })
    };
    assert_ne!(compare(&wide(0), &wide(1)).unwrap().verdict(SchemaUser::Reader), Verdict::Harmless);
}

#[test]
fn cycles_of_references_end() {
    let schema_with = |length: u32| {
        json!({
            "$ref": "#/$defs/A",
            "$defs": {
                "A": { "anyOf": [{ "type": "string", "maxLength": length },
                    { "type": "array", "items": { "$ref": "#/$defs/B" } }] },
                "B": { "type": "object", "properties": { "a": { "$ref": "#/$defs/A" }, "b": { "$ref": "#/$defs/B" } } }
            }
        })
    };
    check(schema_with(9), schema_with(5), &["(root) maxLength break harmless"]);
}

#[test]
fn generated_documents_of_recursive_schemas_are_bounded() {
    let list = json!({ "type": "array", "minItems": 3, "items": { "$ref": "#/$defs/A" } });
    let keys = (0..30).map(|it| (format!("k{it}"), list.clone())).collect::<serde_json::Map<_, _>>();
    let schema = json!({ "$ref": "#/$defs/A", "$defs": { "A": { "type": "object", "properties": keys } } });
    for seed in 0..6 {
        let document = schema_evolution::generate(&schema, seed).unwrap();
        assert!(document.to_string().len() < 100_000, "{seed}");
    }
}

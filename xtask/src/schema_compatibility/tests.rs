//! Tests with changes of each kind; a validator confirms that reported harmless changes are harmless.

use jsonschema::Draft;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::compare::compare;
use super::effect::Effect;
use super::version;
use super::{CurrentSchema, SchemaDiff, check as check_releases, release};

/// Documents on which each row is checked.
fn documents() -> Vec<Value> {
    let members = json!([
        {}, { "a": 1 }, { "a": 1.5 }, { "a": "x" }, { "a": "longer" }, { "a": null }, { "b": 1 }, { "a": "x", "b": 2 },
        { "a": [] }, { "a": ["x"] }, { "a": ["x", "x"] }, { "a": [1] }, { "a": { "b": 1 } }, { "a": { "b": "x" } },
        { "a": { "c": true } }, { "kind": "one" }, { "kind": "two" }, { "kind": "one", "a": 1 }, { "kind": "three" },
        { "kind": "two", "a": 1 }, { "a": true }, { "x-1": "y" }, { "a": "y" }, [], "x", 1, null
    ]);
    members.as_array().unwrap().clone()
}

#[track_caller]
fn check(old: Value, new: Value, expected: &str) {
    let changes = compare(&old, &new);
    let lines: Vec<String> =
        changes.iter().map(|it| format!("{}: {} ({})", it.location, it.description, it.effect)).collect();
    assert_eq!(lines.join("\n"), expected, "from {old} to {new}");
    let worst = changes.iter().map(|it| it.effect).max();
    let widens = changes.iter().any(|it| matches!(it.effect, Effect::Widens | Effect::Breaks));

    let valid = |schema: &Value| {
        let validator = jsonschema::options().with_draft(Draft::Draft202012).build(schema).unwrap();
        documents().into_iter().map(|it| validator.is_valid(&it)).collect::<Vec<_>>()
    };
    for ((before, after), document) in valid(&old).into_iter().zip(valid(&new)).zip(documents()) {
        let rejected = before && !after;
        assert!(
            !rejected || worst.is_some_and(Effect::rejects_old_documents),
            "{document} became invalid without a reported change"
        );
        assert!(after <= before || widens, "{document} became valid without a reported change");
    }
}

fn object(members: Value) -> Value {
    json!({ "type": "object", "properties": members })
}

#[test]
fn annotations_do_not_change_validity() {
    check(json!({}), json!({}), "");
    check(
        object(json!({ "a": { "type": "string" } })),
        object(
            json!({ "a": { "type": "string", "description": "What it is.", "default": "x", "x-order": 1 } }),
        ),
        "a: another `default` (annotations only)\na: another `description` (annotations only)",
    );
    check(object(json!({})), object(json!({ "a": true })), "a: it is described (annotations only)");
}

#[test]
fn larger_sets_widen_and_smaller_ones_narrow() {
    let of = |it: Value| object(json!({ "a": it }));
    check(
        of(json!({ "type": "integer" })),
        of(json!({ "type": "number" })),
        "a: `type` allows more (widens)",
    );
    check(
        of(json!({ "type": "number" })),
        of(json!({ "type": "integer" })),
        "a: `type` allows less (**narrows**)",
    );
    check(
        of(json!({ "type": "string" })),
        of(json!({ "type": ["string", "null"] })),
        "a: `type` allows more (widens)",
    );
    check(
        of(json!({ "type": "string" })),
        of(json!({ "type": "integer" })),
        "a: `type` allows something else (**breaks**)",
    );
    check(
        of(json!({ "enum": ["x", "y"] })),
        of(json!({ "const": "x" })),
        "a: the set of values allows less (**narrows**)",
    );
    check(of(json!({ "const": "x" })), of(json!({})), "a: the set of values allows more (widens)");
    check(
        of(json!({ "enum": ["x"] })),
        of(json!({ "enum": ["y"] })),
        "a: the set of values allows something else (**breaks**)",
    );
}

#[test]
fn a_moved_bound_widens_or_narrows() {
    let of = |it: Value| object(json!({ "a": it }));
    check(
        of(json!({ "minLength": 1 })),
        of(json!({ "minLength": 2 })),
        "a: `minLength` allows less (**narrows**)",
    );
    check(
        of(json!({ "maxLength": 1 })),
        of(json!({ "maxLength": 9 })),
        "a: `maxLength` allows more (widens)",
    );
    check(of(json!({})), of(json!({ "minimum": 1.2 })), "a: `minimum` allows less (**narrows**)");
    check(of(json!({ "maxItems": 1 })), of(json!({})), "a: `maxItems` allows more (widens)");
    check(of(json!({})), of(json!({ "pattern": "^x" })), "a: a `pattern` (**narrows**)");
    check(of(json!({ "pattern": "^x" })), of(json!({})), "a: no `pattern` any more (widens)");
    check(
        of(json!({ "pattern": "^x" })),
        of(json!({ "pattern": "^y" })),
        "a: another `pattern` (**breaks**)",
    );
    check(of(json!({})), of(json!({ "uniqueItems": true })), "a: a `uniqueItems` (**narrows**)");
}

#[test]
fn members_are_added_removed_or_required() {
    let closed = |it: Value| json!({ "properties": it, "additionalProperties": false });
    check(
        json!({ "properties": { "a": {} } }),
        json!({ "properties": { "a": {} }, "required": ["a"] }),
        "a: it is required (**narrows**)",
    );
    check(json!({ "required": ["a"] }), json!({}), "a: it is no longer required (widens)");
    check(closed(json!({ "a": {} })), closed(json!({ "a": {}, "b": {} })), "b: it is allowed (widens)");
    check(
        closed(json!({ "a": {}, "b": {} })),
        closed(json!({ "a": {} })),
        "b: it is no longer allowed (**narrows**)",
    );
    check(
        object(json!({})),
        object(json!({ "a": { "type": "string" } })),
        "a: it was accepted unread and is read now (**narrows**)",
    );
    check(
        object(json!({ "a": { "type": "string" } })),
        object(json!({})),
        "a: it is accepted unread (widens)",
    );
    check(
        json!({ "additionalProperties": { "type": "string" } }),
        json!({ "additionalProperties": { "type": ["string", "integer"] } }),
        "*: `type` allows more (widens)",
    );
    check(
        json!({ "properties": { "a": { "type": "integer" } }, "additionalProperties": { "type": "string" } }),
        json!({ "additionalProperties": { "type": "string" } }),
        "a: `type` allows something else (**breaks**)",
    );
    check(
        closed(json!({})),
        json!({ "properties": {} }),
        "*: everything was rejected and some values are allowed (widens)",
    );
    check(json!({ "properties": {} }), closed(json!({})), "*: everything is rejected (**narrows**)");
}

#[test]
fn a_change_behind_references_is_found_once() {
    let of = |it: Value| {
        json!({
            "properties": { "a": { "$ref": "#/$defs/A" } },
            "$defs": { "A": { "properties": { "b": it, "a": { "$ref": "#/$defs/A" } } } }
        })
    };
    check(
        of(json!({ "type": ["string", "integer"] })),
        of(json!({ "type": "string" })),
        "a.b: `type` allows less (**narrows**)",
    );
    check(
        json!({ "properties": { "a": { "type": "string" } } }),
        json!({ "properties": { "a": { "$ref": "#/$defs/A" } }, "$defs": { "A": { "type": "string", "minLength": 3 } } }),
        "a: `minLength` allows less (**narrows**)",
    );
}

#[test]
fn a_reference_without_target_breaks() {
    let found = compare(&json!({ "type": "string" }), &json!({ "$ref": "#/$defs/Gone" }));
    assert!(found.iter().all(|it| it.effect == Effect::Breaks) && !found.is_empty(), "{found:?}");
}

#[test]
fn branches_are_paired() {
    let of = |it: Value| object(json!({ "a": it }));
    check(
        of(json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] })),
        of(json!({ "anyOf": [{ "type": "null" }, { "type": "string" }, { "type": "integer" }] })),
        "a: another branch of `anyOf` (widens)",
    );
    check(
        of(json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] })),
        of(json!({ "anyOf": [{ "type": "null" }] })),
        "a: one branch of `anyOf` less (**narrows**)",
    );
    check(
        of(json!({ "allOf": [{ "type": "string" }] })),
        of(json!({ "allOf": [{ "type": "string" }, { "minLength": 3 }] })),
        "a: another branch of `allOf` (**narrows**)",
    );
    check(
        of(json!({ "type": "string" })),
        of(json!({ "anyOf": [{ "type": "string" }, { "type": "array" }] })),
        "a: there are more alternatives (widens)",
    );
    check(
        of(json!({ "anyOf": [{ "type": "string" }, { "type": "array" }] })),
        of(json!({ "type": "string" })),
        "a: only one alternative is left (**narrows**)",
    );
}

#[test]
fn one_of_equals_any_of_for_disjoint_branches() {
    let tagged = |names: &[&str]| {
        let branch =
            |it| json!({ "type": "object", "properties": { "kind": { "const": it } }, "required": ["kind"] });
        json!({ "oneOf": names.iter().map(branch).collect::<Vec<Value>>() })
    };
    check(tagged(&["one"]), tagged(&["one", "two"]), "(root): another branch of `oneOf` (widens)");
    // Without a type, a value that is not an object matches both branches, so `oneOf` rejects it.
    check(
        json!({ "oneOf": [{ "properties": { "kind": { "const": "one" } }, "required": ["kind"] }] }),
        json!({ "oneOf": [
            { "properties": { "kind": { "const": "one" } }, "required": ["kind"] },
            { "properties": { "kind": { "const": "two" } }, "required": ["kind"] }
        ] }),
        "(root): another branch of `oneOf` (**breaks**)",
    );
    check(
        json!({ "oneOf": [{ "required": ["a"] }] }),
        json!({ "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        "(root): another branch of `oneOf` (**breaks**)",
    );
}

#[test]
fn negation_reverses_the_effect() {
    check(
        json!({ "not": { "required": ["a"] } }),
        json!({ "not": { "required": ["a", "b"] } }),
        "b: it is required (widens)",
    );
    check(json!({}), json!({ "not": { "required": ["a"] } }), "(root): a `not` (**narrows**)");
}

#[test]
fn a_changed_condition_breaks_and_an_equal_one_is_compared() {
    let of = |kind: &str, then: Value| json!({ "if": { "properties": { "kind": { "const": kind } }, "required": ["kind"] }, "then": then });
    check(of("one", json!({})), of("one", json!({ "required": ["a"] })), "a: it is required (**narrows**)");
    check(
        of("one", json!({ "required": ["a"] })),
        of("two", json!({ "required": ["a"] })),
        "(root): a condition has changed (**breaks**)",
    );
    check(json!({}), of("one", json!({ "required": ["a"] })), "(root): another condition (**narrows**)");
}

#[test]
fn unknown_keywords_break() {
    check(
        json!({ "dependentSchemas": { "a": { "required": ["b"] } } }),
        json!({ "dependentSchemas": { "b": { "required": ["a"] } } }),
        "(root): another `dependentSchemas` (**breaks**)",
    );
}

#[test]
fn nesting_is_bounded() {
    let deep = (0..500).fold(json!({ "type": "string" }), |inner, _| json!({ "items": inner }));
    let found = compare(&deep, &deep);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].effect, Effect::Breaks);
}

#[test]
fn versions_are_parsed_and_compared() {
    let parse = |text: &str| version::parse(text).unwrap();
    for text in ["1", "1.2", "1.2.3.4", "01.2.3", "1.2.x", "1.2.3-rc.1", ""] {
        assert_eq!(version::parse(text), None, "{text}");
    }
    for (older, newer, may) in [
        ("0.1.0", "0.1.1", false),
        ("0.1.0", "0.2.0", true),
        ("0.9.0", "1.0.0", true),
        ("1.0.0", "1.9.9", false),
        ("1.0.0", "2.0.0", true),
    ] {
        assert_eq!(version::may_break(&parse(older), &parse(newer)), may, "{older} to {newer}");
    }
}

#[test]
fn a_release_is_frozen_and_narrowing_needs_a_breaking_version() {
    let root = std::env::temp_dir().join(format!("xtask-evolution-{}", std::process::id()));
    let text = |it: Value| it.to_string();
    let wide = text(json!({ "type": ["string", "integer"] }));
    let narrow = text(json!({ "type": "string" }));
    let current = |text: &str, now: &str, freeze: bool| {
        let schemas = [CurrentSchema { name: "dominds", text }];
        let done = if freeze { release(&root, now, &schemas) } else { check_releases(&root, now, &schemas) };
        done.err().map_or_else(|| "fine".to_owned(), |it| it.to_string())
    };

    let unreleased = current(&wide, "0.1.0", false);
    assert!(unreleased.contains("dominds has no release to compare with"), "{unreleased}");
    assert_eq!(current(&wide, "0.1.0", true), "fine");
    assert_eq!(current(&wide, "0.1.0", true), "fine");
    assert!(current(&narrow, "0.1.0", true).contains("dominds 0.1.0 is released and frozen"));
    assert_eq!(current(&wide, "0.1.0", false), "fine");

    let message = current(&narrow, "0.1.1", false);
    assert!(
        message.starts_with("dominds: 1 of the changes since 0.1.0 may reject a valid document"),
        "{message}"
    );
    assert_eq!(current(&narrow, "0.2.0", false), "fine");
    // A later release is ignored.
    assert_eq!(current(&narrow, "0.2.0", true), "fine");
    assert_eq!(current(&wide, "0.1.1", false), "fine");
    assert_eq!(current(&wide, "0.2.1", false), "fine");
    assert!(current(&narrow, "x", false).contains("`x` is not a release version"));

    std::fs::write(root.join("schemas/released/dominds/latest.json"), "{}").unwrap();
    assert!(current(&wide, "0.2.1", false).contains("latest.json does not have the name of a version"));
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn the_table_begins_with_the_most_severe_change() {
    let changes = compare(
        &object(json!({ "a": { "type": "string" }, "b": { "type": "string" } })),
        &object(json!({ "a": { "type": ["string", "null"] }, "b": { "type": "string", "minLength": 1 } })),
    );
    let diff = SchemaDiff { name: "dominds".into(), released: version::parse("0.1.0").unwrap(), changes };
    let expected = "Schema `dominds` since 0.1.0:\n\n| location | change | effect |\n|---|---|---|\n\
                    | `b` | `minLength` allows less | **narrows** |\n| `a` | `type` allows more | widens |\n";
    assert_eq!(diff.table(), expected);
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
        Just(json!({ "required": ["a"] })),
        Just(json!({ "required": ["a", "b"] })),
        Just(json!({ "required": ["kind"], "type": "object", "properties": { "kind": { "const": "one" } } })),
        Just(json!({ "required": ["kind"], "type": "object", "properties": { "kind": { "const": "two" } } })),
        Just(json!({ "$ref": "#/$defs/A" })),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            inner.clone().prop_map(|it| json!({ "properties": { "a": it } })),
            (inner.clone(), inner.clone())
                .prop_map(|(a, rest)| json!({ "properties": { "a": a }, "additionalProperties": rest })),
            inner.clone().prop_map(|it| json!({ "additionalProperties": it })),
            inner.clone().prop_map(|it| json!({ "items": it })),
            inner.clone().prop_map(|it| json!({ "not": it })),
            list.clone().prop_map(|it| json!({ "anyOf": it })),
            list.clone().prop_map(|it| json!({ "allOf": it })),
            list.prop_map(|it| json!({ "oneOf": it })),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| json!({ "if": a, "then": b, "else": c })),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// A change that a validator notices is never reported as harmless.
    #[test]
    fn a_change_that_a_validator_notices_is_not_harmless(
        (old, new, old_target, new_target) in (any_schema(), any_schema(), any_schema(), any_schema()),
    ) {
        let document = |it: Value, target: Value| {
            // A validator would not end on a reference to itself.
            let target = if target.to_string().contains("$ref") { json!({ "type": "string" }) } else { target };
            json!({ "allOf": [it], "$defs": { "A": target } })
        };
        let (old, new) = (document(old, old_target), document(new, new_target));
        let changes = compare(&old, &new);
        let refuses = changes.iter().any(|it| it.effect.rejects_old_documents());
        let takes = changes.iter().any(|it| matches!(it.effect, Effect::Widens | Effect::Breaks));
        let before = jsonschema::options().with_draft(Draft::Draft202012).build(&old).unwrap();
        let after = jsonschema::options().with_draft(Draft::Draft202012).build(&new).unwrap();
        for it in documents() {
            let (before, after) = (before.is_valid(&it), after.is_valid(&it));
            prop_assert!(!before || after || refuses, "{it} was valid\n{old}\n{new}\n{changes:?}");
            prop_assert!(before || !after || takes, "{it} became valid\n{old}\n{new}\n{changes:?}");
        }
    }
}

//! Schemas that several locations share, and documents that only define schemas.

use schema_evolution::{Change, SchemaUser, Verdict, compare, render_json, render_sarif, render_text};
use serde_json::{Value, json};

use crate::mutations::compare_checked;

/// A schema with a definition `A` that each of the keys uses.
fn shared(keys: &[String], definition: &Value) -> Value {
    let properties: serde_json::Map<String, Value> =
        keys.iter().map(|it| (it.clone(), json!({ "$ref": "#/$defs/A" }))).collect();
    json!({ "properties": properties, "$defs": { "A": definition } })
}

#[test]
fn a_change_in_a_shared_definition_lists_all_locations() {
    let keys = ["a", "b", "c"].map(str::to_owned);
    let schema_with = |kind: &str| shared(&keys, &json!({ "properties": { "n": { "type": kind } } }));
    let comparison = compare_checked(&schema_with("number"), &schema_with("integer"));
    let [change] = &comparison.changes[..] else { panic!("{comparison:#?}") };
    let mut all = change.other_locations.clone();
    all.push(change.location.clone());
    all.sort();
    assert_eq!((all, change.more_locations), (vec!["a.n".to_owned(), "b.n".into(), "c.n".into()], 0));
    let text = render_text(&comparison, SchemaUser::Reader);
    assert_eq!(text.lines().filter(|it| it.starts_with("    also at ")).count(), 1, "{text}");
    assert_eq!(
        render_json(&comparison, SchemaUser::Reader)["changes"][0]["otherLocations"],
        json!(change.other_locations)
    );
    let sarif = render_sarif(&comparison, SchemaUser::Reader, "new.json");
    let message = sarif["runs"][0]["results"][0]["message"]["text"].as_str().unwrap();
    assert!(message.contains(" Also at "), "{message}");
}

#[test]
fn the_number_of_listed_locations_is_bounded() {
    let keys: Vec<String> = (0..200).map(|it| format!("k{it}")).collect();
    let schema_with =
        |kind: &str| shared(&keys, &json!({ "items": { "$ref": "#/$defs/A" }, "type": ["array", kind] }));
    let comparison = compare(&schema_with("number"), &schema_with("integer")).unwrap();
    let change = comparison.changes.iter().find(|it| it.keyword == "type").unwrap();
    assert_eq!((change.other_locations.len(), change.more_locations), (Change::MAX_LISTED, 56));
    let text = render_text(&comparison, SchemaUser::Reader);
    assert!(text.contains(" and 56 more\n"), "{text}");
}

#[test]
fn definitions_of_a_document_without_a_root_schema_are_compared_by_name() {
    let old = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {
            "Ping": { "type": "object", "required": ["id"], "properties": { "id": { "type": ["string", "integer"] } } },
            "Old <T>": { "type": "string" }
        }
    });
    let mut new = old.clone();
    new["definitions"]["Ping"]["properties"]["id"]["type"] = json!("string");
    new["definitions"].as_object_mut().unwrap().remove("Old <T>");
    let comparison = compare_checked(&old_as_keys(&old), &old_as_keys(&new));
    let direct = compare(&old, &new).unwrap();
    assert_eq!(direct.verdict(SchemaUser::Reader), Verdict::Break);
    let lines = |it: &schema_evolution::Comparison| {
        it.changes.iter().map(|it| (it.location.clone(), it.reader.clone())).collect::<Vec<_>>()
    };
    assert_eq!(lines(&direct), lines(&comparison));
    let pointers: Vec<&str> = direct.changes.iter().map(|it| it.new_pointer.as_str()).collect();
    assert_eq!(pointers, ["/definitions", "/definitions/Ping/properties/id/type"]);
}

/// The schema of an object with a key for each definition.
fn old_as_keys(document: &Value) -> Value {
    let mut res = document.clone();
    for name in document["definitions"].as_object().unwrap().keys() {
        let encoded = name.replace(' ', "%20").replace('<', "%3C").replace('>', "%3E");
        res["properties"][name] = json!({ "$ref": format!("#/definitions/{encoded}") });
    }
    res
}

#[test]
fn a_document_that_another_change_breaks_proves_nothing() {
    // `id` is required now. That says nothing about the other keys of `params`.
    let text = json!({ "type": "string" });
    let old = json!({ "properties": { "params": { "type": "object", "additionalProperties": text } } });
    let new = json!({ "required": ["id"], "properties": { "params": { "type": "object" }, "id": text } });
    let comparison = compare_checked(&old, &new);
    let verdict = |keyword: &str| {
        comparison.changes.iter().find(|it| it.keyword == keyword).map(|it| it.reader.verdict)
    };
    assert_eq!(
        (verdict("required"), verdict("additionalProperties")),
        (Some(Verdict::Break), Some(Verdict::Unknown))
    );
}

// RPT-270
#[test]
fn other_keys_without_a_schema_are_no_change() {
    for open in [json!({}), json!(true), json!({ "description": "anything" })] {
        let old = json!({ "properties": { "_meta": { "type": "object", "additionalProperties": open } } });
        let new = json!({ "properties": { "_meta": { "type": "object" } } });
        let comparison = compare_checked(&old, &new);
        assert_eq!(comparison.changes, []);
        assert_eq!(compare_checked(&new, &old).verdict(SchemaUser::Reader), Verdict::Harmless);
    }
}

// RPT-271
#[test]
fn an_alternative_that_another_change_breaks_proves_nothing() {
    // The patterns match the same texts, which nothing here proves. Every document without `id` is refused.
    let result = |required: &[&str], pattern: &str| {
        let properties = json!({ "id": {}, "name": { "type": "string", "pattern": pattern } });
        json!({ "anyOf": [
            { "type": "object", "required": required, "properties": properties },
            { "type": "string" },
        ] })
    };
    let (old, new) = (result(&["name"], "^a+$"), result(&["name", "id"], "^(a)+$"));
    let comparison = compare_checked(&old, &new);
    let broken = comparison.changes.iter().filter(|it| it.reader.verdict == Verdict::Break);
    assert_eq!(broken.map(|it| it.keyword.as_str()).collect::<Vec<_>>(), ["required"]);
}

#[test]
fn keys_of_a_refused_object_are_not_listed() {
    let old = json!({ "additionalProperties": { "type": "object", "properties": { "a": {}, "b": {} } } });
    let new = json!({ "properties": { "version": { "type": "string" } }, "additionalProperties": false });
    let comparison = compare_checked(&old, &new);
    let listed: Vec<&str> = comparison.changes.iter().map(|it| it.location.as_str()).collect();
    assert_eq!(listed, ["*", "version"], "{comparison:#?}");
}

#[test]
fn draft_4_has_other_integers() {
    let schema_with = |draft: &str| {
        json!({
            "$schema": format!("http://json-schema.org/draft-{draft}/schema#"), "type": "integer"
        })
    };
    let comparison = compare(&schema_with("04"), &schema_with("07")).unwrap();
    assert_eq!(
        (comparison.verdict(SchemaUser::Reader), comparison.verdict(SchemaUser::Writer)),
        (Verdict::Harmless, Verdict::Unknown)
    );
}

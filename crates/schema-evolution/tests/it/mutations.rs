//! One change of each kind, with its verdict for both uses.

use schema_evolution::{Comparison, Direction, SchemaUser, Verdict, compare};
use serde_json::{Value, json};

/// Compares two schemas and checks every witness with a validator.
#[track_caller]
pub(crate) fn compare_checked(old: &Value, new: &Value) -> Comparison {
    let res = compare(old, new).unwrap();
    let valid = |schema: &Value, document: &Value| {
        let options = jsonschema::options().should_validate_formats(true);
        options.should_ignore_unknown_formats(true).build(schema).unwrap().is_valid(document)
    };
    for change in &res.changes {
        for (user, from, to) in [(SchemaUser::Reader, old, new), (SchemaUser::Writer, new, old)] {
            let effect = change.effect(user);
            assert_eq!(effect.witness.is_some(), effect.verdict == Verdict::Break, "{change:?}");
            let Some(witness) = &effect.witness else { continue };
            assert!(valid(from, witness), "{change:?}");
            // A key that is ignored, or has another default, leaves the document valid.
            let is_silent = change.keyword == "default" || change.description.contains("no longer read");
            assert_eq!(valid(to, witness), is_silent, "{change:?}");
        }
    }
    res
}

#[track_caller]
fn check(old: Value, new: Value, keyword: &str, direction: Direction, reader: Verdict, writer: Verdict) {
    let comparison = compare_checked(&old, &new);
    let found: Vec<_> = comparison
        .changes
        .iter()
        .map(|it| (it.keyword.as_str(), it.direction, it.reader.verdict, it.writer.verdict))
        .collect();
    assert_eq!(found, [(keyword, direction, reader, writer)], "{comparison:?}");
}

fn open(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

fn closed(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

use Direction::{Annotation, Changed, Narrowed, Widened};
use Verdict::{Break, Harmless};

#[test]
fn removed_key() {
    let (old, new) = (json!({ "a": { "type": "string" }, "b": {} }), json!({ "b": {} }));
    check(open(old.clone()), open(new.clone()), "properties", Narrowed, Break, Harmless);
    check(closed(old), closed(new), "properties", Narrowed, Break, Harmless);
}

#[test]
fn added_key() {
    let (old, new) = (json!({ "b": {} }), json!({ "a": { "type": "string" }, "b": {} }));
    check(open(old.clone()), open(new.clone()), "properties", Widened, Harmless, Harmless);
    check(closed(old), closed(new), "properties", Widened, Harmless, Break);
}

#[test]
fn added_required() {
    let schema_with =
        |required: Value| json!({ "type": "object", "properties": { "a": {} }, "required": required });
    check(schema_with(json!([])), schema_with(json!(["a"])), "required", Narrowed, Break, Harmless);
    check(schema_with(json!(["a"])), schema_with(json!([])), "required", Widened, Harmless, Break);
}

#[test]
fn narrowed_type() {
    let schema_with = |kind: Value| open(json!({ "a": { "type": kind } }));
    check(
        schema_with(json!(["string", "integer"])),
        schema_with(json!("string")),
        "type",
        Narrowed,
        Break,
        Harmless,
    );
    check(schema_with(json!("integer")), schema_with(json!("number")), "type", Widened, Harmless, Break);
    check(schema_with(json!("integer")), schema_with(json!("string")), "type", Changed, Break, Break);
}

#[test]
fn removed_and_added_value_of_an_enum() {
    let schema_with = |values: Value| open(json!({ "a": { "enum": values } }));
    check(schema_with(json!(["x", "y"])), schema_with(json!(["x"])), "enum", Narrowed, Break, Harmless);
    check(schema_with(json!(["x"])), schema_with(json!(["x", "y"])), "enum", Widened, Harmless, Break);
    check(schema_with(json!([1])), schema_with(json!([1.0, 2])), "enum", Widened, Harmless, Break);
}

#[test]
fn tightened_length() {
    let schema_with = |length: u32| open(json!({ "a": { "type": "string", "maxLength": length } }));
    check(schema_with(10), schema_with(5), "maxLength", Narrowed, Break, Harmless);
    check(schema_with(5), schema_with(10), "maxLength", Widened, Harmless, Break);
}

#[test]
fn changed_pattern() {
    let schema_with = |pattern: &str| open(json!({ "a": { "type": "string", "pattern": pattern } }));
    check(schema_with("^[a-c]+$"), schema_with("^[b-d]+$"), "pattern", Changed, Break, Break);
    check(
        open(json!({ "a": { "type": "string" } })),
        schema_with("^[a-c]+$"),
        "pattern",
        Narrowed,
        Break,
        Harmless,
    );
}

#[test]
fn refused_other_keys() {
    let it = || json!({ "a": {} });
    check(open(it()), closed(it()), "additionalProperties", Narrowed, Break, Harmless);
    check(closed(it()), open(it()), "additionalProperties", Widened, Harmless, Break);
}

#[test]
fn changed_default() {
    let schema_with = |value: Value| open(json!({ "a": { "type": "integer", "default": value } }));
    check(schema_with(json!(1)), schema_with(json!(2)), "default", Changed, Break, Harmless);
}

#[test]
fn changed_description() {
    let schema_with = |text: &str| open(json!({ "a": { "type": "integer", "description": text } }));
    check(schema_with("One."), schema_with("Two."), "description", Annotation, Harmless, Harmless);
}

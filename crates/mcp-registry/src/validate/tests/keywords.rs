//! Each supported keyword, with a valid and an invalid value (DM-060).

use mcp_host_model::RawJson;

use crate::validate::{ValidationOutcome, ValidatorCache};

/// Checks the argument `a` against `schema`: `fits` must be valid, `fails` must be rejected with a violation about
/// it.
#[track_caller]
fn check(schema: &str, fits: &str, fails: &str) {
    let json = |text: String| RawJson::parse(text.into_bytes().into()).unwrap();
    let schema = json(format!("{{\"type\":\"object\",\"properties\":{{\"a\":{schema}}}}}"));
    let validators = ValidatorCache::new();
    let verdict = |value: &str| validators.check_arguments(&schema, &json(format!("{{\"a\":{value}}}")));
    assert_eq!(verdict(fits), Ok(ValidationOutcome::Valid), "{schema:?} takes {fits}");
    let invalid = verdict(fails).expect_err(&format!("{schema:?} refuses {fails}"));
    assert!(invalid.errors.iter().all(|it| it.pointer.starts_with("/a")), "{invalid}");
}

/// Checks that a keyword rejects no value.
#[track_caller]
fn describes(schema: &str, values: [&str; 2]) {
    for value in values {
        check(&format!("{{\"not\":{{\"const\":\"refused\"}},{}", &schema[1..]), value, "\"refused\"");
    }
}

#[test]
fn dm_060_types_and_unions_of_them() {
    check(r#"{"type":"string"}"#, r#""x""#, "1");
    check(r#"{"type":"number"}"#, "1.5", r#""x""#);
    check(r#"{"type":"integer"}"#, "1", "1.5");
    check(r#"{"type":"boolean"}"#, "true", "1");
    check(r#"{"type":"null"}"#, "null", "0");
    check(r#"{"type":"object"}"#, "{}", "[]");
    check(r#"{"type":"array"}"#, "[]", "{}");
    check(r#"{"type":["string","null"]}"#, "null", "1");
}

#[test]
fn dm_060_composition() {
    check(r#"{"oneOf":[{"type":"integer"},{"minimum":5}]}"#, "3", "7");
    check(r#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#, "null", r#""x""#);
    check(r#"{"allOf":[{"minimum":1},{"maximum":3}]}"#, "2", "4");
    check(r#"{"not":{"type":"string"}}"#, "1", r#""x""#);
}

#[test]
fn dm_060_literals() {
    check(r#"{"enum":["r","w",null]}"#, "null", r#""x""#);
    check(r#"{"const":7}"#, "7", "8");
    describes(r#"{"default":7}"#, ["7", r#""x""#]);
}

#[test]
fn dm_060_objects() {
    check(r#"{"properties":{"b":{"type":"integer"}}}"#, r#"{"b":1}"#, r#"{"b":"x"}"#);
    check(r#"{"required":["b"]}"#, r#"{"b":1}"#, "{}");
    check(r#"{"properties":{"b":true},"additionalProperties":false}"#, r#"{"b":1}"#, r#"{"c":1}"#);
    check(r#"{"additionalProperties":true,"type":"object"}"#, r#"{"c":1}"#, "1");
    check(r#"{"additionalProperties":{"type":"string"}}"#, r#"{"c":"x"}"#, r#"{"c":1}"#);
    check(r#"{"patternProperties":{"^x-":{"type":"string"}}}"#, r#"{"x-a":"x","b":1}"#, r#"{"x-a":1}"#);
    check(r#"{"propertyNames":{"pattern":"^[a-z]+$"}}"#, r#"{"abc":1}"#, r#"{"A":1}"#);
}

#[test]
fn dm_060_arrays() {
    check(r#"{"items":{"type":"string"}}"#, r#"["x"]"#, "[1]");
    check(r#"{"items":[{"type":"string"},{"type":"integer"}]}"#, r#"["x",1]"#, r#"["x","y"]"#);
    check(r#"{"prefixItems":[{"type":"string"},{"type":"integer"}]}"#, r#"["x",1]"#, r#"["x","y"]"#);
    check(r#"{"minItems":2}"#, "[1,2]", "[1]");
    check(r#"{"maxItems":1}"#, "[1]", "[1,2]");
    check(r#"{"uniqueItems":true}"#, "[1,2]", "[1,1]");
}

#[test]
fn dm_060_strings() {
    check(r#"{"minLength":2}"#, r#""ab""#, r#""a""#);
    check(r#"{"maxLength":2}"#, r#""éé""#, r#""abc""#);
    check(r#"{"pattern":"^[a-z]+$"}"#, r#""abc""#, r#""A""#);
    // Formats are left to the server, in every draft.
    describes(r#"{"format":"email"}"#, [r#""a@b.example""#, r#""nobody""#]);
}

#[test]
fn dm_060_numbers() {
    check(r#"{"minimum":1}"#, "1", "0");
    check(r#"{"maximum":1}"#, "1", "2");
    check(r#"{"exclusiveMinimum":1}"#, "2", "1");
    check(r#"{"exclusiveMaximum":1}"#, "0", "1");
    check(r#"{"multipleOf":0.5}"#, "1.5", "1.2");
}

#[test]
fn dm_060_annotations() {
    describes(r#"{"title":"A"}"#, ["1", "null"]);
    describes(r#"{"description":"An a."}"#, ["1", "null"]);
}

//! The quick look beside the validator: over rows, and over schemas and values that nobody chose.

use mcp_model::RawJson;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Compiled, compile, fits};

fn raw(json: &Value) -> RawJson {
    RawJson::from_value(json).unwrap()
}

/// What is said of `value`: `plain` where the quick look is sure, `fits` and `fails` where only the validator knows.
fn verdict(schema: &RawJson, value: &RawJson) -> Option<&'static str> {
    let Ok(Compiled { validator, cost, plain }) = compile(schema) else { return None };
    let most = cost.most_values(value.as_bytes().len()).unwrap_or(0);
    let is_plain = plain.is_some_and(|it| it.fits(value.as_str(), most));
    Some(match (is_plain, fits(&validator, &cost, value)) {
        (true, true) => "plain",
        (true, false) => "WRONG",
        (false, true) => "fits",
        (false, false) => "fails",
    })
}

#[track_caller]
fn check(schema: &str, rows: &[(&str, &str)]) {
    let json = |text: &str| RawJson::parse(text.to_owned().into()).unwrap();
    for (value, want) in rows {
        assert_eq!(verdict(&json(schema), &json(value)), Some(*want), "{value}");
    }
}

#[test]
fn dm_060_what_most_schemas_ask_is_seen_at_once() {
    let schema = r##"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","title":"T","properties":{
        "path":{"type":"string","description":"Where.","format":"uri","minLength":1,"maxLength":4},
        "count":{"type":"integer","minimum":1,"maximum":9,"default":3},"ratio":{"type":"number"},
        "mode":{"enum":["r","w",null]},"only":{"const":"x"},"deep":{"type":"boolean"},
        "tags":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2},
        "maybe":{"anyOf":[{"type":"integer"},{"type":"null"},{"type":"object","required":["a"]}]},
        "any":{},"all":true,"inner":{"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":{"type":"string"}}},
        "required":["path"],"additionalProperties":false}"##;
    check(
        schema,
        &[
            (r#"{"path":"a"}"#, "plain"),
            (r#"{"path":"\u00e9\n\"x"}"#, "plain"),
            (r#"{ "p\u0061th" : "a" }"#, "plain"),
            (r#"{"path":"abcde"}"#, "fails"),
            (r#"{"path":""}"#, "fails"),
            (r#"{"path":"a","count":9}"#, "plain"),
            (r#"{"path":"a","count":10}"#, "fails"),
            (r#"{"path":"a","count":3.0}"#, "fits"),
            (r#"{"path":"a","count":3.5}"#, "fails"),
            (r#"{"path":"a","ratio":-1.5e3}"#, "plain"),
            (r#"{"path":"a","ratio":18446744073709551615}"#, "plain"),
            (r#"{"path":"a","mode":"w"}"#, "plain"),
            (r#"{"path":"a","mode":null}"#, "plain"),
            (r#"{"path":"a","mode":"x"}"#, "fails"),
            (r#"{"path":"a","only":"x","deep":true}"#, "plain"),
            (r#"{"path":"a","tags":["x","y"]}"#, "plain"),
            (r#"{"path":"a","tags":[]}"#, "fails"),
            (r#"{"path":"a","tags":["x",1]}"#, "fails"),
            (r#"{"path":"a","maybe":null}"#, "plain"),
            (r#"{"path":"a","maybe":{"a":[]}}"#, "plain"),
            (r#"{"path":"a","maybe":{}}"#, "fails"),
            (r#"{"path":"a","any":{"x":[{"y":null}]},"all":1e9}"#, "plain"),
            (r#"{"path":"a","inner":{"a":null,"b":"x"}}"#, "plain"),
            (r#"{"path":"a","inner":{"b":1}}"#, "fails"),
            (r#"{"path":"a","more":1}"#, "fails"),
            // The last of them counts, which is for the validator to know.
            (r#"{"path":1,"path":"a"}"#, "fits"),
            ("{}", "fails"),
            ("[]", "fails"),
        ],
    );
    check("{}", &[("{}", "plain"), (r#"{"a":"\ud800"}"#, "fails")]);
    check(r#"{"required":["a"]}"#, &[(r#"{"a":{}}"#, "plain"), ("{}", "fails"), ("1", "plain")]);
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    check("{}", &[(&deep(127), "plain"), (&deep(128), "fails")]);
}

#[test]
fn dm_060_what_is_not_plain_is_left_to_the_validator() {
    check(
        r##"{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"null"}}}"##,
        &[(r#"{"a":1}"#, "fails")],
    );
    check(
        r#"{"properties":{"a":{"pattern":"^[x-z]+$"}}}"#,
        &[(r#"{"a":"xyz"}"#, "plain"), (r#"{"a":"w"}"#, "fails")],
    );
    check(r#"{"properties":{"a":{"pattern":"^x"}}}"#, &[(r#"{"a":"x"}"#, "fits"), (r#"{"a":"y"}"#, "fails")]);
    check(r#"{"anyOf":[{"type":"string"},{"minLength":2}]}"#, &[(r#""x""#, "fits")]);
    check(r#"{"oneOf":[{"type":"integer"},{"type":"number"}]}"#, &[("1", "fails"), ("1.5", "fits")]);
    check(r#"{"type":"object","minProperties":1}"#, &[("{}", "fails")]);
    // What nobody refers to asks for nothing.
    check(r#"{"$defs":{"a":{"pattern":"x(?!y)"}}}"#, &[("{}", "plain")]);
}

#[test]
fn so_many_values_are_looked_at() {
    let schema = raw(&json!({"items": {"enum": (0..64).map(|it| it.to_string()).collect::<Vec<_>>()}}));
    let items = |count: usize| raw(&json!(vec!["63"; count]));
    assert_eq!(verdict(&schema, &items(1_000)), Some("plain"));
    // More than may be checked at all: neither way says that it fits.
    assert_eq!(verdict(&schema, &items(500_000)), Some("fails"));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..12).prop_map(Value::from),
        prop_oneof![Just(0.5), Just(3.0), Just(-1e300)].prop_map(Value::from),
        "[ab\u{e9}]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[abc]", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// One keyword with its value, of those that are understood and of some that are not.
fn keyword(schema: BoxedStrategy<Value>) -> impl Strategy<Value = (&'static str, Value)> {
    let kinds = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let kind = prop::sample::select(kinds.to_vec());
    let named = |schema: BoxedStrategy<Value>| {
        prop::collection::vec(("[abc]", schema), 0..4)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    };
    let limit = || prop_oneof![(-2i64..9).prop_map(Value::from), Just(json!(2.5))];
    let length = || (0u64..4).prop_map(Value::from);
    let one = schema.clone();
    prop_oneof![
        4 => kind.clone().prop_map(|it| ("type", json!(it))),
        2 => prop::collection::hash_set(kind, 1..4).prop_map(|it| ("type", json!(it))),
        4 => named(schema.clone()).prop_map(|it| ("properties", it)),
        2 => prop::collection::hash_set("[abc]", 0..3).prop_map(|it| ("required", json!(it))),
        2 => one.clone().prop_map(|it| ("additionalProperties", it)),
        2 => one.clone().prop_map(|it| ("items", it)),
        1 => prop::collection::vec(value(), 1..4).prop_map(|it| ("enum", json!(it))),
        1 => value().prop_map(|it| ("const", it)),
        2 => prop::collection::vec(one.clone(), 1..4).prop_map(|it| ("anyOf", json!(it))),
        2 => prop::collection::vec(one.clone(), 1..4).prop_map(|it| ("oneOf", json!(it))),
        1 => limit().prop_map(|it| ("minimum", it)),
        1 => limit().prop_map(|it| ("maximum", it)),
        1 => length().prop_map(|it| ("minLength", it)),
        1 => length().prop_map(|it| ("maxLength", it)),
        1 => length().prop_map(|it| ("minItems", it)),
        1 => length().prop_map(|it| ("maxItems", it)),
        1 => one.prop_map(|it| ("not", it)),
        1 => prop::sample::select(vec!["^a", "^[ab]+$", "^[a]*$", "^[a-z]{2}$"]).prop_map(|it| ("pattern", json!(it))),
        1 => Just(("title", json!("a title"))),
    ]
}

fn schema() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![3 => Just(json!({})), 1 => any::<bool>().prop_map(Value::from)].boxed();
    leaf.prop_recursive(3, 32, 4, |inner| {
        prop::collection::vec(keyword(inner.boxed()), 1..4).prop_map(|members| {
            Value::Object(members.into_iter().map(|(key, it)| (key.to_owned(), it)).collect())
        })
    })
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn dm_060_a_quick_look_is_never_more_generous_than_the_validator(
        schema in schema(),
        values in prop::collection::vec(value(), 8),
    ) {
        for value in values {
            prop_assert_ne!(verdict(&raw(&schema), &raw(&value)), Some("WRONG"), "{} {}", schema, value);
        }
    }
}

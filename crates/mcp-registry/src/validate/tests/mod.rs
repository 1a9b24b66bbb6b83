//! Tests of validation, with common and hostile schemas.

use super::*;
use crate::name::display::truncate;

mod keywords;

fn json(text: &str) -> RawJson {
    RawJson::parse(text.as_bytes().to_vec().into()).unwrap()
}

/// `want` is `valid`, `unchecked: <reason>`, or the mistakes.
#[track_caller]
fn check(schema: &str, arguments: &str, want: &str) {
    let got = match ValidatorCache::new().check_arguments(&json(schema), &json(arguments)) {
        Ok(ValidationOutcome::Valid) => "valid".to_owned(),
        Ok(ValidationOutcome::Unvalidated(reason)) => format!("unchecked: {reason}"),
        Err(invalid) => invalid.to_string(),
    };
    assert_eq!(got, want, "{}", truncate(schema.to_owned(), 200));
}

#[test]
fn violation_has_the_pointer_and_the_expectation() {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string","maxLength":3},"n":{"type":"integer","minimum":1},
        "mode":{"enum":["r","w"]},"tags":{"type":"array","items":{"type":"string"}}},"required":["path"],"additionalProperties":false}"#;
    check(schema, r#"{"path":"a"}"#, "valid");
    check(schema, "{}", "\"path\" is a required property");
    check(schema, r#"{"path":7}"#, "/path: value is not of type \"string\"");
    check(schema, r#"{"path":"hunter2"}"#, "/path: value is longer than 3 characters");
    check(schema, r#"{"path":"a","n":0}"#, "/n: value is less than the minimum of 1");
    check(schema, r#"{"path":"a","mode":"secret"}"#, "/mode: value is not one of \"r\", \"w\"");
    check(schema, r#"{"path":"a","tags":["x",1]}"#, "/tags/1: value is not of type \"string\"");
    check(schema, r#"{"path":"a","hunter2":1}"#, "unknown property: `hunter2`");
    check(schema, "[]", "value is not of type \"object\"");
    check(
        schema,
        r#"{"n":"x","path":1}"#,
        "/n: value is not of type \"integer\"\n/path: value is not of type \"string\"",
    );
}

#[test]
fn alternatives_say_why_each_fails() {
    let schema = r#"{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"object","properties":{"b":{"type":"null"}}}]}}}"#;
    check(schema, r#"{"a":"x"}"#, "valid");
    check(
        schema,
        r#"{"a":{"b":1}}"#,
        "/a: value fits none of 2 alternatives: value is not of type \"string\"; /b: value is not of type \"null\"",
    );
}

#[test]
fn dm_060_draft_is_that_of_schema_or_found_by_tuples() {
    let tuple = r#"{"properties":{"a":{"items":[{"type":"string"}]}}}"#;
    check(tuple, r#"{"a":["x",1]}"#, "valid");
    check(tuple, r#"{"a":[1]}"#, "/a/0: value is not of type \"string\"");
    check(
        r#"{"properties":{"a":{"prefixItems":[{"type":"string"}]}}}"#,
        r#"{"a":[1]}"#,
        "/a/0: value is not of type \"string\"",
    );
    // In draft-07 `prefixItems` is not a keyword.
    let named = r#"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"prefixItems":[{"type":"string"}]}}}"#;
    check(named, r#"{"a":[1]}"#, "valid");
    // A default is data, so its `items` does not determine the draft. A property with the name `default` is a
    // schema.
    check(
        r#"{"default":{"items":[]},"properties":{"a":{"prefixItems":[false]}}}"#,
        r#"{"a":[1]}"#,
        "/a/0: False schema does not allow value",
    );
    check(
        r#"{"properties":{"default":{"items":[{"type":"string"}]}}}"#,
        r#"{"default":[1]}"#,
        "/default/0: value is not of type \"string\"",
    );
}

#[test]
fn arguments_pass_if_the_schema_cannot_be_used() {
    check(
        r#"{"type":"nonsense"}"#,
        "{}",
        "unchecked: its schema cannot be used: /type is `nonsense`, which is no type",
    );
    let mine = "unchecked: its schema cannot be used: Unknown meta-schema: 'https://example.com/mine'. Custom \
        meta-schemas must be registered in the registry before use";
    check(r#"{"$schema":"https://example.com/mine"}"#, "{}", mine);
    let elsewhere = "unchecked: its schema cannot be used: Resource 'https://example.com/s.json' is not present in a \
        registry and retrieving it failed: Retrieval is disabled, cannot fetch https://example.com/s.json";
    check(r#"{"$ref":"https://example.com/s.json"}"#, "{}", elsewhere);
    let missing = "unchecked: its schema cannot be used: /$ref is `#/$defs/missing`, which does not exist";
    check(r##"{"$ref":"#/$defs/missing"}"##, "{}", missing);
    check(
        r#"{"type":"string"}"#,
        "{}",
        "unchecked: its schema cannot be used: its type must be `object` and is `string`",
    );
    let pattern = "unchecked: its schema cannot be used: /properties/a/pattern: value is not a \"regex\"";
    check(r#"{"properties":{"a":{"pattern":"("}}}"#, "{}", pattern);
    check(r#"{"properties":{"a":{"pattern":"((a{1000}){1000}){1000}"}}}"#, "{}", pattern);
}

#[test]
fn messages_contain_no_argument_values() {
    let schema = r#"{"properties":{"a":{"const":7},"b":{"not":{"type":"string"}},"c":{"multipleOf":2},"d":{"uniqueItems":true},
        "e":{"minLength":9},"f":{"contains":{"type":"null"}},"g":{"pattern":"^x"},"h":{"oneOf":[{"type":"null"},{"const":1}]},
        "i":{"maximum":1},"j":{"items":{"type":"null"}}}}"#;
    let arguments = r#"{"a":"hunter2","b":"hunter2","c":7777777,"d":["hunter2","hunter2"],"e":"hunter2","f":["hunter2"],"g":"hunter2",
        "h":"hunter2","i":7777777,"j":["hunter2"]}"#;
    let invalid = ValidatorCache::new().check_arguments(&json(schema), &json(arguments)).unwrap_err();
    assert_eq!(invalid.errors.len(), 10, "{invalid}");
    assert!(
        !invalid.to_string().contains("hunter2") && !invalid.to_string().contains("7777777"),
        "{invalid}"
    );
    check(
        r#"{"propertyNames":{"pattern":"^a"}}"#,
        r#"{"hunter2":5}"#,
        "a property's name is wrong: value does not match \"^a\"",
    );
}

#[test]
fn formats_are_not_checked_in_any_draft() {
    for schema in ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
    {
        let schema = format!("{{\"$schema\":{schema:?},\"properties\":{{\"a\":{{\"format\":\"email\"}}}}}}");
        check(&schema, r#"{"a":"nobody"}"#, "valid");
    }
}

#[test]
fn references_are_resolved() {
    let tree = r##"{"$ref":"#/$defs/a%20b","$defs":{"a b":{"type":"object","properties":{"c":{"$ref":"#/$defs/a%20b"},"n":{"type":"integer"}}}}}"##;
    check(tree, r#"{"c":{"c":{"n":1}}}"#, "valid");
    check(tree, r#"{"c":{"c":{"n":"x"}}}"#, "/c/c/n: value is not of type \"integer\"");
}

#[test]
fn endless_schema_is_not_compiled() {
    let endless = "unchecked: its schema refers to itself without end";
    check(r##"{"$ref":"#"}"##, "{}", endless);
    check(
        r##"{"properties":{"a":{"allOf":[{"$ref":"#/$defs/x"}]}},"$defs":{"x":{"not":{"$ref":"#/properties/a"}}}}"##,
        "{}",
        endless,
    );
    // The cycle descends into the arguments, so a check ends with them.
    check(r##"{"anyOf":[{"properties":{"a":{"$ref":"#"}}}]}"##, r#"{"a":{"a":{}}}"#, "valid");
}

#[test]
fn schema_that_doubles_at_each_step_is_refused() {
    let steps: Vec<String> = (0..40)
        .map(|it| {
            format!(
                "\"s{it}\":{{\"allOf\":[{{\"$ref\":\"#/$defs/s{0}\"}},{{\"$ref\":\"#/$defs/s{0}\"}}]}}",
                it + 1
            )
        })
        .collect();
    let schema = format!(
        "{{\"$ref\":\"#/$defs/s0\",\"$defs\":{{{},\"s40\":{{\"type\":\"object\"}}}}}}",
        steps.join(",")
    );
    check(&schema, "{}", "unchecked: the schema is too large to check the arguments");
}

#[test]
fn doubling_recursive_schema_is_checked_fast() {
    let schema = r##"{"$defs":{"t":{"allOf":[{"properties":{"c":{"$ref":"#/$defs/t"}}},{"properties":{"c":{"$ref":"#/$defs/t"}}}],"type":"object"}},"$ref":"#/$defs/t"}"##;
    let nested =
        |depth: usize, inner: &str| format!("{}{inner}{}", "{\"c\":".repeat(depth), "}".repeat(depth));
    check(schema, &nested(100, "{}"), "valid");
    check(schema, &nested(100, "1"), "the arguments do not fit the tool's schema");
    check(schema, &nested(2, "1"), &["/c/c: value is not of type \"object\""; 4].join("\n"));
}

#[test]
fn depth_size_and_counts_are_bounded() {
    let deep = format!("{}{{}}{}", "{\"not\":".repeat(150), "}".repeat(150));
    check(&deep, "{}", "unchecked: its schema is nested too deeply");
    let chain: Vec<String> =
        (0..300).map(|it| format!("\"s{it}\":{{\"$ref\":\"#/$defs/s{}\"}}", it + 1)).collect();
    check(
        &format!("{{\"$ref\":\"#/$defs/s0\",\"$defs\":{{{}}}}}", chain.join(",")),
        "{}",
        "unchecked: its schema is nested too deeply",
    );
    check(
        &format!("{{\"allOf\":[{}]}}", vec!["{\"$ref\":\"#/$defs/a\"}"; 501].join(",")),
        "{}",
        "unchecked: its schema has too many references",
    );
    check(
        &format!("{{\"allOf\":[{}]}}", vec!["{\"$ref\":\"#a\"}"; 17].join(",")),
        "{}",
        "unchecked: its schema has too many references",
    );
    check(
        &format!("{{\"allOf\":[{}]}}", vec!["{\"pattern\":\"a\"}"; 129].join(",")),
        "{}",
        "unchecked: its schema has more than 128 patterns",
    );
    check(
        &format!("{{\"description\":\"{}\"}}", "x".repeat(256 << 10)),
        "{}",
        "unchecked: its schema is larger than 256 KiB",
    );
    check(
        "{}",
        &format!("{}{}", "[".repeat(1_000), "]".repeat(1_000)),
        "the arguments are nested too deeply",
    );
    check(
        "{}",
        r#"{"\ud800":1}"#,
        "the arguments cannot be read: unexpected end of hex escape at line 1 column 9",
    );
    check("{}", r#"{"a":1e999}"#, "the arguments cannot be read: number out of range at line 1 column 10");
}

#[test]
fn catastrophic_backtracking_is_stopped() {
    let subject = "a".repeat(60);
    let schema = r#"{"properties":{"a":{"pattern":"^(?=(a+)+$)(a+)+\\1b$"}}}"#;
    let started =
        ValidatorCache::new().check_arguments(&json(schema), &json(&format!("{{\"a\":\"{subject}\"}}")));
    assert!(!started.unwrap_err().to_string().contains(&subject));
}

#[test]
fn backtracking_patterns_match_few_texts_only() {
    let schema = r#"{"properties":{"a":{"items":{"pattern":"^(?=(a+)+$)(a+)+\\1b$"}}}}"#;
    let texts = |count: usize| format!("{{\"a\":[{}]}}", vec![r#""ab""#; count].join(","));
    check(schema, &texts(2_000), "unchecked: the schema has too many patterns to check the arguments");
    // A pattern that only looks ahead uses the backtracking engine too, so fewer texts are checked.
    check(r#"{"properties":{"a":{"items":{"pattern":"^(?!x)"}}}}"#, &texts(1_000), "valid");
    // A pattern of the linear-time engine has no such limit.
    check(r#"{"properties":{"a":{"items":{"pattern":"^a"}}}}"#, &texts(20_000), "valid");
}

#[test]
fn text_matched_by_patterns_is_bounded() {
    let patterns = vec![r#"{"pattern":"x*y?"}"#; 100].join(",");
    let schema = format!(r#"{{"properties":{{"a":{{"anyOf":[{patterns}]}}}}}}"#);
    let text = |length: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(length));
    check(&schema, &text(1 << 20), "unchecked: the schema has too many patterns to check the arguments");
    check(&schema, &text(1 << 10), "valid");
}

#[test]
fn compared_values_are_counted() {
    let values: Vec<String> = (0..40_000).map(|it| it.to_string()).collect();
    let schema = format!(r#"{{"items":{{"enum":[{}]}}}}"#, values.join(","));
    let items = |count: usize| format!("[{}]", vec!["39999"; count].join(","));
    check(&schema, &items(10_000), "unchecked: the schema is too large to check the arguments");
    check(&schema, &items(100), "valid");
    let names: Vec<String> = (0..20_000).map(|it| format!("\"n{it}\"")).collect();
    let schema = format!(r#"{{"items":{{"required":[{}]}}}}"#, names.join(","));
    check(
        &schema,
        &format!("[{}]", vec!["{}"; 10_000].join(",")),
        "unchecked: the schema is too large to check the arguments",
    );
}

/// `want` is `valid`, `unchecked: <reason>`, or the mistakes.
#[track_caller]
fn check_result(schema: &str, structured: Option<&str>, want: &str) {
    let structured = structured.map(json);
    let got = match ValidatorCache::new().check_result(&json(schema), structured.as_ref()) {
        Ok(ValidationOutcome::Valid) => "valid".to_owned(),
        Ok(ValidationOutcome::Unvalidated(reason)) => format!("unchecked: {reason}"),
        Err(invalid) => invalid.to_string(),
    };
    assert_eq!(got, want);
}

#[test]
fn structured_result_is_checked_against_the_output_schema() {
    let schema = r#"{"type":"object","properties":{"celsius":{"type":"number"}},"required":["celsius"]}"#;
    check_result(schema, Some(r#"{"celsius":21.5}"#), "valid");
    check_result(schema, Some(r#"{"celsius":"hunter2"}"#), "/celsius: value is not of type \"number\"");
    check_result(schema, Some("{}"), "\"celsius\" is a required property");
    check_result(schema, None, "the tool promises structured content, and there is none");
    let values: Vec<String> = (0..40_000).map(|it| it.to_string()).collect();
    let large = format!(r#"{{"items":{{"enum":[{}]}}}}"#, values.join(","));
    let items = format!("[{}]", vec!["1"; 10_000].join(","));
    check_result(&large, Some(&items), "unchecked: the schema is too large to check the structured content");
    check_result(r#"{"type":"nonsense"}"#, None, "the tool promises structured content, and there is none");
}

#[test]
fn messages_are_short_and_at_most_ten() {
    let items = vec!["1"; 50].join(",");
    let schema = r#"{"properties":{"a":{"items":{"type":"string"}}}}"#;
    let invalid = ValidatorCache::new()
        .check_arguments(&json(schema), &json(&format!("{{\"a\":[{items}]}}")))
        .unwrap_err();
    assert_eq!(invalid.errors.len(), ValidatorCache::MAX_ERRORS);
    let name = "n".repeat(10_000);
    let invalid = ValidatorCache::new()
        .check_arguments(
            &json("{\"additionalProperties\":{\"type\":\"string\"}}"),
            &json(&format!("{{\"{name}\":1}}")),
        )
        .unwrap_err();
    assert!(invalid.to_string().len() < 1_000);
}

#[test]
fn schemas_are_compiled_once_and_the_least_recently_used_is_evicted() {
    let validators = ValidatorCache::new();
    let schema = |number: usize| json(&format!("{{\"title\":\"{number}\"}}"));
    for number in 0..BoundedCache::MAX_ENTRIES {
        validators.check_arguments(&schema(number), &json("{}")).unwrap();
    }
    let (first, second) = (validators.get_or_compile(&schema(0)), validators.get_or_compile(&schema(0)));
    assert!(Arc::ptr_eq(&first, &second));
    validators.check_arguments(&schema(BoundedCache::MAX_ENTRIES), &json("{}")).unwrap();
    let cache = validators.entries.lock();
    assert_eq!(cache.entries.len(), BoundedCache::MAX_ENTRIES);
    assert!(cache.entries.contains(schema(0).as_bytes()), "just used");
    assert!(!cache.entries.contains(schema(1).as_bytes()), "the least recently used");
    assert_eq!(cache.bytes, cache.entries.iter().map(|(text, _)| text.len()).sum::<usize>());
}

/// Checks values against a schema. Each row is a value and whether it is valid.
#[track_caller]
fn check_validity(schema: &str, rows: &[(&str, bool)]) {
    let validators = ValidatorCache::new();
    for (value, want) in rows {
        let outcome = validators.check_arguments(&json(schema), &json(value));
        assert!(!matches!(outcome, Ok(ValidationOutcome::Unvalidated(_))), "{value}");
        assert_eq!(outcome.is_ok(), *want, "{value}");
    }
}

#[test]
fn dm_060_common_keywords_accept_and_reject() {
    let schema = r##"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","title":"T","properties":{
        "path":{"type":"string","description":"Where.","format":"uri","minLength":1,"maxLength":4},
        "count":{"type":"integer","minimum":1,"maximum":9,"default":3},"ratio":{"type":"number"},
        "mode":{"enum":["r","w",null]},"only":{"const":"x"},"deep":{"type":"boolean"},
        "tags":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2},
        "maybe":{"anyOf":[{"type":"integer"},{"type":"null"},{"type":"object","required":["a"]}]},
        "any":{},"all":true,"inner":{"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":{"type":"string"}}},
        "required":["path"],"additionalProperties":false}"##;
    check_validity(
        schema,
        &[
            (r#"{"path":"a"}"#, true),
            (r#"{"path":"\u00e9\n\"x"}"#, true),
            (r#"{ "p\u0061th" : "a" }"#, true),
            (r#"{"path":"abcde"}"#, false),
            (r#"{"path":""}"#, false),
            (r#"{"path":"a","count":9}"#, true),
            (r#"{"path":"a","count":10}"#, false),
            (r#"{"path":"a","count":3.0}"#, true),
            (r#"{"path":"a","count":3.5}"#, false),
            (r#"{"path":"a","ratio":-1.5e3}"#, true),
            (r#"{"path":"a","ratio":18446744073709551615}"#, true),
            (r#"{"path":"a","mode":"w"}"#, true),
            (r#"{"path":"a","mode":null}"#, true),
            (r#"{"path":"a","mode":"x"}"#, false),
            (r#"{"path":"a","only":"x","deep":true}"#, true),
            (r#"{"path":"a","tags":["x","y"]}"#, true),
            (r#"{"path":"a","tags":[]}"#, false),
            (r#"{"path":"a","tags":["x",1]}"#, false),
            (r#"{"path":"a","maybe":null}"#, true),
            (r#"{"path":"a","maybe":{"a":[]}}"#, true),
            (r#"{"path":"a","maybe":{}}"#, false),
            (r#"{"path":"a","any":{"x":[{"y":null}]},"all":1e9}"#, true),
            (r#"{"path":"a","inner":{"a":null,"b":"x"}}"#, true),
            (r#"{"path":"a","inner":{"b":1}}"#, false),
            (r#"{"path":"a","more":1}"#, false),
            // Of a duplicate key the last value counts.
            (r#"{"path":1,"path":"a"}"#, true),
            ("{}", false),
            ("[]", false),
        ],
    );
    check_validity("{}", &[("{}", true), (r#"{"a":"\ud800"}"#, false)]);
    check_validity(r#"{"required":["a"]}"#, &[(r#"{"a":{}}"#, true), ("{}", false), ("1", true)]);
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    check_validity("{}", &[(&nested(127), true), (&nested(128), false)]);
    // A definition without a reference to it has no effect.
    check_validity(r#"{"$defs":{"a":{"pattern":"x(?!y)"}}}"#, &[("{}", true)]);
}

#[test]
fn cache_is_bounded_in_bytes() {
    let validators = ValidatorCache::new();
    for at in 0..40 {
        let schema = format!("{{\"title\":\"{at}{}\"}}", "x".repeat(250 << 10));
        validators.check_arguments(&json(&schema), &json("{}")).unwrap();
    }
    let cache = validators.entries.lock();
    assert!(cache.bytes <= BoundedCache::MAX_BYTES && cache.entries.len() < 40);
}

/// The deepest accepted check must fit into half the stack of a usual pool thread.
#[test]
fn deepest_check_fits_a_small_stack() {
    let chain = |length: usize, last: &str| {
        let steps: Vec<String> = (0..length)
            .map(|it| format!("\"s{it}\":{{\"allOf\":[{{\"$ref\":\"#/$defs/s{}\"}}]}}", it + 1))
            .collect();
        format!("{{\"$ref\":\"#/$defs/s0\",\"$defs\":{{{},\"s{length}\":{last}}}}}", steps.join(","))
    };
    let nested =
        |depth: usize, inner: &str| format!("{}{inner}{}", "{\"c\":".repeat(depth), "}".repeat(depth));
    let straight = chain(97, r#"{"type":"object"}"#);
    let round = chain(7, r##"{"type":"object","properties":{"c":{"$ref":"#/$defs/s0"}}}"##);
    let walk = move || {
        check(&straight, "{}", "valid");
        check(&straight, "[]", "value is not of type \"object\"");
        check(&round, &nested(110, "{}"), "valid");
        check(&round, &nested(110, "1"), "the arguments do not fit the tool's schema");
        check(
            &round,
            &nested(125, "{}"),
            "unchecked: the schema is recursive, and too deep to check the arguments",
        );
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(walk).unwrap().join().unwrap();
}

#[test]
fn tool_remembers_its_compiled_schema_while_the_cache_has_it() {
    let validators = ValidatorCache::new();
    let (schema, slot) = (json(r#"{"required":["a"]}"#), SchemaSlot::default());
    let is_valid = || validators.check_arguments_in(&slot, &schema, &json(r#"{"a":1}"#)).is_ok();
    assert!(is_valid());
    let compiled = slot.0.lock().upgrade().unwrap();
    assert!(Arc::ptr_eq(&compiled, &validators.get_or_compile(&schema)) && is_valid());
    drop(compiled);
    *validators.entries.lock() = BoundedCache::default();
    assert!(slot.0.lock().upgrade().is_none(), "the cache bounds the memory");
    assert!(is_valid() && slot.0.lock().upgrade().is_some());
}

//! Tests of the projections: one schema, and the schema that each provider gets.

use mcp_host_model::{NameLimit, ServerId, read_tools};

use super::*;
use crate::name::exposed_name::ExposedName;

fn tool(name: &str, schema: &str) -> ExposedTool {
    let page = format!(r#"{{"tools":[{{"name":"x","inputSchema":{schema}}}]}}"#);
    let tool =
        read_tools(&RawJson::parse(page.into_bytes().into()).unwrap()).unwrap().into_shared().remove(0);
    ExposedTool::new(ExposedName::new(name.to_owned()), ServerId::parse("s").unwrap(), tool)
}

#[test]
fn tools_for_apps_only_are_left_out() {
    let names = |meta: &str| {
        let page = format!(r#"{{"tools":[{{"name":"x","inputSchema":{{"type":"object"}}{meta}}}]}}"#);
        let mut tools = read_tools(&RawJson::parse(page.into_bytes().into()).unwrap()).unwrap().into_shared();
        let name = ExposedName::new("x".to_owned());
        let tool = ExposedTool::new(name, ServerId::parse("s").unwrap(), tools.remove(0));
        let projection = project(&[tool], Provider::OpenAiStrict);
        assert_eq!(projection.problems, []);
        projection.tools.len()
    };
    for (meta, count) in [
        ("", 1),
        (r#","_meta":{"ui":{"visibility":["model"]}}"#, 1),
        (r#","_meta":{"ui":{"visibility":["app","model"]}}"#, 1),
        (r#","_meta":{"ui":{"visibility":["app"]}}"#, 0),
        (r#","_meta":{"ui":{"visibility":[]}}"#, 0),
        (r#","_meta":{"ui":{"visibility":"app"}}"#, 1),
        (r#","_meta":{"visibility":["app"]}"#, 1),
    ] {
        assert_eq!(names(meta), count, "{meta}");
    }
}

/// Checks the projected schema. `want` is the schema, `none`, `!` and the reason why the tool is left out, or `~` and
/// the reason why it is not strict.
#[track_caller]
fn check(provider: Provider, schema: &str, want: &str) {
    let tools = [tool("t", schema), tool("t2", r#"{"type":"object"}"#)];
    let Projection { provider: _, tools: got, problems } = project(&tools, provider);
    assert_eq!(got.last().map(|it| it.name.as_str()), Some("t2"), "the other tool is accepted");
    let reason = problems.first().map(|it| it.message.split_once(": ").expect("a reason").1);
    let got = match (reason, &got[0].not_strict, &got[0].schema) {
        (Some(reason), _, _) => format!("!{reason}"),
        (None, Some(reason), _) => format!("~{reason}"),
        (None, None, None) => "none".to_owned(),
        (None, None, Some(schema)) => schema.as_str().to_owned(),
    };
    assert_eq!(got, want, "{schema}");
    assert_eq!(project(&tools, provider), project(&tools, provider));
}

#[test]
fn dm_061_dm_064_passthrough_changes_no_byte() {
    for schema in ["{ \"b\":1,  \"a\":{\"$ref\":\"#\"} }", "{}", r#"{"type":"nonsense"}"#] {
        check(Provider::Passthrough, schema, schema);
    }
}

/// The schema of a tool with one required argument `a`.
fn of(schema: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"a":{schema}}},"required":["a"]}}"#)
}

/// Checks OpenAI's schema of a tool with the argument `a`. `want` is the schema of `a`, or `~` and the reason why
/// the tool is not strict.
#[track_caller]
fn strict(schema: &str, want: &str) {
    let whole = |it: &str| {
        format!(
            r#"{{"additionalProperties":false,"properties":{{"a":{it}}},"required":["a"],"type":"object"}}"#
        )
    };
    check(
        Provider::OpenAiStrict,
        &of(schema),
        &if want.starts_with('~') { want.to_owned() } else { whole(want) },
    );
}

#[test]
fn dm_063_openai_strict_closes_objects() {
    let root = |schema: &str, want: &str| check(Provider::OpenAiStrict, schema, want);
    root(
        r#"{"type":"object"}"#,
        r#"{"additionalProperties":false,"properties":{},"required":[],"type":"object"}"#,
    );
    root(r#"{"type":"object","properties":{"a":{"type":"null"}}}"#, "~its property `a` is optional");
    root(r#"{"type":"object","additionalProperties":true}"#, "~`additionalProperties` cannot be expressed");
    root(r#"{"anyOf":[{"type":"null"}]}"#, "!the root has `anyOf`");
    root(r#"{"type":["object","null"]}"#, "!the root's `type` is not `object`");
    root(r#"{"type":"object","enum":[{}]}"#, "!the root has `enum`");
    root(r#"{"type":"nonsense"}"#, "!its schema is not valid in draft 2020-12");
    strict(
        r#"{"properties":{"b":{"type":"integer"}},"required":["b"]}"#,
        r#"{"additionalProperties":false,"properties":{"b":{"type":"integer"}},"required":["b"],"type":"object"}"#,
    );
    strict(r#"{"type":"object"}"#, "~an object of unknown properties cannot be expressed");
}

#[test]
fn dm_063_openai_strict_keeps_keywords_per_type() {
    strict(
        r#"{"type":"string","minLength":1,"maxLength":9,"pattern":"^a","format":"email","default":"a@b","title":"A"}"#,
        r#"{"format":"email","pattern":"^a","title":"A","type":"string"}"#,
    );
    strict(r#"{"type":["string","null"],"format":"uri"}"#, r#"{"type":["string","null"]}"#);
    strict(
        r#"{"type":"integer","minimum":1,"exclusiveMaximum":9,"multipleOf":2,"pattern":"^a"}"#,
        r#"{"exclusiveMaximum":9,"minimum":1,"multipleOf":2,"type":"integer"}"#,
    );
    strict(
        r#"{"type":"array","items":{"type":"boolean","minimum":1},"minItems":1,"uniqueItems":true}"#,
        r#"{"items":{"type":"boolean"},"minItems":1,"type":"array"}"#,
    );
    strict(r#"{"type":"array"}"#, "~a list of unknown items cannot be expressed");
    strict(r#"{"type":["string","integer"]}"#, "~a union of several types cannot be expressed");
    strict(r#"{"type":["string","integer","null"]}"#, "~a union of several types cannot be expressed");
}

#[test]
fn dm_063_openai_strict_requires_a_type_or_alternatives() {
    strict("{}", "~it has a schema without `type`");
    strict("true", "~it has a schema that is not an object");
    strict(r#"{"enum":["r","w"]}"#, r#"{"enum":["r","w"],"type":"string"}"#);
    strict(r#"{"enum":["r",null]}"#, r#"{"enum":["r",null],"type":["null","string"]}"#);
    strict(r#"{"const":1}"#, r#"{"const":1,"type":"integer"}"#);
    strict(r#"{"enum":["r",1]}"#, "~a union of several types cannot be expressed");
    strict(
        r#"{"anyOf":[{"type":"string"},{"type":"null"}],"description":"d","default":null}"#,
        r#"{"anyOf":[{"type":"string"},{"type":"null"}],"description":"d"}"#,
    );
    strict(r#"{"type":"string","anyOf":[{"minLength":1}]}"#, "~`type` beside `anyOf` cannot be expressed");
    for keyword in ["oneOf", "allOf"] {
        strict(
            &format!(r#"{{"{keyword}":[{{"type":"string"}}]}}"#),
            &format!("~`{keyword}` cannot be expressed"),
        );
    }
    strict(r#"{"type":"string","not":{"const":"x"}}"#, "~`not` cannot be expressed");
}

#[test]
fn dm_063_openai_strict_has_limits() {
    let texts = |count: usize, length: usize| {
        let each = |it: usize| format!("\"{it:0length$}\"");
        let all: Vec<String> = (0..count).map(each).collect();
        format!(r#"{{"enum":[{}],"type":"string"}}"#, all.join(","))
    };
    strict(&texts(1_001, 4), "~it has more than 1000 enumerated values");
    strict(&texts(251, 60), "~an enumeration of more than 250 values has more than 15000 characters");
    strict(&texts(251, 59), &texts(251, 59));
    strict(&texts(250, 61), &texts(250, 61));
    let long = "x".repeat(120_001);
    strict(&format!(r#"{{"const":"{long}"}}"#), "~its names and values have more than 120000 characters");
    let names: Vec<String> = (0..5_001).map(|it| format!(r#""p{it}":{{"type":"null"}}"#)).collect();
    let many = format!(r#"{{"type":"object","properties":{{{}}}}}"#, names.join(","));
    check(Provider::OpenAiStrict, &many, "~it has more than 5000 properties");
    // `a` is the first level below the root.
    let lists = |levels: usize| {
        format!(
            "{}{}{}",
            r#"{"items":"#.repeat(levels),
            r#"{"type":"null"}"#,
            r#","type":"array"}"#.repeat(levels)
        )
    };
    strict(&lists(9), &lists(9));
    strict(&lists(10), "~its schema is too large or too deep when written out");
}

#[test]
fn dm_063_openai_gets_other_tools_with_strict_false() {
    #[track_caller]
    fn check(schema: &str, want: &str) {
        let projection = project(&[tool("t", schema)], Provider::OpenAiStrict);
        assert_eq!(projection.problems, []);
        let [projected] = &projection.tools[..] else { panic!("one tool") };
        assert_eq!(projected.schema.as_ref().unwrap().as_str(), want);
        assert_eq!(projected.is_adapted, schema != want);
        let function = &projection.to_tools_json().read::<Value>().unwrap()[0]["function"];
        assert_eq!(function["strict"], false);
        assert_eq!(function["parameters"], serde_json::from_str::<Value>(want).unwrap());
    }
    // Sent unchanged, byte for byte.
    for schema in [
        r#"{ "type":"object", "properties":{"a":{"type":"string","minLength":1}} }"#,
        r##"{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"$ref":"#/$defs/n"}]}},"$defs":{"n":{}}}"##,
        r##"{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#"}}},"required":["a"]}"##,
    ] {
        check(schema, schema);
    }
    check(
        r#"{"type":"object","additionalProperties":true}"#,
        r#"{"additionalProperties":true,"properties":{},"type":"object"}"#,
    );
    check(
        r#"{"properties":{"a":{"type":["array","null"],"default":{"type":"array"}}},"type":"object"}"#,
        r#"{"properties":{"a":{"default":{"type":"array"},"items":{},"type":["array","null"]}},"type":"object"}"#,
    );
}

#[test]
fn dm_065_a_tool_that_openai_refuses_in_any_form_is_left_out() {
    let left_out = |schema: &str, want: &str| check(Provider::OpenAiStrict, schema, want);
    for keyword in ["anyOf", "oneOf", "allOf", "not", "enum"] {
        let value = if keyword == "not" { "{}" } else { "[{}]" };
        left_out(
            &format!(r#"{{"type":"object","{keyword}":{value}}}"#),
            &format!("!the root has `{keyword}`"),
        );
    }
    left_out(
        r#"{"type":"object","properties":{"a":{"items":[{}]}}}"#,
        "!its schema is not valid in draft 2020-12",
    );
    left_out(
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}"##,
        "!`#/$defs/x` leads nowhere inside the schema",
    );
}

/// Checks Gemini's schema of a tool with the argument `a`. `want` is the schema of `a`, or `!` and the reason why
/// the tool is left out.
#[track_caller]
fn gemini(schema: &str, want: &str) {
    let whole = |it: &str| format!(r#"{{"properties":{{"a":{it}}},"required":["a"],"type":"object"}}"#);
    check(Provider::Gemini, &of(schema), &if want.starts_with('!') { want.to_owned() } else { whole(want) });
}

#[test]
fn dm_063_gemini_schemas_are_openapi() {
    let root = |schema: &str, want: &str| check(Provider::Gemini, schema, want);
    root(r#"{"type":"object","properties":{}}"#, "none");
    root(r#"{"type":"object","additionalProperties":false}"#, "none");
    // A required property that is not declared would fail the whole request.
    root(
        r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["b","a"]}"#,
        r#"{"properties":{"a":{"type":"integer"}},"required":["a"],"type":"object"}"#,
    );
    root(
        r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["b"]}"#,
        r#"{"properties":{"a":{"type":"integer"}},"type":"object"}"#,
    );
    for name in ["a-b", "$top", "1st", "a.b", &"x".repeat(65)] {
        root(
            &format!(r#"{{"type":"object","properties":{{"{name}":{{"type":"string"}}}}}}"#),
            &format!("!the provider does not accept the property name `{name}`"),
        );
    }
    gemini(
        r#"{"type":"string","minLength":1,"pattern":"^a","contentEncoding":"base64","default":"x","examples":["y"]}"#,
        r#"{"minLength":1,"pattern":"^a","type":"string"}"#,
    );
    gemini(r#"{"type":"integer","minimum":1,"exclusiveMinimum":0}"#, r#"{"minimum":1,"type":"integer"}"#);
    gemini(
        r#"{"type":"array","items":{"type":"string"},"maxItems":3}"#,
        r#"{"items":{"type":"string"},"maxItems":3,"type":"array"}"#,
    );
    gemini(r#"{"type":"array"}"#, "!a list of unknown items cannot be expressed");
    gemini(r#"{"type":"array","items":[{"type":"string"}]}"#, "!its schema is not valid in draft 2020-12");
    gemini(r#"{"type":"object"}"#, "!an object of unknown properties cannot be expressed");
    gemini("{}", "!it has a schema without `type`");
    gemini(r#"{"oneOf":[{"type":"string"}]}"#, "!`oneOf` cannot be expressed");
    gemini(
        r#"{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":{"type":"string"}}"#,
        "!`additionalProperties` cannot be expressed",
    );
}

#[test]
fn dm_063_gemini_keeps_formats_per_type() {
    for (kind, format) in [
        ("string", "date-time"),
        ("string", "enum"),
        ("number", "double"),
        ("number", "float"),
        ("integer", "int32"),
        ("integer", "int64"),
    ] {
        let schema = format!(r#"{{"format":"{format}","type":"{kind}"}}"#);
        gemini(&schema, &schema);
    }
    for (kind, format) in
        [("string", "email"), ("string", "int32"), ("integer", "double"), ("number", "int64")]
    {
        gemini(&format!(r#"{{"format":"{format}","type":"{kind}"}}"#), &format!(r#"{{"type":"{kind}"}}"#));
    }
}

#[test]
fn dm_063_gemini_writes_null_as_nullable() {
    gemini(r#"{"type":["string","null"]}"#, r#"{"nullable":true,"type":"string"}"#);
    gemini(r#"{"type":["string","integer"]}"#, "!a union of several types cannot be expressed");
    gemini(r#"{"type":"null"}"#, "!`null` alone cannot be expressed");
    // The schema that Pydantic generates for an optional argument.
    gemini(
        r#"{"anyOf":[{"type":"string","description":"inner"},{"type":"null"}],"default":null,"title":"A","description":"d"}"#,
        r#"{"description":"d","nullable":true,"title":"A","type":"string"}"#,
    );
    gemini(r#"{"anyOf":[{"type":"null"}]}"#, "!`null` alone cannot be expressed");
    // No other keyword is allowed beside `anyOf`, not even a description.
    gemini(
        r#"{"anyOf":[{"type":"string"},{"type":"integer"}],"description":"d"}"#,
        r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
    );
    gemini(
        r#"{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}"#,
        r#"{"anyOf":[{"nullable":true,"type":"string"},{"nullable":true,"type":"integer"}]}"#,
    );
    gemini(r#"{"type":"string","anyOf":[{"minLength":1}]}"#, "!`type` beside `anyOf` cannot be expressed");
}

#[test]
fn dm_063_gemini_enumerates_strings_only() {
    gemini(r#"{"enum":["x","y"]}"#, r#"{"enum":["x","y"],"type":"string"}"#);
    gemini(r#"{"const":"x"}"#, r#"{"enum":["x"],"type":"string"}"#);
    gemini(r#"{"enum":["x",null]}"#, r#"{"enum":["x"],"nullable":true,"type":"string"}"#);
    gemini(r#"{"enum":["x",""]}"#, "!an empty string in an enumeration cannot be expressed");
    gemini(r#"{"enum":[1]}"#, "!an enumeration of values that are not strings cannot be expressed");
    gemini(
        r#"{"type":"integer","enum":["1"]}"#,
        "!an enumeration of values that are not strings cannot be expressed",
    );
}

#[test]
fn dm_063_anthropic_accepts_most_schemas_unchanged() {
    let anthropic = |schema: &str, want: &str| check(Provider::Anthropic, schema, want);
    let schema = r##"{ "type":"object", "properties":{"a.b":{"oneOf":[{"type":"string"},{"$ref":"#"}]},"b":{"properties":{"a b":{}}}} }"##;
    anthropic(schema, schema);
    // RPT-013
    anthropic("{}", r#"{"type":"object"}"#);
    anthropic(r#"{"type":"string"}"#, "!the root's `type` is not `object`");
    for keyword in ["anyOf", "oneOf", "allOf"] {
        anthropic(
            &format!(r#"{{"type":"object","{keyword}":[{{}}]}}"#),
            &format!("!the root has `{keyword}`"),
        );
    }
    for name in ["a b", "filter[id]", "$top", &"x".repeat(65)] {
        anthropic(
            &format!(r#"{{"type":"object","properties":{{"{name}":{{}}}}}}"#),
            &format!("!the provider does not accept the property name `{name}`"),
        );
    }
    anthropic(
        r#"{"type":"object","properties":{"a":{"items":[{}]}}}"#,
        "!its schema is not valid in draft 2020-12",
    );
}

/// The accepted tools and the problems do not depend on the order of the tools or of a schema's keys.
#[test]
fn dm_064_dm_065_projection_of_a_tool_depends_on_the_tool_alone() {
    let (good, bad) =
        (r#"{"type":"object"}"#, r#"{"type":"object","properties":{"a":{"not":{}}},"allOf":[{}]}"#);
    let reordered = r#"{"allOf":[{}],"properties":{"a":{"not":{}}},"type":"object"}"#;
    for provider in [Provider::OpenAiStrict, Provider::Gemini, Provider::Anthropic] {
        let one = project(&[tool("good", good), tool("bad", bad)], provider);
        let other = project(&[tool("bad", reordered), tool("good", good)], provider);
        assert_eq!(one, other);
        assert_eq!((one.tools.len(), one.problems.len()), (1, 1));
        assert_eq!(one.problems[0].kind.to_string(), "mcp_tool_provider_excluded");
        assert!(one.problems[0].message.contains(provider.as_str()), "{}", one.problems[0].message);
    }
}

#[test]
fn references_are_inlined_within_bounds() {
    let all = [Provider::OpenAiStrict, Provider::Gemini];
    let of = |reference: &str, definitions: &str| {
        format!(
            r#"{{"type":"object","required":["a"],"properties":{{"a":{{"$ref":"{reference}"}}}},"$defs":{definitions}}}"#
        )
    };
    let step = |it: usize| {
        let next = format!(r##"{{"$ref":"#/$defs/s{}"}}"##, it + 1);
        format!(r#""s{it}":{{"anyOf":[{0}]}}"#, [next.as_str(); 8].join(","))
    };
    let steps: Vec<String> = (0..9).map(step).collect();
    let doubling = format!(r#"{{{},"s9":{{"type":"string"}}}}"#, steps.join(","));
    for provider in all {
        // A function that is not strict may have a recursive or large schema.
        let check_bound = |definition: &str, definitions: &str, reason: &str| {
            let sign = if provider == Provider::OpenAiStrict { '~' } else { '!' };
            check(provider, &of(definition, definitions), &format!("{sign}{reason}"));
        };
        check(provider, &of("#/$defs/x", "{}"), "!`#/$defs/x` leads nowhere inside the schema");
        check(
            provider,
            &of("https://example.com/x", "{}"),
            "!`https://example.com/x` leads nowhere inside the schema",
        );
        check_bound("#", "{}", "`#` refers to itself");
        let recursive = r##"{"x":{"type":"array","items":{"$ref":"#/$defs/x"}}}"##;
        check_bound("#/$defs/x", recursive, "`#/$defs/x` refers to itself");
        check_bound("#/$defs/s0", &doubling, "its schema is too large or too deep when written out");
    }
}

#[test]
fn only_annotations_are_kept_beside_a_reference() {
    let with = |argument: &str| {
        let definition = r#""$defs":{"n":{"type":"integer","minimum":1,"description":"inner"}}"#;
        format!(r#"{{{definition},"type":"object","required":["a"],"properties":{{"a":{argument}}}}}"#)
    };
    let described = with(r##"{"$ref":"#/$defs/n","description":"outer","default":3}"##);
    let inlined = r#"{"properties":{"a":{"description":"outer","minimum":1,"type":"integer"}},"required":["a"],"type":"object"}"#;
    check(Provider::Gemini, &described, inlined);
    check(Provider::OpenAiStrict, &described, &inlined.replacen('{', r#"{"additionalProperties":false,"#, 1));
    for provider in [Provider::OpenAiStrict, Provider::Gemini] {
        let narrowed = with(r##"{"$ref":"#/$defs/n","enum":[1]}"##);
        let sign = if provider == Provider::OpenAiStrict { '~' } else { '!' };
        check(provider, &narrowed, &format!("{sign}keywords beside a `$ref` cannot be expressed"));
    }
}

#[test]
fn names_are_within_the_provider_limit() {
    let is_accepted =
        |provider, name: &str| project(&[tool(name, r#"{"type":"object"}"#)], provider).problems.is_empty();
    // These are the limits to which a host can shorten names in advance.
    for (provider, limit) in [
        (Provider::OpenAiStrict, NameLimit::Common),
        (Provider::Gemini, NameLimit::Gemini),
        (Provider::Anthropic, NameLimit::Anthropic),
    ] {
        let longest = limit.bytes();
        assert!(
            is_accepted(provider, &"x".repeat(longest)) && !is_accepted(provider, &"x".repeat(longest + 1))
        );
        assert!(!is_accepted(provider, "a.b"));
    }
    assert!(is_accepted(Provider::OpenAiStrict, "1") && !is_accepted(Provider::Gemini, "1"));
    assert!(is_accepted(Provider::Passthrough, "a.b"));
}

#[test]
fn dm_063_tools_json_has_the_form_of_each_api() {
    let tools = [tool("a", r#"{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}"#)];
    let check = |provider: Provider, is_adapted: bool, want: serde_json::Value| {
        let projection = project(&tools, provider);
        assert_eq!(projection.tools[0].is_adapted, is_adapted, "{}", provider.as_str());
        assert_eq!(projection.to_tools_json().read::<serde_json::Value>().unwrap(), want);
    };
    let schema =
        serde_json::json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]});
    let mut closed = schema.clone();
    closed["additionalProperties"] = false.into();
    let function = serde_json::json!({"name": "a", "parameters": closed, "strict": true});
    check(Provider::OpenAiStrict, true, serde_json::json!([{"type": "function", "function": function}]));
    let declaration = serde_json::json!({"name": "a", "parameters": schema});
    check(Provider::Gemini, false, serde_json::json!([{"functionDeclarations": [declaration]}]));
    check(Provider::Anthropic, false, serde_json::json!([{"name": "a", "input_schema": schema}]));
}

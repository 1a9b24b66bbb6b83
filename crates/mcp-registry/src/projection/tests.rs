//! One schema, and what each provider is told.

use mcp_model::read_tools;

use super::*;

fn tool(name: &str, schema: &str) -> ExposedTool {
    let page = format!(r#"{{"tools":[{{"name":"x","inputSchema":{schema}}}]}}"#);
    let tool = read_tools(&RawJson::parse(page.into_bytes().into()).unwrap()).unwrap().items.remove(0);
    ExposedTool { name: ExposedName::new(name.to_owned()), server: ServerId::parse("s").unwrap(), tool }
}

/// `want` is the schema, `none`, or `!` and the reason.
#[track_caller]
fn check(provider: Provider, schema: &str, want: &str) {
    let tools = [tool("t", schema), tool("t2", r#"{"type":"object"}"#)];
    let Projection { tools: got, problems } = project(&tools, provider);
    assert_eq!(got.last().map(|it| it.name.as_str()), Some("t2"), "the other tool goes on");
    let reason = problems.first().map(|it| it.message.split_once(": ").expect("a reason").1);
    let got = match (reason, &got[0].schema) {
        (Some(reason), _) => format!("!{reason}"),
        (None, None) => "none".to_owned(),
        (None, Some(schema)) => schema.as_str().to_owned(),
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

#[test]
fn dm_063_openai_strict_closes_objects_and_leaves_the_rest_out() {
    let strict = |schema: &str, want: &str| check(Provider::OpenAiStrict, schema, want);
    strict(
        r#"{"$schema":"x","type":"object","required":["p"],"properties":{"p":{"type":["string","null"],"minLength":1,"format":"uri"}}}"#,
        r#"{"additionalProperties":false,"properties":{"p":{"type":["string","null"]}},"required":["p"],"type":"object"}"#,
    );
    strict(
        r#"{"type":"object"}"#,
        r#"{"additionalProperties":false,"properties":{},"required":[],"type":"object"}"#,
    );
    strict(
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/n","description":"d"}},"required":["a"],"$defs":{"n":{"type":"integer","minimum":1}}}"##,
        r#"{"additionalProperties":false,"properties":{"a":{"description":"d","minimum":1,"type":"integer"}},"required":["a"],"type":"object"}"#,
    );
    strict(r#"{"type":"object","properties":{"a":{"type":"null"}}}"#, "!its property `a` is optional");
    strict(r#"{"type":"object","additionalProperties":true}"#, "!`additionalProperties` cannot be said");
    strict(r#"{"type":"object","allOf":[{}]}"#, "!`allOf` cannot be said");
    strict(r#"{"anyOf":[{"type":"null"}]}"#, "!the root is no plain object");
    strict(r#"{"type":"nonsense"}"#, "!its schema is none of draft 2020-12");
    strict(
        r#"{"type":"object","required":["a"],"properties":{"a":{"type":"array"}}}"#,
        "!a list of unknown items cannot be said",
    );
    let long = "x".repeat(120_001);
    let long = format!(r#"{{"type":"object","required":["a"],"properties":{{"a":{{"const":"{long}"}}}}}}"#);
    strict(&long, "!its names and values have more than 120000 characters");
    strict(r#"{"type":"object","required":["a"],"properties":{"a":{}}}"#, "!it has a schema without `type`");
    strict(
        r#"{"type":"object","required":["a"],"properties":{"a":true}}"#,
        "!it has a schema that is no object",
    );
    let values: Vec<String> = (0..1_001).map(|it| it.to_string()).collect();
    let values = format!(
        r#"{{"type":"object","required":["a"],"properties":{{"a":{{"enum":[{}]}}}}}}"#,
        values.join(",")
    );
    strict(&values, "!it has more than 1000 enumerated values");
}

#[test]
fn dm_063_gemini_speaks_openapi() {
    let gemini = |schema: &str, want: &str| check(Provider::Gemini, schema, want);
    gemini(r#"{"type":"object","properties":{}}"#, "none");
    gemini(
        r#"{"type":"object","additionalProperties":false,"properties":{"a":{"type":["string","null"],"format":"email"},"b":{"const":"x"}},"required":["a"]}"#,
        r#"{"properties":{"a":{"nullable":true,"type":"string"},"b":{"enum":["x"],"type":"string"}},"required":["a"],"type":"object"}"#,
    );
    // A required property that is not declared would fail the whole request.
    gemini(
        r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["b","a"]}"#,
        r#"{"properties":{"a":{"type":"integer"}},"required":["a"],"type":"object"}"#,
    );
    let of = |schema: &str| format!(r#"{{"type":"object","properties":{{"a":{schema}}}}}"#);
    gemini(&of(r#"{"enum":["x",""]}"#), "!an empty text in an enumeration cannot be said");
    gemini(&of(r#"{"type":["string","integer"]}"#), "!a union of several types cannot be said");
    gemini(&of(r#"{"enum":[1]}"#), "!an enumeration of anything but texts cannot be said");
    gemini(&of(r#"{"type":"object"}"#), "!an object of unknown properties cannot be said");
    gemini(&of(r#"{"oneOf":[{"type":"string"}]}"#), "!`oneOf` cannot be said");
    gemini(&of(r#"{"type":"array","items":[{"type":"string"}]}"#), "!its schema is none of draft 2020-12");
}

#[test]
fn dm_063_anthropic_takes_nearly_everything_as_it_is() {
    let anthropic = |schema: &str, want: &str| check(Provider::Anthropic, schema, want);
    let schema = r##"{ "type":"object", "properties":{"a.b":{"oneOf":[{"type":"string"},{"$ref":"#"}]}} }"##;
    anthropic(schema, schema);
    anthropic("{}", "!the root's `type` is not `object`");
    anthropic(r#"{"type":"object","anyOf":[{}]}"#, "!the root has `anyOf`");
    anthropic(
        r#"{"type":"object","properties":{"a b":{}}}"#,
        "!the property name `a b` is not one the provider takes",
    );
    anthropic(
        r#"{"type":"object","properties":{"a":{"items":[{}]}}}"#,
        "!its schema is none of draft 2020-12",
    );
}

#[test]
fn references_are_written_out_within_bounds() {
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
        check(provider, &of("#/$defs/x", "{}"), "!`#/$defs/x` leads nowhere inside the schema");
        check(
            provider,
            &of("https://example.com/x", "{}"),
            "!`https://example.com/x` leads nowhere inside the schema",
        );
        check(provider, &of("#", "{}"), "!`#` refers to itself");
        let round = r##"{"x":{"type":"array","items":{"$ref":"#/$defs/x"}}}"##;
        check(provider, &of("#/$defs/x", round), "!`#/$defs/x` refers to itself");
        check(
            provider,
            &of("#/$defs/s0", &doubling),
            "!its schema is too large or too deep when written out",
        );
    }
}

#[test]
fn a_name_is_within_the_providers_limit() {
    let told =
        |provider, name: &str| project(&[tool(name, r#"{"type":"object"}"#)], provider).problems.is_empty();
    for (provider, longest) in
        [(Provider::OpenAiStrict, 64), (Provider::Gemini, 63), (Provider::Anthropic, 128)]
    {
        assert!(told(provider, &"x".repeat(longest)) && !told(provider, &"x".repeat(longest + 1)));
        assert!(!told(provider, "a.b"));
    }
    assert!(told(Provider::OpenAiStrict, "1") && !told(Provider::Gemini, "1"));
    assert!(told(Provider::Passthrough, "a.b"));
}

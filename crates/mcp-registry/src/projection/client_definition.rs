//! Definitions for clients: what a server lists, in a form that every client reads.
//!
//! Clients check a list as a whole. A single invalid definition costs a strict client all tools of all servers, so
//! members that the protocol does not allow are dropped or completed here. The official TypeScript client is the
//! strictest: it also compiles each output schema. A valid definition keeps its bytes.

use mcp_host_model::{RawJson, Tool};
use serde_json::{Map, Value};

use super::member_form::MemberForm::{self, Corrected, Flag, Number, Object, Objects, Text};
use super::member_form::{ANNOTATIONS, ICONS, correct_object, is_too_deep, with_first_member};
use crate::validate::schema_defect::output_schema_defect;

/// The schema of any arguments.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

const TOOL_ANNOTATIONS: MemberForm = Object(&[
    ("title", Text),
    ("readOnlyHint", Flag),
    ("destructiveHint", Flag),
    ("idempotentHint", Flag),
    ("openWorldHint", Flag),
]);

const TOOL: &[(&str, MemberForm)] = &[
    ("title", Text),
    ("description", Text),
    ("inputSchema", Corrected(|schema| Some(correct_input_schema(schema)))),
    ("outputSchema", Corrected(correct_output_schema)),
    ("annotations", TOOL_ANNOTATIONS),
    ("execution", Object(&[("taskSupport", Text)])),
    ("icons", ICONS),
    ("_meta", Object(&[])),
];

const PROMPT: &[(&str, MemberForm)] = &[
    ("title", Text),
    ("description", Text),
    ("arguments", Objects(&[("name", Text), ("title", Text), ("description", Text), ("required", Flag)])),
    ("icons", ICONS),
    ("_meta", Object(&[])),
];

const RESOURCE: &[(&str, MemberForm)] = &[
    ("title", Text),
    ("description", Text),
    ("mimeType", Text),
    ("size", Number),
    ("annotations", ANNOTATIONS),
    ("icons", ICONS),
    ("_meta", Object(&[])),
];

/// Returns the definition of a tool for clients.
pub fn tool_for_clients(tool: &Tool) -> RawJson {
    let has_schema = tool.raw.members().is_some_and(|it| it.iter().any(|(key, _)| key == "inputSchema"));
    let definition = correct_object(&tool.raw, TOOL);
    if has_schema {
        return definition;
    }
    with_first_member(&definition, &format!(r#""inputSchema":{ANY_OBJECT}"#))
}

/// Returns the definition of a prompt for clients.
pub fn prompt_for_clients(definition: &RawJson) -> RawJson {
    correct_object(definition, PROMPT)
}

/// Returns the definition of a resource or a resource template for clients.
pub fn resource_for_clients(definition: &RawJson) -> RawJson {
    correct_object(definition, RESOURCE)
}

/// Returns the schema of a tool's arguments as a schema of an object. One that cannot be corrected accepts any object,
/// because the server checks the arguments itself.
fn correct_input_schema(schema: &RawJson) -> RawJson {
    let any_object = || RawJson::parse(ANY_OBJECT.into()).expect("it is JSON");
    match read_schema(schema) {
        Some(mut members) => match correct_schema_root(&mut members) {
            true => RawJson::from_value(&members).unwrap_or_else(|_| any_object()),
            false => schema.clone(),
        },
        None => any_object(),
    }
}

/// Returns the schema of a tool's arguments with its type. A schema without one is that of an object, because
/// arguments are.
pub(super) fn complete_input_schema(schema: &RawJson) -> RawJson {
    match schema.members() {
        Some(members) if members.iter().all(|(key, _)| key != "type") => correct_input_schema(schema),
        _ => schema.clone(),
    }
}

/// Returns the schema of a tool's results, or `None` if a client could not compile it.
fn correct_output_schema(schema: &RawJson) -> Option<RawJson> {
    let mut members = read_schema(schema)?;
    let is_of_object = members.get("type").is_none_or(|kind| kind == "object");
    if !is_of_object || output_schema_defect(schema).is_some() || !can_be_compiled(&members) {
        return None;
    }
    // Two schemas with one id exclude each other in one client.
    let has_id = ["$id", "id"].iter().filter(|key| members.remove(**key).is_some()).count() > 0;
    match correct_schema_root(&mut members) || has_id {
        true => RawJson::from_value(&members).ok(),
        false => Some(schema.clone()),
    }
}

/// Parses a schema that is an object and not too deep.
fn read_schema(schema: &RawJson) -> Option<Map<String, Value>> {
    if is_too_deep(schema) { None } else { schema.read().ok() }
}

/// Corrects the root of a schema. Returns whether anything was changed.
fn correct_schema_root(members: &mut Map<String, Value>) -> bool {
    let before = members.len();
    members.retain(|key, value| !value.is_null() || matches!(key.as_str(), "default" | "const"));
    let mut is_changed = members.len() != before;
    if members.get("type").is_none_or(|kind| kind != "object") {
        members.insert("type".to_owned(), Value::from("object"));
        is_changed = true;
    }
    match members.get_mut("properties") {
        Some(Value::Object(properties)) => {
            for schema in properties.values_mut().filter(|schema| !schema.is_object()) {
                *schema = match schema {
                    Value::Bool(false) => serde_json::json!({"not": {}}),
                    _ => Value::Object(Map::new()),
                };
                is_changed = true;
            }
        }
        Some(_) => is_changed |= members.remove("properties").is_some(),
        None => {}
    }
    let is_list_of_names =
        |value: &Value| value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
    if members.get("required").is_some_and(|required| !is_list_of_names(required)) {
        is_changed |= members.remove("required").is_some();
    }
    is_changed
}

/// Returns whether a validator of another program can compile the schema: it needs no other document, and its patterns
/// are simple.
fn can_be_compiled(members: &Map<String, Value>) -> bool {
    members.iter().all(|(key, value)| match (key.as_str(), value) {
        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
            target == "#" || target.starts_with("#/")
        }
        ("pattern", Value::String(pattern)) => is_simple_pattern(pattern),
        ("patternProperties", Value::Object(schemas)) => {
            schemas.keys().all(|pattern| is_simple_pattern(pattern)) && can_be_compiled(schemas)
        }
        (_, value) => can_value_be_compiled(value),
    })
}

fn can_value_be_compiled(value: &Value) -> bool {
    match value {
        Value::Object(members) => can_be_compiled(members),
        Value::Array(values) => values.iter().all(can_value_be_compiled),
        _ => true,
    }
}

/// Returns whether the regular expression means the same in all languages, as far as can be seen without compiling it.
fn is_simple_pattern(pattern: &str) -> bool {
    let mut rest = pattern;
    while let Some(at) = rest.find(['\\', '(']) {
        let after = &rest[at + 1..];
        let is_simple = match rest.as_bytes()[at] {
            b'\\' => after.starts_with(|it: char| "dDwWsSbBnrt.^$*+?()[]{}|/\\".contains(it)),
            _ => !after.starts_with('?') || ["?:", "?=", "?!"].iter().any(|it| after.starts_with(it)),
        };
        if !is_simple {
            return false;
        }
        rest = match rest.as_bytes()[at] {
            b'\\' => after.get(1..).unwrap_or_default(),
            _ => after,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use mcp_host_model::read_tools;

    use super::*;

    /// `members` follow the name of a tool; `want` is its whole definition for clients.
    #[track_caller]
    fn check_tool(members: &str, want: &str) {
        let page = read_tools(&format!(r#"{{"tools":[{{"name":"t"{members}}}]}}"#)).unwrap();
        assert_eq!(tool_for_clients(&page.items[0]).as_str(), want, "{members}");
    }

    // RPT-010
    #[test]
    fn definitions_are_valid_for_strict_clients() {
        const GOOD: &str = r#""name":"t","inputSchema":{"type":"object"}"#;
        let good = format!("{{{GOOD}}}");
        let schema = |schema: &str| format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        let check_schema = |input: &str, want: &str| {
            check_tool(&format!(r#","inputSchema":{input}"#), &schema(want));
        };
        // A valid definition keeps its bytes.
        check_tool(
            r#", "x" : 1 ,"inputSchema":{ "type" : "object" }"#,
            r#"{"name":"t", "x" : 1 ,"inputSchema":{ "type" : "object" }}"#,
        );
        check_tool("", r#"{"inputSchema":{"type":"object"},"name":"t"}"#);
        for odd in ["{}", "null", "[]", "true", r#"{"type":null}"#, r#"{"type":"string"}"#] {
            check_schema(odd, ANY_OBJECT);
        }
        check_schema(r#"{"type":["object","null"],"properties":[],"required":null}"#, ANY_OBJECT);
        check_schema(
            r#"{"properties":{"a":true,"b":false,"c":"string"},"required":true}"#,
            r#"{"properties":{"a":{},"b":{"not":{}},"c":{}},"type":"object"}"#,
        );
        check_schema(r#"{"anyOf":[{}],"default":null}"#, r#"{"anyOf":[{}],"default":null,"type":"object"}"#);
        let deep = format!("{}{}", r#"{"not":"#.repeat(100_000), "{}".to_owned() + &"}".repeat(100_000));
        check_schema(&deep, ANY_OBJECT);

        let nulls = r#","title":null,"description":null,"outputSchema":null,"icons":null,"annotations":null,"x":null"#;
        check_tool(&format!(r#","inputSchema":{{"type":"object"}}{nulls}"#), &good);
        let odd = r#","title":7,"icons":{},"annotations":[],"execution":true,"_meta":7"#;
        check_tool(&format!(r#","inputSchema":{{"type":"object"}}{odd}"#), &good);
        check_tool(
            r#","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":null,"title":"a"},"icons":[{"src":7},{"src":"a"}]"#,
            &format!(r#"{{{GOOD},"annotations":{{"title":"a"}},"icons":[{{"src":"a"}}]}}"#),
        );
        check_tool(&format!(r#","inputSchema":{{"type":"object"}},"_meta":{{"x":{deep}}}"#), &good);
    }

    /// `want` is the output schema for clients; `None` if it is left out.
    #[track_caller]
    fn check_output(schema: &str, want: Option<&str>) {
        let schema = RawJson::parse(schema.to_owned().into()).unwrap();
        assert_eq!(correct_output_schema(&schema).as_ref().map(RawJson::as_str), want, "{schema:?}");
    }

    // RPT-011
    #[test]
    fn output_schemas_that_clients_cannot_compile_are_left_out() {
        let recursive = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/a"}}}"##;
        check_output(recursive, Some(recursive));
        check_output("{}", Some(ANY_OBJECT));
        check_output(r#"{"$id":"https://x","type":"object"}"#, Some(ANY_OBJECT));
        for unusable in [
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}"##,
            r#"{"type":"object","properties":{"a":{"$ref":"https://x"}}}"#,
            r##"{"type":"object","properties":{"a":{"$ref":"#anchor"}}}"##,
            r#"{"type":"object","properties":{"a":{"pattern":"(?P<x>a)"}}}"#,
            r#"{"type":"object","properties":{"a":{"pattern":"\\A"}}}"#,
            r#"{"type":"objekt"}"#,
            r#"{"type":"array"}"#,
            "[]",
            "7",
        ] {
            check_output(unusable, None);
        }
        let pattern = r#"{"type":"object","properties":{"a":{"pattern":"^(?:\\d+|\\\\)$"}}}"#;
        check_output(pattern, Some(pattern));
    }

    // RPT-012
    #[test]
    fn prompts_and_resources_have_no_invalid_members() {
        let json = |text: &str| RawJson::parse(text.to_owned().into()).unwrap();
        let prompt =
            json(r#"{"name":"p","description":null,"arguments":[{"name":"a","required":"yes"},{"x":1},7]}"#);
        assert_eq!(prompt_for_clients(&prompt).as_str(), r#"{"name":"p","arguments":[{"name":"a"}]}"#);
        assert_eq!(prompt_for_clients(&json(r#"{"name":"p","arguments":null}"#)).as_str(), r#"{"name":"p"}"#);
        let resource = json(
            r#"{"uri":"a:b","name":"r","size":null,"mimeType":null,"annotations":{"priority":"1","audience":["user"]}}"#,
        );
        let want = r#"{"uri":"a:b","name":"r","annotations":{"audience":["user"]}}"#;
        assert_eq!(resource_for_clients(&resource).as_str(), want);
    }
}

//! Completion of commands, tools, servers, arguments and their values; filter of the history. Pure.

use mcp_host_model::RawJson;
use mcp_host_registry::ToolLookup;
use mcp_host_runtime::HostSnapshot;
use serde_json::Value;

use crate::call_arguments::schema::{is_required, resolve_ref};
use crate::commands::calls::shell::command::COMMANDS;
use crate::output::sanitize;

/// The maximum number of candidates.
const MAX_CANDIDATES: usize = 200;
/// The maximum number of values of one argument. Schemas are untrusted.
const MAX_VALUES: usize = 100;

/// Completes the word at the cursor. Returns the byte index of its start, and the candidates.
pub(super) fn complete(line: &str, cursor: usize, published: &HostSnapshot) -> (usize, Vec<String>) {
    let before = line.get(..cursor).unwrap_or(line);
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let (previous, word) = before.split_at(start);
    let words: Vec<&str> = previous.split_whitespace().collect();
    let mut candidates = candidates(&words, word, published);
    candidates.retain(|candidate| {
        candidate.starts_with(word) && (candidate.ends_with(' ') || *candidate == sanitize::line(candidate))
    });
    candidates.dedup();
    candidates.truncate(MAX_CANDIDATES);
    (start, candidates)
}

/// All candidates at this position; not yet filtered by the typed prefix.
fn candidates(words: &[&str], word: &str, published: &HostSnapshot) -> Vec<String> {
    let tool_names = || published.catalog.tools().iter().map(|it| with_space(it.name.as_str()));
    match words {
        [] => COMMANDS.iter().map(|it| with_space(it.0)).chain(tool_names()).collect(),
        ["schema" | "call"] | ["tools", ..] => tool_names().collect(),
        ["prompt"] => published.catalog.prompts().iter().map(|it| with_space(it.name.as_str())).collect(),
        ["prompt", name, typed @ ..] => prompt_arguments(name, typed, published),
        ["read"] => published.catalog.resources().iter().map(|it| with_space(&it.resource.uri)).collect(),
        ["restart" | "disable"] => published.servers.iter().map(|it| with_space(&it.id)).collect(),
        ["call", tool, typed @ ..] => arguments(tool, typed, word, published),
        [tool, typed @ ..] => arguments(tool, typed, word, published),
    }
}

/// A complete word, followed by a space.
fn with_space(name: &str) -> String {
    format!("{} ", sanitize::line(name))
}

/// The arguments of a prompt that are not typed yet.
fn prompt_arguments(name: &str, typed: &[&str], published: &HostSnapshot) -> Vec<String> {
    let prompts = published.catalog.prompts();
    let Some(entry) = prompts.iter().find(|entry| entry.name.as_str() == name) else { return Vec::new() };
    let names = entry.prompt.arguments().into_iter().map(|argument| argument.name);
    names.filter(|name| !is_typed(name, typed)).map(|name| format!("{name}=")).collect()
}

/// Whether one of the typed words sets this argument: `name=…` or `name:=…`.
fn is_typed(name: &str, typed: &[&str]) -> bool {
    let is_name =
        |word: &&str| word.split_once('=').is_some_and(|(left, _)| left.trim_end_matches(':') == name);
    typed.iter().any(is_name)
}

/// The arguments of a tool that are not typed yet, or the values of the argument at the cursor.
fn arguments(tool: &str, typed: &[&str], word: &str, published: &HostSnapshot) -> Vec<String> {
    let ToolLookup::Found(tool) = published.catalog.find(tool) else { return Vec::new() };
    let Some(root) = parse_schema(&tool.tool.input_schema) else { return Vec::new() };
    let top = resolve_ref(&root, &root);
    let Some(properties) = top.get("properties").and_then(Value::as_object) else { return Vec::new() };
    if let Some((name, _)) = word.split_once('=') {
        let Some(property) = properties.get(name) else { return Vec::new() };
        return listed_values(&root, property).into_iter().map(|value| format!("{name}={value} ")).collect();
    }
    let mut names: Vec<&String> = properties.keys().filter(|name| !is_typed(name, typed)).collect();
    // Required arguments come first.
    names.sort_by_key(|name| !is_required(top, name));
    names.into_iter().map(|name| format!("{name}=")).collect()
}

fn parse_schema(schema: &RawJson) -> Option<Value> {
    schema.read().ok()
}

/// The values that a schema lists, in the syntax of the shell.
fn listed_values(root: &Value, property: &Value) -> Vec<String> {
    let property = resolve_ref(root, property);
    let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|it| property.get(it)?.as_array()).flatten();
    let schemas: Vec<&Value> = std::iter::once(property)
        .chain(property.get("items").map(|it| resolve_ref(root, it)))
        .chain(alternatives.take(MAX_VALUES).map(|it| resolve_ref(root, it)))
        .collect();
    let mut values = Vec::new();
    for schema in schemas {
        let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        values.extend(listed.chain(schema.get("const")).take(MAX_VALUES).filter_map(shell_value));
        if schema.get("type").and_then(Value::as_str) == Some("boolean") {
            values.extend(["true".to_owned(), "false".to_owned()]);
        }
    }
    values
}

/// A scalar in the syntax of the shell, quoted if it contains spaces. `None` for arrays, objects and texts that cannot
/// be quoted.
fn shell_value(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() || text.contains([' ', '\'', '"', '\\', '\t', '\n']) => {
            (!text.contains(['\'', '\n'])).then(|| format!("'{text}'"))
        }
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether a line may be stored in the history. A line is not stored if it begins with a space, or if it sets
/// an argument whose name or schema indicates a secret.
pub(super) fn is_history_allowed(line: &str, published: &HostSnapshot) -> bool {
    if line.trim().is_empty() || line.starts_with(char::is_whitespace) {
        return false;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let tool = match words.as_slice() {
        ["call", tool, ..] | [tool, ..] => published.catalog.find(tool),
        [] => return false,
    };
    let secret_names: Vec<String> = match tool {
        ToolLookup::Found(it) => {
            parse_schema(&it.tool.input_schema).map(|root| secret_arguments(&root)).unwrap_or_default()
        }
        ToolLookup::Ambiguous(_) | ToolLookup::Missing { nearest: _ } => Vec::new(),
    };
    // Names before `=`, and quoted names in JSON.
    let names =
        line.split(|character: char| !(character.is_alphanumeric() || matches!(character, '_' | '-' | '.')));
    let is_assigned = |name: &str| {
        let mut following =
            line.match_indices(name).map(|(at, _)| line[at + name.len()..].trim_start_matches(['"', '\'']));
        following.any(|rest| rest.trim_start().starts_with(['=', ':']))
    };
    !names.filter(|name| !name.is_empty()).any(|name| {
        (is_secret_name(name) || secret_names.iter().any(|secret| secret == name)) && is_assigned(name)
    })
}

/// Whether a name is commonly used for secrets.
fn is_secret_name(name: &str) -> bool {
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|it| it.to_ascii_lowercase()).collect();
    [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "apikey",
        "accesskey",
        "privatekey",
        "credential",
        "authorization",
        "bearer",
    ]
    .iter()
    .any(|it| name.contains(it))
        || matches!(name.as_str(), "pin" | "pass" | "auth" | "key")
}

/// The arguments that a schema marks as secret.
fn secret_arguments(root: &Value) -> Vec<String> {
    let properties = resolve_ref(root, root).get("properties").and_then(Value::as_object);
    let is_secret = |it: &Value| {
        let it = resolve_ref(root, it);
        it.get("format").and_then(Value::as_str) == Some("password")
            || it.get("writeOnly").and_then(Value::as_bool) == Some(true)
    };
    let secret = properties.into_iter().flatten().filter(|(_, schema)| is_secret(schema));
    secret.map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_host_model::{Exposure, NamePolicy, ServerId, read_prompts, read_tools};
    use mcp_host_registry::{Builtins, Catalog, CatalogServer, ServerLists};
    use mcp_host_runtime::ServerState;

    use super::*;

    fn published() -> HostSnapshot {
        let tools = r##"{"tools":[
            {"name":"paint","inputSchema":{"type":"object","properties":{
                "size":{"type":"integer"},"colour":{"enum":["red","dark red","it's",null]},"deep":{"$ref":"#/$defs/b"},
                "hidden":{"type":"string","format":"password"}},
                "required":["colour"],"$defs":{"b":{"type":"boolean"}}}},
            {"name":"pair","inputSchema":{}},
            {"name":"odd\u001b[2J","inputSchema":{}}]}"##;
        let tools = read_tools(&RawJson::parse(tools.into()).unwrap()).unwrap().into_shared();
        let prompts = r#"{"prompts":[{"name":"greet","arguments":[{"name":"who"},{"name":"how"}]}]}"#;
        let prompts = read_prompts(&RawJson::parse(prompts.into()).unwrap()).unwrap().into_shared();
        let entry = CatalogServer::new(
            ServerId::parse("s").unwrap(),
            Exposure::all(NamePolicy::Pass),
            Arc::new({
                let mut lists = ServerLists::default();
                lists.tools = tools;
                lists.prompts = prompts;
                lists
            }),
        );
        let catalog = Arc::new(Catalog::build(&Builtins::default(), &[entry]));
        {
            let mut snapshot =
                crate::tests::published(&[("demo", ServerState::Ready), ("other", ServerState::Failed)]);
            snapshot.catalog = catalog;
            snapshot
        }
    }

    #[track_caller]
    fn check(line: &str, want: &str) {
        let (start, candidates) = complete(line, line.len(), &published());
        assert_eq!(format!("{start} {}", candidates.join("|")), want);
    }

    #[test]
    fn completions_depend_on_the_position() {
        check("pa", "0 paint |pair ");
        check("pro", "0 prompts |prompt |problems ");
        check("schema p", "7 paint |pair ");
        check("tools x pai", "8 paint |pair ");
        check("restart ", "8 demo |other ");
        check("paint ", "6 colour=|size=|deep=|hidden=");
        check("call paint size=1 ", "18 colour=|deep=|hidden=");
        check("paint colour=", "6 colour=red |colour='dark red' |colour=null ");
        check("paint colour=r", "6 colour=red ");
        check("paint deep=", "6 deep=true |deep=false ");
        check("paint size=", "6 ");
        check("prompt g", "7 greet ");
        check("prompt greet who=a ", "19 how=");
        check("nothing x", "8 ");
    }

    #[test]
    fn middle_of_a_line_is_completed() {
        let (start, candidates) = complete("sch paint", 3, &published());
        assert_eq!((start, candidates), (0, vec!["schema ".to_owned()]));
        // A cursor within a character is ignored.
        assert_eq!(complete("é", 1, &published()).1, Vec::<String>::new());
    }

    #[track_caller]
    fn check_history(line: &str, want: bool) {
        assert_eq!(is_history_allowed(line, &published()), want, "{line}");
    }

    #[test]
    fn hd_sc5_line_with_a_secret_is_not_stored() {
        check_history("paint colour=red", true);
        check_history("paint hidden=x", false);
        check_history(r#"call paint {"hidden": "x"}"#, false);
        check_history("login password=x", false);
        check_history("login api_key:=\"x\"", false);
        check_history(r#"login {"apiKey":"x"}"#, false);
        check_history("echo text=token", true);
        check_history("schema password", true);
        check_history(" echo text=a", false);
        check_history("", false);
    }
}

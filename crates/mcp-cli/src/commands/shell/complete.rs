//! What a word could become: commands, tools, servers, the arguments of a tool and their values. Pure.

use mcp_host::HostSnapshot;
use mcp_model::RawJson;
use mcp_registry::ToolLookup;
use serde_json::Value;

use crate::commands::shape::resolved;
use crate::commands::shell::command::COMMANDS;
use crate::output::plain;

/// The most candidates that are worth showing.
const MOST: usize = 200;
/// Schemas are strangers': so many values of one argument are looked at.
const VALUES: usize = 100;

/// Where the word begins that the cursor is in, and what it could become.
pub(super) fn complete(line: &str, cursor: usize, published: &HostSnapshot) -> (usize, Vec<String>) {
    let before = line.get(..cursor).unwrap_or(line);
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let (done, word) = before.split_at(start);
    let words: Vec<&str> = done.split_whitespace().collect();
    let mut candidates = candidates(&words, word, published);
    candidates.retain(|it| {
        it.starts_with(word) && *it == plain::line(it) || it.ends_with(' ') && it.starts_with(word)
    });
    candidates.dedup();
    candidates.truncate(MOST);
    (start, candidates)
}

/// Everything that could stand here, before it is compared with what stands there.
fn candidates(words: &[&str], word: &str, published: &HostSnapshot) -> Vec<String> {
    let names = || published.catalog.tools().iter().map(|it| spaced(it.name.as_str()));
    match words {
        [] => COMMANDS.iter().map(|it| spaced(it.0)).chain(names()).collect(),
        ["schema" | "call"] => names().collect(),
        ["prompt"] => published.catalog.prompts().iter().map(|it| spaced(it.name.as_str())).collect(),
        ["prompt", name, given @ ..] => prompt_arguments(name, given, published),
        ["read"] => published.catalog.resources().iter().map(|it| spaced(&it.resource.uri)).collect(),
        ["restart" | "disable"] => published.servers.iter().map(|it| spaced(&it.id)).collect(),
        ["call", tool, given @ ..] => arguments(tool, given, word, published),
        [tool, given @ ..] => arguments(tool, given, word, published),
    }
}

/// A whole word: what follows is another one.
fn spaced(name: &str) -> String {
    format!("{} ", plain::line(name))
}

fn prompt_arguments(name: &str, given: &[&str], published: &HostSnapshot) -> Vec<String> {
    let prompts = published.catalog.prompts();
    let Some(it) = prompts.iter().find(|it| it.name.as_str() == name) else { return Vec::new() };
    let names = it.prompt.arguments().into_iter().map(|it| it.name);
    names.filter(|it| !is_given(it, given)).map(|it| format!("{it}=")).collect()
}

fn is_given(name: &str, given: &[&str]) -> bool {
    given.iter().any(|it| it.split_once('=').is_some_and(|(it, _)| it.trim_end_matches(':') == name))
}

/// The arguments of a tool that are not there yet, or the values of the one that is being written.
fn arguments(tool: &str, given: &[&str], word: &str, published: &HostSnapshot) -> Vec<String> {
    let ToolLookup::Found(tool) = published.catalog.find(tool) else { return Vec::new() };
    let Some(root) = schema(&tool.tool.input_schema) else { return Vec::new() };
    let top = resolved(&root, &root);
    let Some(properties) = top.get("properties").and_then(Value::as_object) else { return Vec::new() };
    if let Some((name, _)) = word.split_once('=') {
        let Some(property) = properties.get(name) else { return Vec::new() };
        return values(&root, property).into_iter().map(|it| format!("{name}={it} ")).collect();
    }
    let required = |name: &str| {
        let list = top.get("required").and_then(Value::as_array);
        list.is_some_and(|it| it.iter().any(|it| it.as_str() == Some(name)))
    };
    let mut names: Vec<&String> = properties.keys().filter(|it| !is_given(it, given)).collect();
    // What is needed comes first.
    names.sort_by_key(|it| !required(it));
    names.into_iter().map(|it| format!("{it}=")).collect()
}

fn schema(schema: &RawJson) -> Option<Value> {
    schema.read().ok()
}

/// The values that a schema names, as they are typed.
fn values(root: &Value, property: &Value) -> Vec<String> {
    let property = resolved(root, property);
    let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|it| property.get(it)?.as_array()).flatten();
    let places: Vec<&Value> = std::iter::once(property)
        .chain(property.get("items").map(|it| resolved(root, it)))
        .chain(alternatives.take(VALUES).map(|it| resolved(root, it)))
        .collect();
    let mut res = Vec::new();
    for place in places {
        let named =
            place.get("enum").and_then(Value::as_array).into_iter().flatten().chain(place.get("const"));
        res.extend(named.take(VALUES).filter_map(typed));
        if place.get("type").and_then(Value::as_str) == Some("boolean") {
            res.extend(["true".to_owned(), "false".to_owned()]);
        }
    }
    res
}

/// A value as somebody types it; one with spaces in quotation marks.
fn typed(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() || text.contains([' ', '\'', '"', '\\', '\t', '\n']) => {
            (!text.contains(['\'', '\n'])).then(|| format!("'{text}'"))
        }
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// May a line be kept in the history? Not one that gives a value to an argument that is called or marked as a secret,
/// nor one that begins with a space.
pub(super) fn is_kept(line: &str, published: &HostSnapshot) -> bool {
    if line.trim().is_empty() || line.starts_with(char::is_whitespace) {
        return false;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let tool = match words.as_slice() {
        ["call", tool, ..] | [tool, ..] => published.catalog.find(tool),
        [] => return false,
    };
    let marked: Vec<String> = match tool {
        ToolLookup::Found(it) => schema(&it.tool.input_schema).map(|it| secrets(&it)).unwrap_or_default(),
        ToolLookup::Ambiguous(_) | ToolLookup::Missing { nearest: _ } => Vec::new(),
    };
    // Names as they stand before `=`, and between quotation marks in JSON.
    let names = line.split(|it: char| !(it.is_alphanumeric() || matches!(it, '_' | '-' | '.')));
    let followed = |name: &str| {
        let mut places =
            line.match_indices(name).map(|(at, _)| line[at + name.len()..].trim_start_matches(['"', '\'']));
        places.any(|it| it.trim_start().starts_with(['=', ':']))
    };
    !names
        .filter(|it| !it.is_empty())
        .any(|it| (sounds_secret(it) || marked.iter().any(|name| name == it)) && followed(it))
}

/// Names that are used for secrets.
fn sounds_secret(name: &str) -> bool {
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

/// The arguments that a schema marks as secrets.
fn secrets(root: &Value) -> Vec<String> {
    let properties = resolved(root, root).get("properties").and_then(Value::as_object);
    let is_secret = |it: &Value| {
        let it = resolved(root, it);
        it.get("format").and_then(Value::as_str) == Some("password")
            || it.get("writeOnly").and_then(Value::as_bool) == Some(true)
    };
    let marked = properties.into_iter().flatten().filter(|(_, it)| is_secret(it));
    marked.map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_host::ServerState;
    use mcp_model::{Exposure, NamePolicy, ServerId, read_prompts, read_tools};
    use mcp_registry::{Builtins, Catalog, ServerEntry, ServerLists};

    use super::*;
    use crate::fixture;

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
        let entry = ServerEntry {
            id: ServerId::parse("s").unwrap(),
            exposure: Exposure::all(NamePolicy::Pass),
            lists: Arc::new(ServerLists { tools, prompts, ..ServerLists::default() }),
        };
        let catalog = Arc::new(Catalog::build(&Builtins::default(), &[entry]));
        HostSnapshot {
            catalog,
            ..fixture::published(&[("demo", ServerState::Ready), ("other", ServerState::Failed)])
        }
    }

    #[track_caller]
    fn check(line: &str, want: &str) {
        let (start, candidates) = complete(line, line.len(), &published());
        assert_eq!(format!("{start} {}", candidates.join("|")), want);
    }

    #[test]
    fn a_word_becomes_what_can_stand_there() {
        check("pa", "0 paint |pair ");
        check("pro", "0 prompts |prompt |problems ");
        check("schema p", "7 paint |pair ");
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
    fn the_middle_of_a_line_is_completed_too() {
        let (start, candidates) = complete("sch paint", 3, &published());
        assert_eq!((start, candidates), (0, vec!["schema ".to_owned()]));
        // A cursor that is nowhere does no harm.
        assert_eq!(complete("é", 1, &published()).1, Vec::<String>::new());
    }

    #[track_caller]
    fn check_kept(line: &str, want: bool) {
        assert_eq!(is_kept(line, &published()), want, "{line}");
    }

    #[test]
    fn hd_sc5_what_may_be_a_secret_is_not_kept() {
        check_kept("paint colour=red", true);
        check_kept("paint hidden=x", false);
        check_kept(r#"call paint {"hidden": "x"}"#, false);
        check_kept("login password=x", false);
        check_kept("login api_key:=\"x\"", false);
        check_kept(r#"login {"apiKey":"x"}"#, false);
        check_kept("echo text=token", true);
        check_kept("schema password", true);
        check_kept(" echo text=a", false);
        check_kept("", false);
    }
}

//! Properties of mcp-config.

use std::collections::BTreeSet;

use mcp_host_config::internal::template::{self, ReferenceRule};
use mcp_host_config::internal::{
    ChangedPointers, Content, Node, ParsedText, Syntax, find_difference, parse_as, to_json,
};
use mcp_host_config::{
    Applicability, Colour, Document, Profile, Switch, fix_all, parse_editor_env_file, parse_env_file, read,
    remove_server, render, set_enabled,
};
use mcp_host_model::{ConfigValue, TemplatePart};
use serde_json::Value;

/// Reads a text with a profile and edits it.
pub fn configuration(profile: Profile, bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let document = Document::new("fuzzed", text, profile);
    let reading = read(&document);
    for diagnostic in &reading.diagnostics {
        assert!(text.get(diagnostic.span.clone()).is_some(), "{:?} is outside the text", diagnostic.span);
        for label in &diagnostic.labels {
            assert!(text.get(label.span.clone()).is_some(), "{:?} is outside the text", label.span);
        }
    }
    render("fuzzed", text, &reading.diagnostics, Colour::Never);
    for server in &reading.servers {
        assert!(
            text.get(server.origin.span.clone()).is_some(),
            "{:?} is outside the text",
            server.origin.span
        );
    }
    // A fixed or edited text can be read.
    if text.len() < 4096 && reading.diagnostics.len() < 50 {
        let fixed = fix_all(&document, Applicability::Suggested);
        read(&document.with_text(&fixed.text));
        if let Some(entry) = reading.entries.first() {
            for edited in
                [remove_server(&document, &entry.name), set_enabled(&document, &entry.name, Switch::Off)]
                    .into_iter()
                    .flatten()
            {
                read(&document.with_text(&edited));
            }
        }
    }
    // Reading is deterministic.
    let again = read(&document);
    assert_eq!(reading.servers, again.servers);
    assert_eq!(reading.diagnostics.len(), again.diagnostics.len());
}

/// Reads a text as a `.env` file: names are valid and unique.
pub fn env_file(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    for variables in [parse_env_file(text), parse_editor_env_file(text)] {
        for (name, value) in &variables {
            assert!(!name.is_empty() && !name.contains(['=', '\0']), "{name:?} is not a name");
            assert!(!value.expose().contains(['\0', '\n']) || value.expose().len() < text.len());
        }
    }
    let plain = parse_env_file(text);
    let names: BTreeSet<&str> = plain.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(names.len(), plain.len());
}

/// Reads a text as JSON, with and without comments, and compares with serde_json.
pub fn jsonc(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let strict = parse_as(text, Syntax::Json);
    let lenient = parse_as(text, Syntax::JsonWithComments);
    check_spans(text, &strict);
    check_spans(text, &lenient);
    let Some(root) = strict.root.as_ref().filter(|_| strict.diagnostics.is_empty()) else { return };
    let same = lenient.root.as_ref().expect("JSON is also JSON with comments");
    assert_eq!(find_difference(root, same, &ChangedPointers::default()), None);
    let plain = text.trim_start_matches('\u{feff}');
    if plain.trim().is_empty() {
        return;
    }
    let want = serde_json::from_str::<Value>(plain);
    let Ok(want) = want else {
        // A number that no f64 holds is still JSON, and serde_json bounds nesting too.
        serde_json::from_str::<serde::de::IgnoredAny>(plain).expect("accepted text is JSON");
        return;
    };
    if let Some(json) = to_json(root) {
        let got: Value = serde_json::from_str(&json).expect("a tree is serialized as JSON");
        assert_eq!(without_numbers(&got), without_numbers(&want));
    }
}

/// Reads a text as YAML.
pub fn yaml(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let parsed = parse_as(text, Syntax::Yaml);
    check_spans(text, &parsed);
    let again = parse_as(text, Syntax::Yaml);
    assert_eq!(parsed.diagnostics.len(), again.diagnostics.len());
    match (&parsed.root, &again.root) {
        (Some(first), Some(second)) => {
            assert_eq!(find_difference(first, second, &ChangedPointers::default()), None)
        }
        (None, None) => {
            assert!(!parsed.diagnostics.is_empty(), "nothing was read, and there is no diagnostic")
        }
        _ => panic!("reading is not deterministic"),
    }
    // The tree written as JSON can be read as JSON.
    if let Some(json) = parsed.root.as_ref().filter(|_| parsed.diagnostics.is_empty()).and_then(to_json)
        && json.len() < 64 << 10
    {
        let back = parse_as(&json, Syntax::Json);
        assert!(back.diagnostics.is_empty(), "{json}");
    }
}

/// Splits a text with variables: the pieces are the text, and replaced values are not parsed again.
pub fn template(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    for rule in [
        ReferenceRule::Literal,
        ReferenceRule::Secrets,
        ReferenceRule::Expand,
        ReferenceRule::ExpandWithFolder,
        ReferenceRule::Editor,
        ReferenceRule::EditorAndShell,
        ReferenceRule::EditorAndOptionalShell,
        ReferenceRule::Braces,
    ] {
        let pieces = template::split_references(text, rule);
        let mut at = 0;
        for piece in &pieces {
            let word = match piece {
                TemplatePart::Text(it) => it.expose(),
                TemplatePart::Variable(name)
                | TemplatePart::OptionalVariable(name)
                | TemplatePart::VariableOr { name, .. } => {
                    assert!(is_name(name), "{name:?} is not a name");
                    name
                }
                TemplatePart::Input(text) | TemplatePart::File(text) | TemplatePart::Secret(text) => {
                    assert!(!text.is_empty());
                    text
                }
            };
            // The pieces are in order. Only the separator of paths may be another text.
            match text[at..].find(word) {
                Some(start) => at += start + word.len(),
                None => assert_eq!(word, std::path::MAIN_SEPARATOR_STR),
            }
        }
        if matches!(rule, ReferenceRule::Expand | ReferenceRule::ExpandWithFolder) {
            let whole: String = pieces.iter().map(piece_text).collect();
            assert_eq!(whole, text);
        }
        assert_eq!(
            template::has_reference(text, rule),
            pieces.iter().any(|it| !matches!(it, TemplatePart::Text(it) if it.expose().len() == text.len()))
        );
        match template::parse_value(text, rule) {
            ConfigValue::Literal(it) => assert_eq!(it.expose(), text),
            ConfigValue::Template(parts) => {
                assert_eq!(parts.len(), pieces.len());
                assert!(parts.iter().any(|it| !matches!(it, TemplatePart::Text(_))) || text.contains("${/}"));
            }
            ConfigValue::HostEnv { .. } => panic!("a text is never a variable of the host"),
        }
        template::find_unexpanded_reference(&template::split_references(text, rule));
        template::input_variable(text);
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|it: char| it.is_ascii_digit())
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

fn piece_text(piece: &TemplatePart) -> String {
    match piece {
        TemplatePart::Text(it) => it.expose().to_owned(),
        TemplatePart::Variable(name) => format!("${{{name}}}"),
        TemplatePart::Secret(name) => format!("${{secret:{name}}}"),
        TemplatePart::OptionalVariable(_)
        | TemplatePart::VariableOr { .. }
        | TemplatePart::Input(_)
        | TemplatePart::File(_) => {
            panic!("HoloDeck has no such references")
        }
    }
}

/// Checks that every span is inside the text and inside its parent.
fn check_spans(text: &str, parsed: &ParsedText) {
    for diagnostic in &parsed.diagnostics {
        // A span may split a character here; rendering clamps it.
        let span = &diagnostic.span;
        assert!(span.start <= span.end && span.end <= text.len(), "{span:?} is outside the text");
    }
    for range in &parsed.dropped {
        assert!(text.get(range.clone()).is_some(), "{range:?} is outside the text");
    }
    if let Some(root) = &parsed.root {
        check_node(text, root);
    }
}

fn check_node(text: &str, node: &Node) {
    assert!(text.get(node.span.clone()).is_some(), "{:?} is outside the text", node.span);
    match &node.content {
        Content::Mapping(members) => {
            let mut seen = BTreeSet::new();
            for member in members {
                assert!(
                    text.get(member.key.span.clone()).is_some(),
                    "{:?} is outside the text",
                    member.key.span
                );
                assert!(seen.insert(&member.key.text), "the key {:?} is repeated", member.key.text);
                check_node(text, &member.value);
            }
        }
        Content::Sequence(items) => items.iter().for_each(|it| check_node(text, it)),
        Content::Null
        | Content::Bool(_)
        | Content::Integer(_)
        | Content::Float(_)
        | Content::Large(_)
        | Content::Text(_)
        | Content::Shared(_)
        | Content::Broken => {}
    }
}

/// A value without its numbers, because their precision differs between the parsers.
fn without_numbers(value: &Value) -> Value {
    match value {
        Value::Number(_) => Value::from(0),
        Value::Array(items) => items.iter().map(without_numbers).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, it)| (key.clone(), without_numbers(it))).collect()
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

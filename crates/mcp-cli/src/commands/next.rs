//! What a person may want to do next, as a command to type.

use std::path::Path;

use mcp_host::HostSnapshot;
use serde_json::Value;

/// The most arguments that a suggested call spells out.
const MOST: usize = 6;

/// A word as a shell takes it.
pub(super) fn word(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "@%_+=:,./-".contains(it);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A file as a shell takes it; this folder where none was named.
pub(super) fn file(path: &Path) -> String {
    let path = path.display().to_string();
    if path.is_empty() { ".".to_owned() } else { word(&path) }
}

/// How the first tool is called; how a server is examined where there is none.
pub(super) fn call(published: &HostSnapshot, path: &Path) -> String {
    let file = file(path);
    let Some(tool) = published.catalog.tools().first() else {
        return format!("`mcp-host doctor {file}` examines the servers step by step");
    };
    let schema = tool.tool.input_schema.read::<Value>().unwrap_or_default();
    let needed = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let needed: Vec<String> =
        needed.iter().filter_map(Value::as_str).take(MOST).map(|it| format!(" {}=…", word(it))).collect();
    format!("`mcp-host call {file} {}{}` calls it", word(tool.name.as_str()), needed.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_cut_is_quoted() {
        assert_eq!(word("a/b.json"), "a/b.json");
        assert_eq!(word("my file"), "'my file'");
        assert_eq!(word("it's $(x)"), "'it'\\''s $(x)'");
        assert_eq!((word(""), file(Path::new(""))), ("''".to_owned(), ".".to_owned()));
    }
}

//! Suggested commands, quoted for a shell.

use std::path::Path;

use mcp_host_runtime::HostSnapshot;
use serde_json::Value;

/// The maximum number of arguments in a suggested call.
const MAX_ARGUMENTS: usize = 6;

/// A word, quoted for a shell if necessary.
pub(crate) fn quote(text: &str) -> String {
    let is_safe = |character: char| character.is_ascii_alphanumeric() || "@%_+=:,./-".contains(character);
    if !text.is_empty() && text.chars().all(is_safe) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// A path, quoted for a shell; `.` if it is empty.
pub(crate) fn quote_path(path: &Path) -> String {
    let path = path.display().to_string();
    if path.is_empty() { ".".to_owned() } else { quote(&path) }
}

/// A command that calls the first tool; without tools, a command that tests the servers.
pub(crate) fn suggest_call(published: &HostSnapshot, path: &Path) -> String {
    let file = quote_path(path);
    let Some(tool) = published.catalog.tools().first() else {
        return format!("`mcp-host doctor {file}` tests the servers step by step");
    };
    let schema = tool.tool.input_schema.read::<Value>().unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let arguments: String = required
        .iter()
        .filter_map(Value::as_str)
        .take(MAX_ARGUMENTS)
        .map(|name| format!(" {}=…", quote(name)))
        .collect();
    format!("`mcp-host call {file} {}{arguments}` calls the first tool", quote(tool.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_quoted() {
        assert_eq!(quote("a/b.json"), "a/b.json");
        assert_eq!(quote("my file"), "'my file'");
        assert_eq!(quote("it's $(x)"), "'it'\\''s $(x)'");
        assert_eq!((quote(""), quote_path(Path::new(""))), ("''".to_owned(), ".".to_owned()));
    }
}

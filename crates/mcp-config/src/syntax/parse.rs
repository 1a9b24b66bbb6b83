//! Selects the parser of a text.

use crate::syntax::jsonc::{self, looks_like_json};
use crate::syntax::parsed_text::{ParsedText, Syntax};
#[cfg(feature = "files")]
use crate::syntax::{toml, yaml};
#[cfg(not(feature = "files"))]
use crate::syntax::{yaml_unsupported as toml, yaml_unsupported as yaml};

impl Syntax {
    /// The syntax of an editor's or agent's file: by its extension, else by its content.
    pub(crate) fn of_editor_file(name: &str, text: &str) -> Syntax {
        let extension = name.rsplit(['/', '\\']).next().and_then(|it| it.rsplit_once('.')).map(|it| it.1);
        match extension {
            Some("toml") => Syntax::Toml,
            _ if looks_like_toml(text) => Syntax::Toml,
            _ if looks_like_json(after_comments(text)) => Syntax::JsonWithComments,
            Some("yaml" | "yml") => Syntax::Yaml,
            _ if looks_like_yaml(text) => Syntax::Yaml,
            Some(_) | None => Syntax::JsonWithComments,
        }
    }
}

/// The text after the lines that begin with `#`, which is no comment in JSON.
fn after_comments(text: &str) -> &str {
    let length = text.split_inclusive('\n').take_while(|it| it.starts_with('#')).map(str::len).sum();
    &text[length..]
}

/// Returns whether the text has a line with Codex's key of servers, as TOML writes it.
pub(crate) fn looks_like_toml(text: &str) -> bool {
    ["[mcp_servers.", "[mcp_servers]", "mcp_servers.", "[mcp-servers.", "[mcp-servers]"].iter().any(|key| {
        text.starts_with(key) || text.contains(&format!("\n{key}")) || text.contains(&format!("\r{key}"))
    })
}

/// Returns whether the text has a line with a key of servers, as YAML writes it.
fn looks_like_yaml(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("mcpServers:") || line.starts_with("extensions:"))
}

/// Parses a text. Never fails and never panics.
pub fn parse_as(text: &str, syntax: Syntax) -> ParsedText {
    match syntax {
        Syntax::Yaml => yaml::parse(text),
        Syntax::Json | Syntax::JsonWithComments => jsonc::parse(text, syntax),
        Syntax::Toml => toml::parse(text),
    }
}

/// Parses a text of unknown syntax: as TOML if it has Codex's servers, as JSON if it looks like JSON and is valid, else
/// as YAML.
///
/// A text with JSON comments is never YAML, even if it could be parsed: a comment would become a key.
pub(crate) fn parse_any(text: &str) -> ParsedText {
    if looks_like_toml(text) {
        return toml::parse(text);
    }
    if !jsonc::looks_like_json(text) {
        return yaml::parse(text);
    }
    let res = jsonc::parse(text, Syntax::JsonWithComments);
    if res.root.is_some() || jsonc::has_comment(text) { res } else { yaml::parse(text) }
}

//! Diagnostics of a session request.
//!
//! They contain names, positions and transports, never the value of a variable, header, argument or URL.

use std::fmt;

use mcp_host_config::Diagnostic;
use serde::Serialize;

use crate::version::AcpTransport;

/// A diagnostic of a request: an error or a warning.
///
/// Serializes as an item of `data.errors`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RequestDiagnostic {
    /// The index in `mcpServers`, from 0; `None` if it concerns the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The entry's name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// The field of the entry, or of the request: `env[0].name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// JSON pointer into the request; `/params` are its parameters.
    pub pointer: String,
    /// The message: one sentence.
    pub message: String,
    /// The unsupported transport, if that is the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_transport: Option<AcpTransport>,
    /// What the user can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl RequestDiagnostic {
    /// A diagnostic at a JSON pointer.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> RequestDiagnostic {
        let (pointer, message) = (pointer.into(), message.into());
        RequestDiagnostic { pointer, message, ..RequestDiagnostic::default() }
    }

    /// Creates a diagnostic at `pointer`, and derives index and field from it.
    pub(crate) fn at_pointer(pointer: impl Into<String>, message: impl Into<String>) -> RequestDiagnostic {
        let diagnostic = RequestDiagnostic::new(pointer, message);
        let (index, field) = parse_pointer(&diagnostic.pointer);
        RequestDiagnostic { index, field, ..diagnostic }
    }

    /// Converts a diagnostic of mcp-config.
    pub(crate) fn from_config(diagnostic: &Diagnostic) -> RequestDiagnostic {
        RequestDiagnostic {
            suggestion: diagnostic.help.clone(),
            ..RequestDiagnostic::at_pointer(diagnostic.pointer.as_str(), diagnostic.message.as_str())
        }
    }

    /// Writes the message with the name of the server, if it has one.
    pub(crate) fn write_with_server(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.server_name.as_deref().filter(|_| !self.message.starts_with("MCP server '"))
        {
            write!(f, "MCP server '{}': ", name.escape_debug())?;
        }
        f.write_str(&self.message)
    }

    /// Adds a suggestion.
    pub(crate) fn with_suggestion(mut self, suggestion: impl Into<String>) -> RequestDiagnostic {
        self.suggestion = Some(suggestion.into());
        self
    }
}

/// The effect of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum WarningEffect {
    /// None.
    Noted,
    /// The entry was dropped.
    Dropped,
}

/// A warning about an accepted request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RequestWarning {
    /// The effect.
    pub effect: WarningEffect,
    /// The diagnostic.
    #[serde(flatten)]
    pub diagnostic: RequestDiagnostic,
}

impl RequestWarning {
    /// A warning with this effect.
    pub fn new(effect: WarningEffect, diagnostic: RequestDiagnostic) -> RequestWarning {
        RequestWarning { effect, diagnostic }
    }
}

/// JSON pointer to the list of servers.
pub(crate) const SERVERS_POINTER: &str = "/params/mcpServers";

/// Returns the index in `mcpServers` and the field to which a pointer points.
fn parse_pointer(pointer: &str) -> (Option<usize>, Option<String>) {
    let field = |path: &str| (!path.is_empty()).then(|| field_path(path));
    if let Some(path) = pointer.strip_prefix(SERVERS_POINTER).and_then(|path| path.strip_prefix('/')) {
        let (index, rest) = path.split_once('/').unwrap_or((path, ""));
        if let Ok(index) = index.parse() {
            return (Some(index), field(rest));
        }
    }
    (None, pointer.strip_prefix("/params/").and_then(field))
}

/// Formats `env/0/name` as `env[0].name`.
fn field_path(path: &str) -> String {
    let mut field = String::new();
    for segment in path.split('/') {
        let name = segment.replace("~1", "/").replace("~0", "~");
        match field.is_empty() {
            true => field = name,
            false if segment.bytes().all(|byte| byte.is_ascii_digit()) => {
                field.push_str(&format!("[{segment}]"))
            }
            false => field.push_str(&format!(".{name}")),
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pointer: &str, index: Option<usize>, field: Option<&str>) {
        let diagnostic = RequestDiagnostic::at_pointer(pointer, "");
        assert_eq!((diagnostic.index, diagnostic.field.as_deref()), (index, field), "{pointer}");
    }

    #[test]
    fn pointer_gives_index_and_field() {
        check("/params/mcpServers/2/env/0/name", Some(2), Some("env[0].name"));
        check("/params/mcpServers/0", Some(0), None);
        check("/params/mcpServers/0/a~1b", Some(0), Some("a/b"));
        check("/params/mcpServers", None, Some("mcpServers"));
        check("/params/additionalDirectories/1", None, Some("additionalDirectories[1]"));
        check("/params", None, None);
        check("", None, None);
    }
}

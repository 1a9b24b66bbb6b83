//! One thing that is to be said about a request, and where it stands.
//!
//! It holds names, places and the words of transports; never a value of a variable, header, argument or URL.

use mcp_config::Diagnostic;
use serde::Serialize;

use crate::AcpTransport;

/// Something about a request: why it is refused, or what is to be known about it.
///
/// Serialised it is an item of `data.errors`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestDiagnostic {
    /// Which entry of `mcpServers`, from 0; `None` where it is about the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The entry's name, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// The field of the entry, or of the request: `env[0].name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// JSON pointer into the request, `/params` being its parameters.
    pub pointer: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The transport that the agent does not support, where that is what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_transport: Option<AcpTransport>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl RequestDiagnostic {
    /// About the place that `pointer` leads to; index and field are seen from it.
    pub(crate) fn at_pointer(pointer: impl Into<String>, message: impl Into<String>) -> RequestDiagnostic {
        let pointer = pointer.into();
        let (index, field) = parse_pointer(&pointer);
        RequestDiagnostic {
            index,
            server_name: None,
            field,
            pointer,
            message: message.into(),
            requested_transport: None,
            suggestion: None,
        }
    }

    /// The same as mcp-config says it.
    pub(crate) fn from_config(diagnostic: &Diagnostic) -> RequestDiagnostic {
        let mut res = RequestDiagnostic::at_pointer(diagnostic.pointer.as_str(), diagnostic.message.as_str());
        res.suggestion = diagnostic.help.clone();
        res
    }

    /// The same, with what to do about it.
    pub(crate) fn with_suggestion(mut self, suggestion: impl Into<String>) -> RequestDiagnostic {
        self.suggestion = Some(suggestion.into());
        self
    }
}

/// What became of something that did not refuse the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WarningEffect {
    /// Nothing; it is to be known.
    Noted,
    /// The session goes on without the entry.
    Dropped,
}

/// Something to be known about a request that is not refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestWarning {
    /// What became of it.
    pub effect: WarningEffect,
    /// What it is.
    #[serde(flatten)]
    pub diagnostic: RequestDiagnostic,
}

/// The list of servers.
pub(crate) const SERVERS_POINTER: &str = "/params/mcpServers";

fn parse_pointer(pointer: &str) -> (Option<usize>, Option<String>) {
    let below = |it: &str| Some(it).filter(|it| !it.is_empty()).map(field_path);
    if let Some(inside) = pointer.strip_prefix(SERVERS_POINTER).and_then(|it| it.strip_prefix('/')) {
        let (index, rest) = inside.split_once('/').unwrap_or((inside, ""));
        if let Ok(index) = index.parse() {
            return (Some(index), below(rest));
        }
    }
    (None, pointer.strip_prefix("/params/").and_then(below))
}

/// `env/0/name` as people write it.
fn field_path(path: &str) -> String {
    let mut res = String::new();
    for segment in path.split('/') {
        if !res.is_empty() && segment.bytes().all(|it| it.is_ascii_digit()) {
            res.push_str(&format!("[{segment}]"));
            continue;
        }
        if !res.is_empty() {
            res.push('.');
        }
        res.push_str(&segment.replace("~1", "/").replace("~0", "~"));
    }
    res
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pointer: &str, index: Option<usize>, field: Option<&str>) {
        let it = RequestDiagnostic::at_pointer(pointer, "");
        assert_eq!((it.index, it.field.as_deref()), (index, field), "{pointer}");
    }

    #[test]
    fn a_pointer_says_entry_and_field() {
        check("/params/mcpServers/2/env/0/name", Some(2), Some("env[0].name"));
        check("/params/mcpServers/0", Some(0), None);
        check("/params/mcpServers/0/a~1b", Some(0), Some("a/b"));
        check("/params/mcpServers", None, Some("mcpServers"));
        check("/params/additionalDirectories/1", None, Some("additionalDirectories[1]"));
        check("/params", None, None);
        check("", None, None);
    }
}

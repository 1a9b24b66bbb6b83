//! The lists by which Gemini CLI and Qwen Code select servers: `mcp.excluded` and `mcp.allowed`.

use std::collections::HashSet;

use crate::de::{Location, ReadContext};
use crate::diagnostic::{Code, RawDiagnostic, quoted};
use crate::dialect::editor::conventions::Program;
use crate::syntax::Node;

/// The pointer to the names of servers that are not started.
pub(crate) const EXCLUDED: &str = "/mcp/excluded";
/// The pointer to the names of servers that are started. An empty list allows all.
pub(crate) const ALLOWED: &str = "/mcp/allowed";

/// The lists of a file, as sets of names.
pub(crate) struct NameLists<'a> {
    excluded: HashSet<&'a str>,
    allowed: HashSet<&'a str>,
}

impl<'a> NameLists<'a> {
    pub(crate) fn read(root: &'a Node) -> NameLists<'a> {
        let list = |pointer| {
            let items = root.at(pointer).and_then(Node::items).unwrap_or_default();
            items.iter().filter_map(Node::text).collect()
        };
        NameLists { excluded: list(EXCLUDED), allowed: list(ALLOWED) }
    }

    /// Warns about a value of `mcp.excluded` or `mcp.allowed` that is not a list. It has no effect.
    pub(super) fn check(root: &Node, program: &Program, context: &ReadContext) {
        for pointer in [EXCLUDED, ALLOWED] {
            let Some(node) = root.at(pointer).filter(|it| it.items().is_none() && it.kind() != "nothing")
            else {
                continue;
            };
            let message = format!("{} reads a list of names here, not {}", program.name, node.kind());
            let diagnostic = RawDiagnostic::new(Code::WrongType, message, pointer, node.span.clone());
            context.report(diagnostic.warning().help("write `[\"name\"]`"));
        }
    }

    pub(crate) fn excludes(&self, name: &str) -> bool {
        self.excluded.contains(name)
    }

    /// Whether `mcp.allowed` has names, and this one is not among them.
    pub(crate) fn is_not_allowed(&self, name: &str) -> bool {
        !self.allowed.is_empty() && !self.allowed.contains(name)
    }

    /// Whether the lists disable the server.
    pub(crate) fn disables(&self, name: &str) -> bool {
        self.excludes(name) || self.is_not_allowed(name)
    }

    /// Reports that the lists disable the server at a location.
    pub(super) fn note_disabled(&self, name: &str, program: &Program, at: &Location, context: &ReadContext) {
        let (why, help) = if self.excludes(name) {
            ("is in the list `mcp.excluded`", "remove it from the list; `mcp-host enable` does that")
        } else {
            ("is not in the list `mcp.allowed`", "add it to the list; `mcp-host enable` does that")
        };
        let message = format!("{} does not start '{}': it {why} of this file", program.name, quoted(name));
        let diagnostic = context.new_diagnostic(Code::DisabledServer, &at.at_key(), message);
        context.report(diagnostic.severity(mcp_host_model::Severity::Info).help(help));
    }
}

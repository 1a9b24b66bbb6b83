//! Positions of the values of a file's servers, for errors found after reading.
//!
//! Only errors of variable resolution need them, so they are computed on first use from a copy of the text.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use mcp_host_model::{Secret, ServerSpec};

use crate::de::{Location, ReadContext};
use crate::diagnostic::LineIndex;
use crate::profile::rules::ProfileRules;
use crate::syntax::{self, Node, Syntax};

/// Source positions by JSON pointer. `Debug` does not print the text.
#[derive(Debug)]
pub(crate) struct ValuePositions {
    text: Secret,
    syntax: Syntax,
    rules: &'static ProfileRules,
    positions: OnceLock<BTreeMap<String, SourcePosition>>,
}

/// The position of a value in the text.
#[derive(Debug, Clone)]
pub(crate) struct SourcePosition {
    pub(crate) span: Range<usize>,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl ValuePositions {
    /// The positions in a text.
    pub(crate) fn new(text: &str, syntax: Syntax, rules: &'static ProfileRules) -> ValuePositions {
        ValuePositions { text: Secret::new(text), syntax, rules, positions: OnceLock::new() }
    }

    /// The position of the value at a pointer, or of the nearest value that contains it. The start of the file for a
    /// pointer outside of the servers.
    pub(crate) fn nearest(&self, pointer: &str, servers: &[ServerSpec]) -> SourcePosition {
        let positions = self.positions.get_or_init(|| self.compute(servers));
        let mut ancestors = std::iter::successors(Some(pointer), |it| syntax::parent_pointer(it));
        let found = ancestors.find_map(|it| positions.get(it));
        found.cloned().unwrap_or(SourcePosition { span: 0..0, line: 1, column: 1 })
    }

    /// Parses the text again and collects the positions of all values of the servers.
    fn compute(&self, servers: &[ServerSpec]) -> BTreeMap<String, SourcePosition> {
        let text = self.text.expose();
        let mut res = BTreeMap::new();
        let Some(root) = syntax::parse_as(text, self.syntax).root else { return res };
        let (lines, context) = (LineIndex::new(text), ReadContext::new(self.rules, ""));
        for server in servers {
            if let Some((node, at)) = find_node(&root, &server.origin.pointer, &context) {
                collect_positions(node, at, &lines, &context, &mut res);
            }
        }
        res
    }
}

/// The node at a pointer, with its location.
fn find_node<'a>(root: &'a Node, pointer: &str, context: &ReadContext) -> Option<(&'a Node, Location)> {
    let mut node = root;
    let mut at = Location::root(root, context);
    for segment in syntax::pointer_segments(pointer) {
        if let Some(member) = node.get(&segment) {
            at = at.member(member, context);
            node = &member.value;
        } else {
            let index = segment.parse().ok()?;
            let item = node.items()?.get(index)?;
            at = at.item(index, item, context);
            node = item;
        }
    }
    Some((node, at))
}

/// Adds the positions of a node and of all values below it.
fn collect_positions(
    node: &Node,
    at: Location,
    lines: &LineIndex<'_>,
    context: &ReadContext,
    out: &mut BTreeMap<String, SourcePosition>,
) {
    let is_collection = node.items().is_some() || node.members().is_some();
    let span = lines.clamp(if is_collection { at.key_span(context) } else { at.span(context) });
    let (line, column) = lines.position(span.start);
    out.insert(at.pointer(context), SourcePosition { span, line, column });
    for (index, item) in node.items().into_iter().flatten().enumerate() {
        collect_positions(item, at.item(index, item, context), lines, context, out);
    }
    for member in node.members().into_iter().flatten() {
        collect_positions(&member.value, at.member(member, context), lines, context, out);
    }
}

//! Where the values of a file's servers stand, for what goes wrong after the file was read.
//!
//! Few files are ever asked: only what cannot be resolved needs a place. So the text is kept, and looked through again
//! when the first question comes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use mcp_model::Secret;

use crate::de::{Location, ReadContext};
use crate::diagnostic::LineIndex;
use crate::dialect::policy::Policy;
use crate::syntax::{self, Node};

/// Places by pointers. `Debug` shows no text.
#[derive(Debug)]
pub(crate) struct ValuePositions {
    text: Secret,
    policy: &'static Policy,
    /// The pointers to the servers.
    servers: Vec<String>,
    positions: OnceLock<BTreeMap<String, SourcePosition>>,
}

/// Where a value stands: its bytes, its line, its column.
#[derive(Debug, Clone)]
pub(crate) struct SourcePosition {
    pub(crate) span: Range<usize>,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl ValuePositions {
    /// Those of a text that is read by `policy`, in the servers that these pointers lead to.
    pub(crate) fn new(text: &str, policy: &'static Policy, servers: Vec<String>) -> ValuePositions {
        let text = if servers.is_empty() { "" } else { text };
        ValuePositions { text: Secret::new(text), policy, servers, positions: OnceLock::new() }
    }

    /// The value that a pointer leads to or, where that is not in the file, the nearest thing around it; the beginning
    /// of the file for what is in none of its servers.
    pub(crate) fn nearest(&self, pointer: &str) -> SourcePosition {
        let all = self.positions.get_or_init(|| self.compute());
        let around = std::iter::successors(Some(pointer), |it| syntax::parent(it));
        let found = around.filter_map(|it| all.get(it)).next();
        found.cloned().unwrap_or(SourcePosition { span: 0..0, line: 1, column: 1 })
    }

    fn compute(&self) -> BTreeMap<String, SourcePosition> {
        let text = self.text.expose();
        let mut res = BTreeMap::new();
        let Some(root) = syntax::parse_as(text, self.policy.syntax).root else { return res };
        let (lines, pass) = (LineIndex::new(text), ReadContext::new(self.policy));
        for pointer in &self.servers {
            if let Some((node, at)) = find(&root, pointer, &pass) {
                collect(node, at, &lines, &pass, &mut res);
            }
        }
        res
    }
}

fn find<'a>(root: &'a Node, pointer: &str, pass: &ReadContext) -> Option<(&'a Node, Location)> {
    let mut node = root;
    let mut at = Location::root(root);
    for segment in syntax::segments(pointer) {
        if let Some(member) = node.get(&segment) {
            at = at.member(member, pass);
            node = &member.value;
        } else {
            let index = segment.parse().ok()?;
            let item = node.items()?.get(index)?;
            at = at.item(index, item, pass);
            node = item;
        }
    }
    Some((node, at))
}

fn collect(
    node: &Node,
    at: Location,
    lines: &LineIndex<'_>,
    pass: &ReadContext,
    out: &mut BTreeMap<String, SourcePosition>,
) {
    let is_collection = node.items().is_some() || node.members().is_some();
    let span = lines.clamp(if is_collection { at.key() } else { at.span() });
    let (line, column) = lines.position(span.start);
    out.insert(at.pointer(pass), SourcePosition { span, line, column });
    for (index, item) in node.items().into_iter().flatten().enumerate() {
        collect(item, at.item(index, item, pass), lines, pass, out);
    }
    for member in node.members().into_iter().flatten() {
        collect(&member.value, at.member(member, pass), lines, pass, out);
    }
}

//! Reads the keys by which programs state what needs no confirmation, or always needs one, as rules for calls.
//!
//! They allow no more than the program itself: a list names tools literally, and counts in the files of its program
//! only. What a program confirms because of no key is left to the default of the host.

use mcp_host_model::{CallEffect, CallRule, ToolAction};

use crate::dialect::editor::conventions::ApprovalKeys;
use crate::syntax::{Content, Node};

/// The modes of Codex in which a call is sent without confirmation, and in which the annotations of its tool decide.
const CODEX_APPROVE: &str = "approve";
const CODEX_AUTO: &str = "auto";

/// Reads the rules that follow from the keys of an entry.
pub(super) fn read(entry: &Node, keys: ApprovalKeys) -> Vec<CallRule> {
    match keys {
        ApprovalKeys::None => Vec::new(),
        ApprovalKeys::Names(key) => {
            let names = entry.value(key).and_then(Node::items).unwrap_or_default();
            names.iter().filter_map(Node::text).filter_map(|it| tool_rule(CallEffect::Allow, it)).collect()
        }
        ApprovalKeys::Trust => match entry.value("trust").map(Node::resolved_content) {
            Some(Content::Bool(true)) => vec![CallRule::new(CallEffect::Allow)],
            _ => Vec::new(),
        },
        ApprovalKeys::Codex => {
            let tools = entry.value("tools").and_then(Node::members).unwrap_or_default();
            let of_tools = tools.iter().flat_map(|it| {
                let mode = it.value.text_of("approval_mode");
                mode.map(|mode| codex_rules(mode, Some(&*it.key.text))).unwrap_or_default()
            });
            let default = entry.text_of("default_tools_approval_mode");
            of_tools.chain(default.map(|it| codex_rules(it, None)).unwrap_or_default()).collect()
        }
    }
}

/// The rules of one of Codex's modes. One that is not known asks.
fn codex_rules(mode: &str, tool: Option<&str>) -> Vec<CallRule> {
    let rule = |effect| match tool {
        Some(tool) => tool_rule(effect, tool),
        None => Some(CallRule::new(effect)),
    };
    let rules = match mode {
        CODEX_APPROVE => [rule(CallEffect::Allow), None],
        CODEX_AUTO => {
            let reads = rule(CallEffect::Allow).map(|mut it| {
                it.hints = vec![ToolAction::Reads];
                it
            });
            [reads, rule(CallEffect::Ask)]
        }
        _ => [rule(CallEffect::Ask), None],
    };
    rules.into_iter().flatten().collect()
}

/// A rule for the tool with this name. A name with `*` would be a pattern: it is left out of what is allowed, and asks
/// about more otherwise.
fn tool_rule(effect: CallEffect, name: &str) -> Option<CallRule> {
    (effect != CallEffect::Allow || !name.contains('*')).then(|| CallRule::of_tool(effect, name))
}

//! HoloDeck's `agent.yaml`: the items of `tools` whose `type` is `mcp`.
//!
//! The type is looked at first, so that tools of other kinds, and everything else an agent is made of, are left alone.
//! Only their names are read: a name belongs to one tool, whatever its type (HD-004).

mod fields;
mod lower;
mod reach;
mod types;
mod wire;

use std::collections::HashMap;
use std::ops::Range;

use serde::Deserialize;

use crate::de::{At, Cursor, Pass, meant};
use crate::diagnostic::Code;
use crate::diagnostic::{Problem, quoted};
use crate::dialect::policy::OtherTypes;
use crate::edit::fix::Repair;
use crate::read::{Seen, shown};
use crate::syntax::{Content, Node};

pub use types::{CommandType, McpToolConfig, ToolType, TransportType};
pub(crate) use wire::Item;

/// The kinds of tools that HoloDeck has besides ours.
const OTHER_TYPES: [&str; 4] = ["vectorstore", "function", "prompt", "hierarchical_document"];
const OUR_TYPE: &str = "mcp";

/// Reads the MCP items of an agent.
pub(crate) fn read(root: &Node, pass: &Pass, file: &str) -> Vec<Seen> {
    let at = At::root(root);
    if root.members().is_none() {
        if !matches!(root.content(), Content::Broken) {
            let message = format!("an agent must be a mapping, not {}", root.kind());
            pass.error(Code::WrongType, &at, message, "write `tools:` and below it a list of tools");
        }
        return Vec::new();
    }
    let Some(tools) = root.get("tools") else { return Vec::new() };
    let at = at.member(tools, pass);
    let Some(items) = tools.value.items() else {
        if !matches!(tools.value.content(), Content::Null | Content::Broken) {
            let message = format!("'tools' must be a list, not {}", tools.value.kind());
            pass.error(Code::WrongType, &at, message, "begin each tool with `- `");
        }
        return Vec::new();
    };
    few_enough(items, &at, pass);
    names_are_unique(items, &at, pass);
    let mut res = Vec::new();
    for (index, node) in items.iter().enumerate() {
        let at = at.item(index, node, pass);
        if is_ours(node, &at, pass) {
            res.push(item(index, node, &at, pass, file));
        }
    }
    res
}

fn item(index: usize, node: &Node, at: &At, pass: &Pass, file: &str) -> Seen {
    let spec = match Item::deserialize(Cursor { pass, node: Some(node), at: *at }) {
        Ok(item) => lower::lower(item, node, at, &lower::Context { pass, file }),
        Err(fault) => {
            pass.fault(fault, at);
            None
        }
    };
    variables_stay_away(node, at, pass);
    let text = |key: &str| node.get(key).and_then(|it| it.value.text());
    let transport = match node.get("transport") {
        None => Some(mcp_model::TransportKind::Stdio),
        Some(member) => member.value.text().and_then(wire::transport_kind),
    };
    Seen {
        name: text("name").map_or_else(|| format!("tools[{index}]"), shown),
        pointer: at.pointer(pass),
        span: node.span.clone(),
        transport,
        disabled: false,
        spec,
        extension: None,
    }
}

/// Is it an MCP item? Complains about what may have been meant as one.
fn is_ours(node: &Node, at: &At, pass: &Pass) -> bool {
    if node.members().is_none() {
        if !matches!(node.content(), Content::Broken) {
            let message = format!("a tool must be a mapping, not {}", node.kind());
            pass.error(Code::WrongType, at, message, "write `name`, `type` and what the type needs");
        }
        return false;
    }
    let Some(tag) = node.get("type") else {
        let at = at.missing("type", pass);
        pass.error(Code::MissingKey, &at, "'type' is required", "an MCP server has `type: mcp`");
        return false;
    };
    let at = at.member(tag, pass);
    let Some(text) = tag.value.text() else {
        if !matches!(tag.value.content(), Content::Broken) {
            let message = format!("'type' must be text, not {}", tag.value.kind());
            pass.error(Code::WrongType, &at, message, "an MCP server has `type: mcp`");
        }
        return false;
    };
    if text == OUR_TYPE {
        return true;
    }
    if text.contains("${") {
        no_variable(&at, "type", pass);
    } else if !OTHER_TYPES.contains(&text) {
        let meant = meant(text, [OUR_TYPE]);
        let help = match (meant, pass.policy.other_types) {
            (Some(_), _) => "did you mean `mcp`?",
            (None, OtherTypes::Known) => "an MCP server has `type: mcp`",
            (None, OtherTypes::Any) => return false,
        };
        let message = format!("there is no tool type '{}'", quoted(text));
        let problem = Problem::new(Code::UnknownWord, message, at.pointer(pass), at.span());
        pass.report(problem.help(help).repair(meant.map(|it| Repair::Word(it.0.to_owned(), it.1))));
    }
    false
}

/// HoloDeck 0.7 takes no more than 50 tools.
fn few_enough(items: &[Node], at: &At, pass: &Pass) {
    let Some(most) = pass.policy.most_tools else { return };
    let Some(first) = items.get(most) else { return };
    let message = format!("an agent may have no more than {most} tools");
    let at = at.item(most, first, pass);
    let problem = Problem::new(Code::TooLarge, message, at.pointer(pass), at.key());
    pass.report(problem.help("remove some, or divide them among several agents"));
}

/// HD-004: unique across all tools of the agent.
fn names_are_unique(items: &[Node], at: &At, pass: &Pass) {
    let mut seen: HashMap<&str, Range<usize>> = HashMap::new();
    for (index, node) in items.iter().enumerate() {
        let Some(member) = node.get("name") else { continue };
        let Some(name) = member.value.text().filter(|it| !it.is_empty()) else { continue };
        let at = at.item(index, node, pass).member(member, pass);
        let Some(first) = seen.get(name) else {
            seen.insert(name, at.span());
            continue;
        };
        let shown = quoted(name);
        pass.report(
            Problem::new(
                Code::DuplicateName,
                format!("two tools of this agent are named '{shown}'"),
                at.pointer(pass),
                at.span(),
            )
            .label(first.clone(), format!("'{shown}' is here first"))
            .help("rename one of them; names are unique across all tools, whatever their type"),
        );
    }
}

/// `${` in a field that is never replaced is an error, and the only one about that field.
fn variables_stay_away(node: &Node, at: &At, pass: &Pass) {
    for key in ["name", "transport", "command"] {
        let Some(member) = node.get(key) else { continue };
        if member.value.text().is_some_and(|it| it.contains("${")) {
            let at = at.member(member, pass);
            pass.forgive(&at);
            no_variable(&at, key, pass);
        }
    }
}

fn no_variable(at: &At, key: &str, pass: &Pass) {
    let message = format!("'{key}' must not hold a variable");
    let help = "write the value itself; variables are not replaced here";
    pass.error(Code::VariableNotAllowed, at, message, help);
}

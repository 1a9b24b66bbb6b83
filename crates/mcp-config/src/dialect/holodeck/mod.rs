//! Reads HoloDeck's `agent.yaml`: the items of `tools` whose `type` is `mcp`.
//!
//! Other tools and the rest of the agent are ignored, except for the names of tools: names are unique across all types
//! (HD-004).

mod fields;
mod lower;
mod transport;
mod types;
mod wire;
pub(crate) mod write;

use crate::de::{Location, ReadContext, suggest};
use crate::diagnostic::{Code, FixIntent, quoted};
use crate::dialect::entry::{ReadEntry, display_name};
use crate::dialect::lowering::UniqueNames;
use crate::profile::rules::OtherTypes;
use crate::syntax::{Content, Node};

pub use types::{CommandType, McpToolConfig, ToolType, TransportType};
pub(crate) use wire::ToolItem;

/// The other tool types of HoloDeck.
const OTHER_TOOL_TYPES: [&str; 4] = ["vectorstore", "function", "prompt", "hierarchical_document"];
const MCP_TYPE: &str = "mcp";

/// The known tool types.
pub(crate) fn tool_types() -> impl Iterator<Item = &'static str> {
    [MCP_TYPE].into_iter().chain(OTHER_TOOL_TYPES)
}

/// Reads the MCP items of an agent.
pub(crate) fn read(root: &Node, context: &ReadContext) -> Vec<ReadEntry> {
    let mut at = Location::root(root, context);
    if root.members().is_none() && !matches!(root.resolved_content(), Content::Broken) {
        let message = match tools(root) {
            Some(_) => "this is a list of tools without an agent".to_owned(),
            None => format!("an agent must be a mapping, not {}", root.kind()),
        };
        context.error(Code::WrongType, &at, message, "write `tools:` and below it a list of tools");
    }
    let Some(list) = tools(root) else { return Vec::new() };
    if let Some(member) = root.get("tools") {
        at = at.member(member, context);
    }
    let Some(items) = list.items() else {
        if !matches!(list.resolved_content(), Content::Null | Content::Broken) {
            let message = format!("'tools' must be a list, not {}", list.kind());
            context.error(Code::WrongType, &at, message, "begin each tool with `- `");
        }
        return Vec::new();
    };
    check_tool_count(items, &at, context);
    check_unique_names(items, &at, context);
    let mut res = Vec::new();
    for (index, node) in items.iter().enumerate() {
        let at = at.item(index, node, context);
        if is_mcp_tool(node, &at, context) {
            res.push(read_item(index, node, &at, context));
        }
    }
    res
}

/// The tools of an agent. A list of tools without an agent is accepted too.
pub(crate) fn tools(root: &Node) -> Option<&Node> {
    let is_tool = |item: &Node| {
        let kind = item.text_of("type");
        item.get("name").is_some() && kind.is_some_and(|it| it == MCP_TYPE || OTHER_TOOL_TYPES.contains(&it))
    };
    let is_list_of_tools = root.items().is_some_and(|it| !it.is_empty() && it.iter().all(is_tool));
    if is_list_of_tools { Some(root) } else { root.value("tools") }
}

/// Reads an MCP item.
fn read_item(index: usize, node: &Node, at: &Location, context: &ReadContext) -> ReadEntry {
    let item = context.read::<ToolItem>(node, at);
    let spec = item.and_then(|item| lower::lower(item, node, at, context));
    check_no_variables(node, at, context);
    let transport = match node.get("transport") {
        None => Some(mcp_host_model::TransportKind::Stdio),
        Some(member) => member.value.text().and_then(wire::parse_transport_kind),
    };
    let name = node.text_of("name").map_or_else(|| format!("tools[{index}]"), display_name);
    ReadEntry { transport, spec, span: node.span.clone(), ..ReadEntry::new(name, at, context) }
}

/// Returns whether an item is an MCP tool, and reports items that were probably meant to be one.
fn is_mcp_tool(node: &Node, at: &Location, context: &ReadContext) -> bool {
    if node.members().is_none() {
        if !matches!(node.resolved_content(), Content::Broken) {
            let message = format!("a tool must be a mapping, not {}", node.kind());
            context.error(Code::WrongType, at, message, "write `name`, `type` and what the type needs");
        }
        return false;
    }
    let Some(tag) = node.get("type") else {
        let at = at.missing("type", context);
        context.error(Code::MissingKey, &at, "'type' is required", "an MCP server has `type: mcp`");
        return false;
    };
    let at = at.member(tag, context);
    let Some(text) = tag.value.text() else {
        if !matches!(tag.value.resolved_content(), Content::Broken) {
            let message = format!("'type' must be text, not {}", tag.value.kind());
            context.error(Code::WrongType, &at, message, "an MCP server has `type: mcp`");
        }
        return false;
    };
    if text == MCP_TYPE {
        return true;
    }
    if text.contains("${") {
        report_variable(&at, "type", context);
    } else if !OTHER_TOOL_TYPES.contains(&text) {
        let suggestion = suggest(text, [MCP_TYPE]);
        let help = match (suggestion, context.rules.other_types) {
            (Some(_), _) => "did you mean `mcp`?",
            (None, OtherTypes::Known) => "an MCP server has `type: mcp`",
            (None, OtherTypes::Any) => return false,
        };
        let message = format!("there is no tool type '{}'", quoted(text));
        let diagnostic = context.new_diagnostic(Code::UnknownWord, &at, message);
        context.report(
            diagnostic.help(help).fix(suggestion.map(|it| FixIntent::ReplaceScalar(it.0.to_owned(), it.1))),
        );
    }
    false
}

/// Reports too many tools. HoloDeck 0.7 accepts at most 50.
fn check_tool_count(items: &[Node], at: &Location, context: &ReadContext) {
    let Some(max_tools) = context.rules.max_tools else { return };
    let Some(first) = items.get(max_tools) else { return };
    let message = format!("an agent may have no more than {max_tools} tools");
    let at = at.item(max_tools, first, context);
    let help = "remove some, or divide them among several agents";
    context.error(Code::TooLarge, &at.at_key(), message, help);
}

/// Reports names that are not unique across all tools of the agent (HD-004).
fn check_unique_names(items: &[Node], at: &Location, context: &ReadContext) {
    let help = "rename one of them; names are unique across all tools, whatever their type";
    let mut names = UniqueNames::new("tools of this agent", help);
    for (index, node) in items.iter().enumerate() {
        let Some(member) = node.get("name") else { continue };
        let Some(name) = member.value.text().filter(|name| !name.is_empty()) else { continue };
        let at = at.item(index, node, context).member(member, context);
        names.add(name, at, context);
    }
}

/// Reports `${` in fields without variables, as the only error of the field.
fn check_no_variables(node: &Node, at: &Location, context: &ReadContext) {
    for key in ["name", "transport", "command"] {
        let Some(member) = node.get(key) else { continue };
        if member.value.text().is_some_and(|it| it.contains("${")) {
            let at = at.member(member, context);
            context.remove_diagnostics(&at);
            report_variable(&at, key, context);
        }
    }
}

fn report_variable(at: &Location, key: &str, context: &ReadContext) {
    let message = format!("'{key}' must not contain a variable");
    let help = "write the value itself; variables are not replaced here";
    context.error(Code::VariableNotAllowed, at, message, help);
}

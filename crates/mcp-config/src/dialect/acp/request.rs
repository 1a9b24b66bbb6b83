//! Finds the servers of a session in a document: a JSON-RPC request, its `params`, the list alone, or one entry alone.

use crate::de::{Location, ReadContext, closest};
use crate::diagnostic::{Code, quoted};
use crate::dialect::acp::rules::{ProtocolRules, Requirement};
use crate::dialect::acp::session::SessionMembers;
use crate::syntax::{Content, Node};

/// An entry of a document. The label is its name in messages if it has no name.
pub(super) struct EntryNode<'a> {
    pub(super) label: String,
    pub(super) node: &'a Node,
    pub(super) at: Location,
}

/// Finds the entries. Returns `None` if there can be none, and reports why.
pub(super) fn find_servers<'a>(
    root: &'a Node,
    members: &SessionMembers,
    context: &ReadContext,
    rules: &ProtocolRules,
) -> Option<Vec<EntryNode<'a>>> {
    let at = Location::root(root, context);
    match root.resolved_content() {
        Content::Sequence(_) => {
            return list_entries(root, &at, "", context);
        }
        Content::Mapping(_) => {}
        Content::Broken => return None,
        _ => {
            let message =
                format!("a session request must be an object, or a list of servers, not {}", root.kind());
            context.error(Code::WrongType, &at, message, EXAMPLE);
            return None;
        }
    }
    if root.get("method").is_some() || root.get("params").is_some() {
        return find_in_request(root, members, &at, context, rules);
    }
    if root.get("mcpServers").is_some() {
        return find_in_params(root, members, &at, Requirement::Optional, context);
    }
    let is_entry = ["command", "url", "type"].iter().any(|it| root.get(it).is_some());
    if is_entry {
        return Some(vec![EntryNode { label: "server".to_owned(), node: root, at }]);
    }
    let at = at.at_key();
    context.error(Code::NoServers, &at, "this is not a session request: it has no 'mcpServers'", EXAMPLE);
    None
}

const EXAMPLE: &str = "write `{\"mcpServers\": [{\"name\": …, \"command\": …, \"args\": [], \"env\": []}]}`";

/// Finds the entries of a JSON-RPC request.
fn find_in_request<'a>(
    root: &'a Node,
    members: &SessionMembers,
    at: &Location,
    context: &ReadContext,
    rules: &ProtocolRules,
) -> Option<Vec<EntryNode<'a>>> {
    let (mut servers, mut session_id) = (Requirement::Optional, Requirement::Optional);
    if let Some(member) = root.get("method") {
        let at = at.member(member, context);
        let name = member.value.text().unwrap_or_default();
        match rules.methods.iter().find(|it| it.name == name) {
            Some(known) => (servers, session_id) = (known.servers, known.session_id),
            None => {
                let message = match member.value.text() {
                    Some(name) => format!("the method '{}' has no servers", quoted(name)),
                    None => format!("'method' must be text, not {}", member.value.kind()),
                };
                let known = rules.methods.iter().map(|it| it.name);
                let help = match closest(name, known.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        let all: Vec<_> = known.map(|it| format!("`{it}`")).collect();
                        format!("servers are part of {}", all.join(", "))
                    }
                };
                context.error(Code::UnknownWord, &at, message, help);
            }
        }
    }
    let Some(member) = root.get("params") else {
        let help = "add `params`";
        context.error(Code::MissingKey, &at.missing("params", context), "'params' is required", help);
        return None;
    };
    let (params_at, node) = (at.member(member, context), &member.value);
    if node.members().is_none() {
        if !matches!(node.resolved_content(), Content::Broken) {
            let message = format!("'params' must be an object, not {}", node.kind());
            context.error(Code::WrongType, &params_at, message, EXAMPLE);
        }
        return None;
    }
    if node.get("cwd").is_none() {
        let message = "'cwd' is required";
        let help = "add the folder of the session";
        context.error(Code::MissingKey, &params_at.missing("cwd", context), message, help);
    }
    if session_id == Requirement::Required {
        check_session_id(node, &params_at, context);
    }
    find_in_params(node, members, &params_at, servers, context)
}

/// Checks the id of the session that the request loads, resumes or forks (ACPX-10).
fn check_session_id(node: &Node, at: &Location, context: &ReadContext) {
    let help = "write the id that the response to `session/new` had";
    let Some(member) = node.get("sessionId") else {
        let at = at.missing("sessionId", context);
        return context.error(Code::MissingKey, &at, "'sessionId' is required", help);
    };
    let at = at.member(member, context);
    match member.value.text() {
        Some(id) if id.trim().is_empty() => {
            context.error(Code::EmptyValue, &at, "'sessionId' must not be blank", help);
        }
        None if !matches!(member.value.resolved_content(), Content::Broken) => {
            let message = format!("'sessionId' must be text, not {}", member.value.kind());
            context.error(Code::WrongType, &at, message, help);
        }
        Some(_) | None => {}
    }
}

/// Finds the entries of the `params` of a request.
fn find_in_params<'a>(
    node: &'a Node,
    members: &SessionMembers,
    at: &Location,
    requirement: Requirement,
    context: &ReadContext,
) -> Option<Vec<EntryNode<'a>>> {
    let given_cwd = node.get("cwd").filter(|it| !matches!(it.value.resolved_content(), Content::Broken));
    if let Some(cwd) = given_cwd.filter(|_| members.cwd.is_none()) {
        let at = at.member(cwd, context);
        let message = "'cwd' must be an absolute path";
        context.error(Code::RelativePath, &at, message, "write the absolute path of a folder");
    }
    let Some(member) = node.get("mcpServers") else {
        if requirement == Requirement::Required {
            let at = at.missing("mcpServers", context);
            context.error(Code::MissingKey, &at, "'mcpServers' is required", "add `\"mcpServers\": []`");
        }
        return Some(Vec::new());
    };
    let (at, list) = (at.member(member, context), &member.value);
    match list.resolved_content() {
        Content::Null => Some(Vec::new()),
        Content::Broken => None,
        Content::Sequence(_) => list_entries(list, &at, "mcpServers", context),
        _ => {
            let message = format!("'mcpServers' must be a list, not {}", list.kind());
            let help = "write a list of servers, each with its `name`; keys and values are for `mcp.json`";
            context.error(Code::WrongType, &at, message, help);
            None
        }
    }
}

/// The entries of a list. `label` is the name of the list in messages.
fn list_entries<'a>(
    list: &'a Node,
    at: &Location,
    label: &str,
    context: &ReadContext,
) -> Option<Vec<EntryNode<'a>>> {
    let items = list.items()?.iter().enumerate();
    let entry = |(index, node)| EntryNode {
        label: format!("{label}[{index}]"),
        node,
        at: at.item(index, node, context),
    };
    Some(items.map(entry).collect())
}

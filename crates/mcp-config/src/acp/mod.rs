//! The `mcpServers` of an ACP session: a whole request, its `params`, or the bare list.
//!
//! What an entry is, is decided by its `type` alone, before anything else of it is read: an unknown type never becomes
//! stdio, and sse never http (ACP-006). Whether the agent has declared a transport is not asked here; that is mcp-acp's.

mod list;
mod lower;
mod request;
mod rules;
mod schema;
mod types;
mod wire;

use std::collections::HashMap;
use std::ops::Range;

use mcp_model::{Passthrough, RawJson, TransportKind};
use serde::Deserialize;

use crate::de::{At, Cursor, Pass};
use crate::diagnostic::Code;
use crate::diagnostic::{Problem, quoted};
use crate::read::{Document, MAX_SERVERS, Reading, Seen, read_by, shown};
use crate::syntax::{Content, Node, to_json};

pub use rules::{Leniency, Relief};
pub(crate) use schema::schema;
pub use types::{
    EnvVariable, HttpHeader, HttpTransport, HttpType, McpServerConfig, SseTransport, SseType, StdioTransport,
};

use lower::Context;
use rules::{Rules, Untyped};

/// Reads the servers of a session request, and lets pass, with a warning, what `leniency` says (ACP-022, ACPX-09).
///
/// [`read`](crate::read::read()) does the same and lets nothing pass. The document's profile must be one of ACP's; for any
/// other it makes no difference.
pub fn read(document: &Document<'_>, leniency: Leniency) -> Reading {
    read_by(document, leniency)
}

/// Reads the servers of a session.
pub(crate) fn read_servers(root: &Node, pass: &Pass, file: &str, leniency: Leniency) -> Vec<Seen> {
    let rules = Rules::of(pass.policy.profile);
    let Some(found) = request::find(root, pass, rules) else { return Vec::new() };
    let request::Found { mut nodes, cwd } = found;
    nodes.truncate(MAX_SERVERS + 1);
    let context = Context { pass, file, rules, leniency, cwd };
    names_are_unique(&nodes, pass);
    nodes.into_iter().map(|(label, node, at)| entry(label, node, &at, &context)).collect()
}

fn entry(label: String, node: &Node, at: &At, context: &Context<'_>) -> Seen {
    let pass = context.pass;
    let name = node.get("name").and_then(|it| it.value.text());
    let mut res = Seen {
        name: name.filter(|it| !it.is_empty()).map_or(label, shown),
        pointer: at.pointer(pass),
        span: node.span.clone(),
        transport: None,
        disabled: false,
        spec: None,
        extension: None,
    };
    if node.members().is_none() {
        if !matches!(node.content(), Content::Broken) {
            let message = format!("a server must be an object, not {}", node.kind());
            pass.error(Code::WrongType, at, message, "write `name`, and what its transport needs");
        }
        return res;
    }
    let Some(transport) = transport(node, at, context) else { return res };
    match transport {
        Transport::Stdio => {
            res.transport = Some(TransportKind::Stdio);
            res.spec =
                read_as::<wire::Stdio>(node, at, pass).and_then(|it| lower::stdio(it, node, at, context));
        }
        Transport::Http | Transport::Sse => {
            let kind = if transport == Transport::Sse { TransportKind::Sse } else { TransportKind::Http };
            res.transport = Some(kind);
            res.spec =
                read_as::<wire::Url>(node, at, pass).and_then(|it| lower::url(it, kind, node, at, context));
        }
        Transport::OverAcp => {
            let good = read_as::<wire::OverAcp>(node, at, pass).is_some_and(|it| lower::over_acp(&it, pass));
            res.extension = kept(node, "acp", good, at, pass);
        }
        Transport::Extension(kind) => {
            let good = lower::has_name(node, at, pass);
            res.extension = kept(node, kind, good, at, pass);
        }
    }
    res
}

fn read_as<'de, T: Deserialize<'de>>(node: &Node, at: &At, pass: &Pass) -> Option<T> {
    match T::deserialize(Cursor { pass, node: Some(node), at: *at }) {
        Ok(it) => Some(it),
        Err(fault) => {
            pass.fault(fault, at);
            None
        }
    }
}

/// An entry of a transport that nobody here speaks, for whoever does (ACPX-11, ACPX-12).
fn kept(node: &Node, kind: &str, good: bool, at: &At, pass: &Pass) -> Option<Passthrough> {
    if !good {
        return None;
    }
    let message = format!("the transport '{}' is an extension of the protocol", quoted(kind));
    let at = node.get("type").map_or_else(|| *at, |it| at.member(it, pass));
    pass.warning(Code::Extension, &at, message, "the entry is kept; no server is started for it here");
    let json = to_json(node).and_then(|it| RawJson::parse(it.into()).ok());
    json.map(Passthrough::Literal)
}

/// What an entry's `type` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport<'a> {
    Stdio,
    Http,
    Sse,
    /// Through the ACP connection itself.
    OverAcp,
    /// One that begins with `_`.
    Extension(&'a str),
}

fn transport<'a>(node: &'a Node, at: &At, context: &Context<'_>) -> Option<Transport<'a>> {
    let Context { pass, rules, .. } = context;
    let Some(member) = node.get("type") else {
        if rules.untyped == Untyped::Stdio {
            return Some(Transport::Stdio);
        }
        let help = if node.get("command").is_some() {
            "add `\"type\": \"stdio\"`"
        } else {
            "add `\"type\": \"http\"`, or another transport"
        };
        pass.error(
            Code::MissingKey,
            &at.missing("type", pass),
            "'type' is required in protocol version 2",
            help,
        );
        return None;
    };
    let at = at.member(member, pass);
    let Some(text) = member.value.text() else {
        if !matches!(member.value.content(), Content::Broken) {
            let message = format!("'type' must be text, not {}", member.value.kind());
            let help = format!("write one of {}", rules.words());
            pass.error(Code::WrongType, &at, message, help);
        }
        return None;
    };
    let known = match text {
        "stdio" => Some(Transport::Stdio),
        "http" => Some(Transport::Http),
        "sse" => Some(Transport::Sse),
        "acp" => Some(Transport::OverAcp),
        _ if text.starts_with('_') && rules.extensions => Some(Transport::Extension(text)),
        _ => None,
    };
    if let Some(known) = known.filter(|_| rules.types.contains(&text) || text.starts_with('_')) {
        return Some(known);
    }
    let message = format!("there is no transport '{}' in protocol version {}", quoted(text), rules.version);
    let help = match (text, pass.nearest(text, rules.types.iter().copied())) {
        ("sse", _) => {
            "sse is gone from version 2; ask the server's authors for Streamable HTTP, `http`".to_owned()
        }
        ("streamable_http" | "streamable-http" | "streamableHttp", _) => {
            "Streamable HTTP is called `http` here".to_owned()
        }
        (_, Some(near)) => format!("did you mean `{near}`?"),
        (_, None) => format!("write one of {}", rules.words()),
    };
    pass.error(Code::UnknownWord, &at, message, help);
    None
}

/// ACPX-14, 6: a name belongs to one server of the list.
fn names_are_unique(nodes: &[(String, &Node, At)], pass: &Pass) {
    let mut seen: HashMap<&str, Range<usize>> = HashMap::new();
    for (_, node, at) in nodes {
        let Some(member) = node.get("name") else { continue };
        let Some(name) = member.value.text().filter(|it| !it.is_empty()) else { continue };
        let at = at.member(member, pass);
        let Some(first) = seen.get(name) else {
            seen.insert(name, at.span());
            continue;
        };
        let shown = quoted(name);
        let message = format!("two servers of this session are named '{shown}'");
        pass.report(
            Problem::new(Code::DuplicateName, message, at.pointer(pass), at.span())
                .label(first.clone(), format!("'{shown}' is here first"))
                .help("rename one of them"),
        );
    }
}

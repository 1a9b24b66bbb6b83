//! The `mcpServers` of an ACP session: a whole request, its `params`, or the list alone.
//!
//! Only `type` selects the transport of an entry. An unknown type is never read as stdio, and sse never as http
//! (ACP-006). mcp-acp checks whether the agent has declared the transport.

mod lower;
mod pairs;
mod request;
mod rules;
#[cfg(feature = "files")]
mod schema;
mod session;
#[cfg(feature = "files")]
mod types;
mod wire;
#[cfg(feature = "files")]
pub(crate) mod write;

use mcp_host_model::{Passthrough, RawJson, TransportKind};

use crate::de::{Location, ReadContext};
use crate::diagnostic::{Code, quoted};
use crate::dialect::entry::{ReadEntry, display_name};
use crate::dialect::lowering::UniqueNames;
use crate::syntax::{Content, Node, to_json};

pub use rules::{Leniency, Tolerance};
#[cfg(feature = "files")]
pub(crate) use schema::schema;
pub use session::{ListMember, SessionEntry, SessionMembers};
#[cfg(feature = "files")]
pub use types::{
    EnvVariable, HttpHeader, HttpServer, HttpType, McpServerConfig, SseServer, SseType, StdioServer,
};

use lower::SessionContext;
use request::EntryNode;
use rules::{ProtocolRules, UntypedEntry};

/// A session request: its entries and its other members.
pub(crate) struct ReadSession {
    pub(crate) entries: Vec<ReadEntry>,
    pub(crate) members: SessionMembers,
}

/// Reads a session request.
pub(crate) fn read_session(root: &Node, context: &ReadContext, leniency: Leniency) -> ReadSession {
    let rules = ProtocolRules::for_profile(context.rules.profile);
    let members = SessionMembers::read(root);
    let mut nodes = request::find_servers(root, &members, context, rules).unwrap_or_default();
    nodes.truncate(context.entry_count());
    let options = SessionContext { context, rules, leniency, cwd: members.cwd.as_deref() };
    check_unique_names(&nodes, context);
    let entries =
        nodes.into_iter().map(|EntryNode { label, node, at }| read_entry(label, node, &at, &options));
    ReadSession { entries: entries.collect(), members }
}

/// Reads an entry. The label is its name in messages if it has no name.
fn read_entry(label: String, node: &Node, at: &Location, options: &SessionContext<'_>) -> ReadEntry {
    let context = options.context;
    let name = node.text_of("name");
    let name = name.filter(|name| !name.is_empty()).map_or(label, display_name);
    let mut res = ReadEntry::new(name, at, context);
    res.span = node.span.clone();
    if node.members().is_none() {
        if !matches!(node.resolved_content(), Content::Broken) {
            let message = format!("a server must be an object, not {}", node.kind());
            context.error(Code::WrongType, at, message, "write `name`, and what its transport needs");
        }
        return res;
    }
    let Some(transport) = select_transport(node, at, options) else { return res };
    match transport {
        EntryTransport::Stdio => {
            res.transport = Some(TransportKind::Stdio);
            res.spec = context
                .read::<wire::AcpStdio>(node, at)
                .and_then(|it| lower::lower_stdio(it, node, at, options));
        }
        EntryTransport::Http | EntryTransport::Sse => {
            let kind =
                if transport == EntryTransport::Sse { TransportKind::Sse } else { TransportKind::Http };
            res.transport = Some(kind);
            res.spec = context
                .read::<wire::AcpUrl>(node, at)
                .and_then(|it| lower::lower_url(it, kind, node, at, options));
        }
        EntryTransport::AcpTunnel => {
            let tunnel = context.read::<wire::AcpTunnel>(node, at);
            if tunnel.is_some_and(|it| lower::check_acp_tunnel(&it, context)) {
                res.extension = keep_extension(node, "acp", at, context);
            }
        }
        EntryTransport::Extension(kind) => {
            if lower::check_extension_name(node, at, context) {
                res.extension = keep_extension(node, kind, at, context);
            }
        }
    }
    res
}

/// Returns the JSON of an entry whose transport is an extension, for callers that support it, and warns about it
/// (ACPX-11, ACPX-12).
fn keep_extension(node: &Node, kind: &str, at: &Location, context: &ReadContext) -> Option<Passthrough> {
    let message = format!("the transport '{}' is an extension of the protocol", quoted(kind));
    let at = node.get("type").map_or_else(|| *at, |it| at.member(it, context));
    context.warning(Code::Extension, &at, message, "the entry is kept; no server is started for it");
    let json = to_json(node).and_then(|it| RawJson::parse(it.into()).ok());
    json.map(Passthrough::Literal)
}

/// The transport that an entry's `type` selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryTransport<'a> {
    Stdio,
    Http,
    Sse,
    /// Over the ACP connection itself.
    AcpTunnel,
    /// A type that begins with `_`.
    Extension(&'a str),
}

/// Selects the transport of an entry by its `type`. Reports an unknown one.
fn select_transport<'a>(
    node: &'a Node,
    at: &Location,
    options: &SessionContext<'_>,
) -> Option<EntryTransport<'a>> {
    let SessionContext { context, rules, .. } = options;
    let Some(member) = node.get("type") else {
        let is_url_only = node.get("url").is_some() && node.get("command").is_none();
        match (rules.untyped, is_url_only) {
            (UntypedEntry::Stdio, false) => return Some(EntryTransport::Stdio),
            (UntypedEntry::Stdio, true) => {
                let help = format!(
                    "add `\"type\": \"http\"`, or another of {}: an entry without it is a program to start",
                    rules.describe_types()
                );
                let message = "'type' is required for a server with a 'url'";
                context.error(Code::MissingKey, &at.missing("type", context), message, help);
                return None;
            }
            (UntypedEntry::Error, _) => {}
        }
        let help = if node.get("command").is_some() {
            "add `\"type\": \"stdio\"`"
        } else {
            "add `\"type\": \"http\"`, or another transport"
        };
        let at = &at.missing("type", context);
        context.error(Code::MissingKey, at, "'type' is required in protocol version 2", help);
        return None;
    };
    let at = at.member(member, context);
    let Some(text) = member.value.text() else {
        if !matches!(member.value.resolved_content(), Content::Broken) {
            let message = format!("'type' must be text, not {}", member.value.kind());
            let help = format!("write one of {}", rules.describe_types());
            context.error(Code::WrongType, &at, message, help);
        }
        return None;
    };
    let known = match text {
        "stdio" => Some(EntryTransport::Stdio),
        "http" => Some(EntryTransport::Http),
        "sse" => Some(EntryTransport::Sse),
        "acp" => Some(EntryTransport::AcpTunnel),
        _ if text.starts_with('_') && rules.allows_extensions => Some(EntryTransport::Extension(text)),
        _ => None,
    };
    if let Some(known) = known.filter(|_| rules.transport_types.contains(&text) || text.starts_with('_')) {
        return Some(known);
    }
    let message = format!("there is no transport '{}' in protocol version {}", quoted(text), rules.version);
    let help = match (text, context.closest(text, rules.transport_types.iter().copied())) {
        ("sse", _) => "version 2 has no sse; the server needs Streamable HTTP, `http`".to_owned(),
        ("streamable_http" | "streamable-http" | "streamableHttp", _) => {
            "Streamable HTTP is called `http` here".to_owned()
        }
        (_, Some(near)) => format!("did you mean `{near}`?"),
        (_, None) => format!("write one of {}", rules.describe_types()),
    };
    context.error(Code::UnknownWord, &at, message, help);
    None
}

/// Reports names that are not unique within the list (ACPX-14, 6).
fn check_unique_names(nodes: &[EntryNode<'_>], context: &ReadContext) {
    let mut names = UniqueNames::new("servers of this session", "rename one of them");
    for EntryNode { label: _, node, at } in nodes {
        let Some(member) = node.get("name") else { continue };
        let Some(name) = member.value.text().filter(|name| !name.is_empty()) else { continue };
        let at = at.member(member, context);
        names.add(name, at, context);
    }
}

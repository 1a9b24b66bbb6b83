//! Reads Dominds' `.minds/mcp.yaml`: a version, and a map of independent servers.

mod exposure;
mod lower;
mod wire;
pub(crate) mod write;

use mcp_host_model::TransportKind;
use serde::Deserialize;
use serde_json::json;

use crate::de::{Field, FieldState, Location, NodeDeserializer, OrderedMap, ReadContext, ValueError};
use crate::diagnostic::{Applicability, Code, FixIntent, ScalarKind};
use crate::dialect::entry::{ReadEntry, display_name};
use crate::syntax::{Content, Node};

pub(crate) use wire::{DomindsFile, STDIO_KEYS, URL_KEYS};
use wire::{DomindsServer, DomindsTransport};

/// Reads the servers in file order. An id that looks like a number keeps its position too (DMX-17).
pub(crate) fn read(root: &Node, context: &ReadContext) -> Vec<ReadEntry> {
    let at = Location::root(root, context);
    if matches!(root.resolved_content(), Content::Broken) {
        return Vec::new();
    }
    let DomindsFile { version, servers } =
        match DomindsFile::deserialize(NodeDeserializer { context, node: Some(root), at }) {
            Ok(root) => root,
            Err(ValueError::WrongType { .. }) => {
                // DM-005: an empty file is not an empty configuration.
                let message = "Invalid mcp.yaml: expected object at mcp.yaml root";
                let help = "write `version: 1` and `servers:`; without a file there are no servers";
                context.error(Code::WrongType, &at, message, help);
                return Vec::new();
            }
            Err(error) => {
                context.report_value_error(error, &at);
                return Vec::new();
            }
        };
    check_version(&version.state, &version.at, context);
    let OrderedMap(entries) = servers.into_value().unwrap_or(OrderedMap(Vec::new()));
    entries.into_iter().map(|(name, slot)| read_server(&name, slot, context)).collect()
}

/// Reports a `version` other than 1 (DM-003).
fn check_version(version: &FieldState<f64>, at: &Location, context: &ReadContext) {
    match version {
        FieldState::Value(number) if *number == 1.0 => return,
        FieldState::Value(_) | FieldState::Absent | FieldState::Null | FieldState::Invalid => {}
    }
    // Replaces the diagnostic about its type.
    context.remove_diagnostics(at);
    let message = "Invalid mcp.yaml: expected version: 1";
    let diagnostic = context.new_diagnostic(Code::UnsupportedVersion, at, message);
    let fix = match version {
        // The value may be the string `"1"`.
        FieldState::Invalid => Some(FixIntent::Unquote(ScalarKind::Integer)),
        FieldState::Absent => Some(FixIntent::AddMembers {
            mapping: String::new(),
            after: None,
            members: vec![("version", json!(1))],
            applicability: Applicability::Certain,
        }),
        FieldState::Value(_) | FieldState::Null => None,
    };
    context.report(diagnostic.help("write `version: 1`, the number without quotes").fix(fix));
}

/// Reads a server from its field of the map.
fn read_server(name: &str, slot: Field<DomindsServer>, context: &ReadContext) -> ReadEntry {
    let at = slot.at;
    let mut res = ReadEntry::new(display_name(name), &at, context);
    let Some(server) = slot.into_value() else { return res };
    res.transport = server.transport.value().map(|it| match it {
        DomindsTransport::Stdio => TransportKind::Stdio,
        DomindsTransport::StreamableHttp => TransportKind::Http,
    });
    // DMX-01: a disabled server is not checked.
    res.disabled = server.enabled.value() == Some(&false);
    if res.disabled {
        context.remove_diagnostics(&at);
    } else {
        res.spec = lower::lower(name, server, &at, context);
    }
    res
}

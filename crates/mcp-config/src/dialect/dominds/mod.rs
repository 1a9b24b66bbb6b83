//! Dominds' `.minds/mcp.yaml`: a version, and a map of servers in which each stands or falls alone.

mod exposure;
mod lower;
mod wire;

use mcp_model::TransportKind;
use serde::Deserialize;

use crate::de::{Field, FieldState, Location, NodeDeserializer, OrderedMap, ReadContext, ValueError};
use crate::diagnostic::Code;
use crate::diagnostic::RawDiagnostic;
use crate::edit::fix::{Applicability, FixIntent, ScalarKind};
use crate::read::{ReadEntry, display_name};
use crate::syntax::{Content, Node};
use crate::write::OutputValue;

pub(crate) use wire::DomindsFile;
use wire::{DomindsServer, DomindsTransport};

/// Reads the servers of a file, in its order: an id that looks like a number stays where it stands (DMX-17).
pub(crate) fn read(root: &Node, pass: &ReadContext, file: &str) -> Vec<ReadEntry> {
    let at = Location::root(root);
    if matches!(root.content(), Content::Broken) {
        return Vec::new();
    }
    let DomindsFile { version, servers } =
        match DomindsFile::deserialize(NodeDeserializer { pass, node: Some(root), at }) {
            Ok(root) => root,
            Err(ValueError::WrongType { .. }) => {
                // DM-005: an empty file is not an empty configuration.
                let message = "Invalid mcp.yaml: expected object at mcp.yaml root";
                let help = "write `version: 1` and `servers:`; without a file there are no servers";
                pass.error(Code::WrongType, &at, message, help);
                return Vec::new();
            }
            Err(fault) => {
                pass.report_value_error(fault, &at);
                return Vec::new();
            }
        };
    check_version(&version.state, &version.at, pass);
    let OrderedMap(entries) = servers.take().unwrap_or(OrderedMap(Vec::new()));
    entries.into_iter().map(|(name, slot)| server(&name, slot, pass, file)).collect()
}

/// DM-003.
fn check_version(version: &FieldState<f64>, at: &Location, pass: &ReadContext) {
    match version {
        FieldState::Value(number) if *number == 1.0 => return,
        FieldState::Value(_) | FieldState::Absent | FieldState::Null | FieldState::Invalid => {}
    }
    pass.clear(at);
    let message = "Invalid mcp.yaml: expected version: 1";
    let problem = RawDiagnostic::new(Code::UnsupportedVersion, message, at.pointer(pass), at.span());
    let repair = match version {
        // A text, perhaps.
        FieldState::Invalid => Some(FixIntent::Unquote(ScalarKind::Integer)),
        FieldState::Absent => Some(FixIntent::AddMembers {
            mapping: String::new(),
            after: None,
            members: vec![("version", OutputValue::scalar(1))],
            applicability: Applicability::Sure,
        }),
        FieldState::Value(_) | FieldState::Null => None,
    };
    pass.report(problem.help("write `version: 1`, the number without quotes").fix(repair));
}

fn server(name: &str, slot: Field<DomindsServer>, pass: &ReadContext, file: &str) -> ReadEntry {
    let at = slot.at;
    let mut res = ReadEntry {
        name: display_name(name),
        pointer: at.pointer(pass),
        span: at.span(),
        transport: None,
        disabled: false,
        spec: None,
        extension: None,
    };
    let Some(server) = slot.take() else { return res };
    res.transport = server.transport.value().map(|it| match it {
        DomindsTransport::Stdio => TransportKind::Stdio,
        DomindsTransport::StreamableHttp => TransportKind::Http,
    });
    // DMX-01: what is switched off is not looked at.
    res.disabled = server.enabled.value() == Some(&false);
    if res.disabled {
        pass.clear(&at);
    } else {
        res.spec = lower::lower(name, server, &at, &lower::Context { pass, file });
    }
    res
}

//! Dominds' `.minds/mcp.yaml`: a version, and a map of servers in which each stands or falls alone.

mod exposure;
mod lower;
mod wire;

use mcp_model::TransportKind;
use serde::Deserialize;

use crate::de::{At, Cursor, Entries, Fault, Field, Got, Pass};
use crate::diagnostic::Code;
use crate::diagnostic::Problem;
use crate::edit::fix::{Applicability, Repair, Says};
use crate::read::{Seen, shown};
use crate::syntax::{Content, Node};
use crate::write::Data;

pub(crate) use wire::Root;
use wire::{Server, Transport};

/// Reads the servers of a file, in its order: an id that looks like a number stays where it stands (DMX-17).
pub(crate) fn read(root: &Node, pass: &Pass, file: &str) -> Vec<Seen> {
    let at = At::root(root);
    if matches!(root.content(), Content::Broken) {
        return Vec::new();
    }
    let Root { version, servers } = match Root::deserialize(Cursor { pass, node: Some(root), at }) {
        Ok(root) => root,
        Err(Fault::Type { .. }) => {
            // DM-005: an empty file is not an empty configuration.
            let message = "Invalid mcp.yaml: expected object at mcp.yaml root";
            let help = "write `version: 1` and `servers:`; without a file there are no servers";
            pass.error(Code::WrongType, &at, message, help);
            return Vec::new();
        }
        Err(fault) => {
            pass.fault(fault, &at);
            return Vec::new();
        }
    };
    supported(&version.got, &version.at, pass);
    let Entries(entries) = servers.take().unwrap_or(Entries(Vec::new()));
    entries.into_iter().map(|(name, slot)| server(&name, slot, pass, file)).collect()
}

/// DM-003.
fn supported(version: &Got<f64>, at: &At, pass: &Pass) {
    match version {
        Got::Value(number) if *number == 1.0 => return,
        Got::Value(_) | Got::Absent | Got::Null | Got::Bad => {}
    }
    pass.forgive(at);
    let message = "Invalid mcp.yaml: expected version: 1";
    let problem = Problem::new(Code::UnsupportedVersion, message, at.pointer(pass), at.span());
    let repair = match version {
        // A text, perhaps.
        Got::Bad => Some(Repair::Unquote(Says::Whole)),
        Got::Absent => Some(Repair::Add {
            mapping: String::new(),
            after: None,
            members: vec![("version", Data::word(1))],
            sure: Applicability::Sure,
        }),
        Got::Value(_) | Got::Null => None,
    };
    pass.report(problem.help("write `version: 1`, the number without quotes").repair(repair));
}

fn server(name: &str, slot: Field<Server>, pass: &Pass, file: &str) -> Seen {
    let at = slot.at;
    let mut res = Seen {
        name: shown(name),
        pointer: at.pointer(pass),
        span: at.span(),
        transport: None,
        disabled: false,
        spec: None,
        extension: None,
    };
    let Some(server) = slot.take() else { return res };
    res.transport = server.transport.value().map(|it| match it {
        Transport::Stdio => TransportKind::Stdio,
        Transport::StreamableHttp => TransportKind::Http,
    });
    // DMX-01: what is switched off is not looked at.
    res.disabled = server.enabled.value() == Some(&false);
    if res.disabled {
        pass.forgive(&at);
    } else {
        res.spec = lower::lower(name, server, &at, &lower::Context { pass, file });
    }
    res
}

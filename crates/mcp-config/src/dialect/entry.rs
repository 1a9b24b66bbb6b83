//! The server entry that all dialect readers return.

use mcp_host_model::{Passthrough, ServerId, ServerSpec, TransportKind};

use crate::de::{Location, ReadContext};
use crate::diagnostic::quoted;

/// A server entry of a file.
pub(crate) struct ReadEntry {
    pub(crate) name: String,
    pub(crate) pointer: String,
    pub(crate) span: std::ops::Range<usize>,
    pub(crate) transport: Option<TransportKind>,
    pub(crate) disabled: bool,
    /// `None` if the entry has errors, is disabled, or has an `extension`.
    pub(crate) spec: Option<ServerSpec>,
    /// The JSON of an ACP entry whose transport is an extension of the protocol.
    pub(crate) extension: Option<Passthrough>,
}

impl ReadEntry {
    /// An entry of which only the name and the location are known.
    pub(crate) fn new(name: String, at: &Location, context: &ReadContext) -> ReadEntry {
        ReadEntry {
            name,
            pointer: at.pointer(context),
            span: at.span(context),
            transport: None,
            disabled: false,
            spec: None,
            extension: None,
        }
    }
}

/// The name of an entry for messages. A valid name is unchanged; any other name is escaped and shortened.
pub(crate) fn display_name(name: &str) -> String {
    match ServerId::parse(name) {
        Ok(id) => id.as_str().to_owned(),
        Err(_) => quoted(name),
    }
}

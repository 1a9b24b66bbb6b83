//! Rejects the dialects of files in a build without the feature `files`.

use crate::de::{ForeignKey, Location, ReadContext};
use crate::diagnostic::Code;
use crate::dialect::entry::ReadEntry;
use crate::syntax::{ExtensionSpans, Node};

/// Reports that only requests are read.
pub(crate) fn read(root: &Node, context: &ReadContext) -> Vec<ReadEntry> {
    let message = "this build of mcp-host-config reads only the requests of ACP";
    let help = "enable the feature `files` of mcp-host-config";
    context.error(Code::NoServers, &Location::root(root, context), message, help);
    Vec::new()
}

/// Finds no key: [`read`] reads none.
pub(crate) fn foreign_key(_: &str) -> Option<ForeignKey> {
    None
}

/// Reports nothing: [`read`] reports the whole file.
pub(crate) fn report_extensions(_: &ExtensionSpans, _: &ReadContext) {}

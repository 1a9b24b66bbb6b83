//! Rejects the dialects of files in a build without the feature `files`.

use crate::de::{Location, ReadContext};
use crate::diagnostic::Code;
use crate::dialect::entry::ReadEntry;
use crate::syntax::Node;

/// Reports that only requests are read.
pub(crate) fn read(root: &Node, context: &ReadContext) -> Vec<ReadEntry> {
    let message = "this build of mcp-host-config reads only the requests of ACP";
    let help = "enable the feature `files` of mcp-host-config";
    context.error(Code::NoServers, &Location::root(root, context), message, help);
    Vec::new()
}

pub(crate) mod editor {
    //! Replaces the reader of editors' files.

    use crate::de::{ForeignKey, ReadContext};
    use crate::dialect::entry::ReadEntry;
    use crate::syntax::{ExtensionSpans, Node};

    /// Reports that only requests are read.
    pub(crate) fn read(root: &Node, _: &ExtensionSpans, context: &ReadContext) -> Vec<ReadEntry> {
        super::read(root, context)
    }

    /// Finds no key: [`read`] reads none.
    pub(crate) fn foreign_key(_: &str) -> Option<ForeignKey> {
        None
    }

    /// Whether a key names what is started or connected to.
    pub(crate) fn is_source(name: &str) -> bool {
        matches!(name, "command" | "url")
    }
}

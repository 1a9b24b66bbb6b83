//! Rejects YAML and TOML in a build without the feature `files`.

use crate::diagnostic::{Code, RawDiagnostic};
use crate::syntax::ParsedText;

/// Reports that YAML and TOML are not read.
pub(super) fn parse(_: &str) -> ParsedText {
    let message = "this build of mcp-host-config reads neither YAML nor TOML";
    let diagnostic = RawDiagnostic::new(Code::Syntax, message, "", 0..0)
        .help("enable the feature `files` of mcp-host-config");
    ParsedText::failed(diagnostic)
}

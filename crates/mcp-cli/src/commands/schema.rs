//! `schema`: the JSON Schema of a dialect, for an editor to check by.

use crate::args::{Global, SchemaName};
use crate::exit::Exit;
use crate::output::console::{Console, Report};
use crate::output::json;

/// The schema of the dialect `name`, or of the one of its profiles that is asked for.
pub(crate) fn run(console: &Console, global: &Global, name: SchemaName) -> Report {
    match global.schema(name) {
        Ok(profile) => Report {
            out: json::document(&mcp_config::schema(profile)),
            err: String::new(),
            exit: Exit::Done,
            after: String::new(),
        },
        Err(message) => console.failure(Exit::Usage, &message, None),
    }
}

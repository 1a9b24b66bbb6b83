//! `schema`: prints the JSON Schema of a dialect, for use in an editor.

use crate::args::{GlobalArgs, SchemaName};
use crate::output::console::{Console, Report};
use crate::output::json;
use crate::runtime::exit::Exit;

/// The schema `name`, or the schema of the requested profile of its dialect.
pub(crate) fn run(console: &Console, global: &GlobalArgs, name: SchemaName) -> Report {
    match global.schema_profile(name) {
        Ok(profile) => Report::out(json::document(&mcp_config::schema(profile))),
        Err(message) => console.failure(Exit::Usage, &message, None),
    }
}

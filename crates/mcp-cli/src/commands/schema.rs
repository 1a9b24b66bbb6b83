//! `schema`: prints the JSON Schema of a dialect, for use in an editor.

use mcp_config::Profile;

use crate::args::GlobalArgs;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::json;

/// The schema `name`, or the schema of the requested profile of its dialect.
pub(crate) fn run(global: &GlobalArgs, name: Profile) -> Result<Report, Failure> {
    let profile = global.schema_profile(name).map_err(Failure::usage)?;
    Ok(Report::out(json::document(&mcp_config::schema(profile))))
}

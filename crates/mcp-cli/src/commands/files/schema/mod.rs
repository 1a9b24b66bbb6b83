//! `schema`: prints the JSON Schema of a dialect, for use in an editor, or compares two schemas.

mod compare;

use crate::args::{GlobalArgs, SchemaArgs};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::json;

/// Prints the schema of `name`, or of the requested profile of its dialect, or compares the files. Blocks.
pub(crate) fn run(global: &GlobalArgs, args: &SchemaArgs) -> Result<Report, Failure> {
    if let Some([old, new]) = args.compare.as_deref() {
        return compare::run(
            compare::SchemaFiles { old, new },
            args.user,
            args.unproven_policy(),
            global.format,
        );
    }
    let name = args.name.ok_or_else(|| Failure::usage("name a dialect, or two files with `--compare`"))?;
    let profile = global.schema_profile(name).map_err(Failure::usage)?;
    Ok(Report::out(json::document(&mcp_host_config::schema(profile))))
}

//! Compares two schemas and prints what a reader of the old documents would notice.
#![expect(clippy::print_stdout, reason = "an example prints")]

use schema_evolution::{Error, SchemaUser, compare, render_text};
use serde_json::json;

fn main() -> Result<(), Error> {
    let old = json!({
        "type": "object",
        "properties": { "name": { "type": "string", "maxLength": 64 }, "retries": { "type": "integer" } }
    });
    let new = json!({
        "type": "object",
        "properties": { "name": { "type": "string", "maxLength": 32 }, "timeout": { "type": "number" } }
    });
    let comparison = compare(&old, &new)?;
    print!("{}", render_text(&comparison, SchemaUser::Reader));
    Ok(())
}

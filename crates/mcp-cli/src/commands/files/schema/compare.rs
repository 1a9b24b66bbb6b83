//! Compares two files with JSON Schemas.

use std::path::Path;

use schema_evolution::{
    Comparison, Error, MAX_DEPTH, MAX_VALUES, SchemaUser, Side, Verdict, compare, render_json, render_sarif,
    render_text,
};
use serde_json::Value;

use crate::args::{RequestedFormat, UnprovenPolicy};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::json;
use crate::runtime::bounded_read::{input_name, read_file};
use crate::runtime::exit::Exit;

/// The largest schema, in bytes.
const MAX_SCHEMA: u64 = 16 << 20;

/// The files of a comparison. One of them may be `-`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaFiles<'a> {
    pub(super) old: &'a Path,
    pub(super) new: &'a Path,
}

/// Compares two schemas. The exit is a failure unless each change is allowed; bad input is a usage error. Blocks.
pub(super) fn run(
    files: SchemaFiles<'_>,
    user: SchemaUser,
    unproven: UnprovenPolicy,
    format: RequestedFormat,
) -> Result<Report, Failure> {
    let SchemaFiles { old, new } = files;
    if old == new && old == Path::new("-") {
        return Err(Failure::usage("both schemas are `-`, but standard input has only one")
            .help(Some("write one of them to a file")));
    }
    let comparison =
        compare(&read_schema(old)?, &read_schema(new)?).map_err(|error| comparison_failure(&error, files))?;
    let out = match format {
        // The caller refuses github.
        RequestedFormat::Text | RequestedFormat::Github => render_text(&comparison, user),
        RequestedFormat::Json => json::document(&render_json(&comparison, user)),
        RequestedFormat::Sarif => json::document(&render_sarif(&comparison, user, &report_uri(new))),
    };
    Ok(Report { out, exit: exit_code(&comparison, user, unproven), ..Report::default() })
}

/// The exit code. An unproven change fails by default, because a check in CI must not pass what is not decided.
fn exit_code(comparison: &Comparison, user: SchemaUser, unproven: UnprovenPolicy) -> Exit {
    match (comparison.verdict(user), unproven) {
        (Verdict::Harmless, _) | (Verdict::Unknown, UnprovenPolicy::Allow) => Exit::Success,
        (Verdict::Unknown, UnprovenPolicy::Refuse) | (Verdict::Break, _) => Exit::Failure,
    }
}

fn read_schema(file: &Path) -> Result<Value, Failure> {
    let name = input_name(file);
    let text = read_file(file, MAX_SCHEMA)
        .map_err(|error| Failure::usage(format!("could not read the schema {name}: {error}")))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("{name} is not valid JSON: {error}"))
            .help(Some("a schema is a JSON file; convert YAML to JSON first"))
    })
}

fn comparison_failure(error: &Error, files: SchemaFiles<'_>) -> Failure {
    let name = |side: Side| match side {
        Side::Old => input_name(files.old),
        Side::New => input_name(files.new),
    };
    let (message, help) = match error {
        Error::NotASchema { side, message } => (
            format!("{} is not a JSON Schema: {message}", name(*side)),
            "correct it, or name its draft in `$schema`: drafts 4 to 2020-12 are known".to_owned(),
        ),
        Error::TooDeep { side } => (
            format!("{} is nested too deeply", name(*side)),
            format!("move inner schemas to `$defs`; at most {MAX_DEPTH} levels are compared"),
        ),
        Error::TooLarge { side } => (
            format!("{} has too many values", name(*side)),
            format!("compare parts of it; at most {MAX_VALUES} values are compared"),
        ),
        error => (error.to_string(), "compare other files".to_owned()),
    };
    Failure::usage(message).help(Some(help))
}

/// The URI of a file in a SARIF report.
fn report_uri(file: &Path) -> String {
    if file == Path::new("-") { "/dev/stdin".to_owned() } else { file.display().to_string() }
}

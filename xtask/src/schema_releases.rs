//! Compatibility of the JSON Schemas with their releases.
//!
//! `schemas/released/<schema>/<version>.json` never changes, because files and repositories refer to it; its digest is
//! beside it. The check compares the current schema with the last release, prints each change, and fails if a change is
//! not proven to be harmless for a reader of existing files, unless the version may break.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use schema_evolution::{Change, Direction, ReleaseComparison, ReleaseError, Releases, SchemaUser, Verdict};

use crate::error::Error;

/// A schema as the code generates it now.
pub(crate) struct CurrentSchema<'a> {
    /// The folder of its releases, such as `dominds`.
    pub name: &'a str,
    pub text: &'a str,
}

/// Compares every schema with its last release; prints a table for the changelog where something has changed.
pub(crate) fn check(root: &Path, now: &str, schemas: &[CurrentSchema<'_>]) -> Result<(), Error> {
    let mut problems = Vec::new();
    for schema in schemas {
        match compare_with_release(root, now, schema) {
            Ok(comparison) => {
                if !comparison.comparison.changes.is_empty() {
                    println!("{}", changes_table(schema.name, &comparison));
                }
                problems.extend(incompatibility(schema.name, now, &comparison));
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::message(problems.join("\n"))) }
}

/// Stores every schema as the release of this version. An existing release must be identical.
pub(crate) fn store(root: &Path, now: &str, schemas: &[CurrentSchema<'_>]) -> Result<(), Error> {
    for schema in schemas {
        let stored =
            Releases::open(releases_folder(root, schema)).and_then(|mut it| it.store(now, schema.text));
        stored.map_err(|error| Error::message(error_message(schema.name, &error)))?;
        println!("froze {} {now}", schema.name);
    }
    Ok(())
}

/// The folder with the releases of a schema.
fn releases_folder(root: &Path, schema: &CurrentSchema<'_>) -> PathBuf {
    root.join("schemas/released").join(schema.name)
}

/// Compares a schema with its last release. That there is none is an error.
fn compare_with_release(
    root: &Path,
    now: &str,
    schema: &CurrentSchema<'_>,
) -> Result<ReleaseComparison, String> {
    let current =
        serde_json::from_str(schema.text).map_err(|error| format!("{} is not JSON: {error}", schema.name))?;
    let comparison = Releases::open(releases_folder(root, schema)).and_then(|it| it.compare(now, &current));
    let comparison = comparison.map_err(|error| error_message(schema.name, &error))?;
    match comparison.released {
        Some(_) => Ok(comparison),
        None => {
            Err(format!("{} has no release to compare with: run `cargo xtask schema --release`", schema.name))
        }
    }
}

/// The message of an error with its cause.
fn error_message(name: &str, error: &ReleaseError) -> String {
    let cause = error.source().map(|it| format!(": {it}")).unwrap_or_default();
    format!("{name}: {error}{cause}")
}

/// The changes as a Markdown table, the most severe first.
fn changes_table(name: &str, comparison: &ReleaseComparison) -> String {
    let released = comparison.released.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut res =
        format!("Schema `{name}` since {released}:\n\n| location | change | for a reader |\n|---|---|---|\n");
    let changes = comparison.comparison.by_severity(SchemaUser::Reader);
    let (annotations, changes): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|it| it.direction == Direction::Annotation);
    for change in changes {
        let Change { location, description, .. } = change;
        let verdict = match change.reader.verdict {
            Verdict::Harmless => "harmless",
            Verdict::Unknown => "**unknown**",
            Verdict::Break => "**break**",
        };
        res += &format!("| `{location}` | {} | {verdict} |\n", description.replace('|', "\\|"));
    }
    if !annotations.is_empty() {
        res += &format!("| | annotations: {} | harmless |\n", annotations.len());
    }
    res
}

/// The reason why this version may not be released.
fn incompatibility(name: &str, now: &str, comparison: &ReleaseComparison) -> Option<String> {
    if comparison.is_allowed(SchemaUser::Reader) {
        return None;
    }
    let count = |verdict| comparison.comparison.count(SchemaUser::Reader, verdict);
    let released = comparison.released.as_ref().map(ToString::to_string).unwrap_or_default();
    Some(format!(
        "{name}: {} of the changes since {released} break existing files and {} are unknown, which {now} does not \
         allow: revert them, or raise the version",
        count(Verdict::Break),
        count(Verdict::Unknown)
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_incompatible_schema_is_reported() {
        let root = std::env::temp_dir().join(format!("xtask-releases-{}", std::process::id()));
        let (wide, narrow) = (r#"{"type":["string","integer"]}"#, r#"{"type":"string"}"#);
        let schemas = |text| [CurrentSchema { name: "one", text }, CurrentSchema { name: "two", text }];
        let result =
            |done: Result<(), Error>| done.err().map_or_else(|| "fine".to_owned(), |it| it.to_string());

        assert!(result(check(&root, "0.1.0", &schemas(wide))).contains("two has no release to compare with"));
        assert_eq!(result(store(&root, "0.1.0", &schemas(wide))), "fine");
        assert!(
            result(store(&root, "0.1.0", &schemas(narrow)))
                .contains("0.1.0 is already released with another schema")
        );
        assert_eq!(result(check(&root, "0.1.0", &schemas(wide))), "fine");
        let message = result(check(&root, "0.1.1", &schemas(narrow)));
        assert!(message.contains("one: 1 of the changes since 0.1.0 break existing files"), "{message}");
        assert!(message.contains("two: 1 of the changes since 0.1.0 break existing files"), "{message}");
        assert_eq!(result(check(&root, "0.2.0", &schemas(narrow))), "fine");

        fs::write(root.join("schemas/released/one/0.1.0.json"), narrow).unwrap();
        let message = result(check(&root, "0.1.1", &schemas(narrow)));
        assert!(message.contains("0.1.0.json does not match its digest"), "{message}");
        assert!(message.contains("two: 1 of the changes"), "{message}");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_table_begins_with_the_most_severe_change() {
        let compare = |old: &str, new: &str| {
            let parse = |it: &str| serde_json::from_str(it).unwrap();
            schema_evolution::compare(&parse(old), &parse(new)).unwrap()
        };
        let comparison = compare(
            r#"{"properties":{"a":{"type":"string"},"b":{"enum":["x|y","z"]}}}"#,
            r#"{"properties":{"a":{"type":["string","null"]},"b":{"enum":["x|y"]}}}"#,
        );
        let root = std::env::temp_dir().join(format!("xtask-table-{}", std::process::id()));
        let mut release_comparison = Releases::open(&root).unwrap().compare("0.1.0", &true.into()).unwrap();
        release_comparison.comparison = comparison;
        assert_eq!(
            changes_table("dominds", &release_comparison),
            "Schema `dominds` since :\n\n| location | change | for a reader |\n|---|---|---|\n\
             | `b` | `enum` changes from [\"x\\|y\",\"z\"] to [\"x\\|y\"] | **break** |\n\
             | `a` | `type` changes from \"string\" to [\"string\",\"null\"] | harmless |\n"
        );
    }
}

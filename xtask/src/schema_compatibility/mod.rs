//! Compatibility of the JSON Schemas with their releases.
//!
//! `schemas/released/<schema>/<version>.json` never changes, because files and repositories refer to it. The check
//! compares the current schema with the last release, prints the effect of each difference, and fails if a valid
//! document could be rejected without a version that may break.

mod compare;
mod effect;
mod sets;
#[cfg(test)]
mod tests;
mod version;

use std::path::Path;
use std::{fs, io};

use semver::Version;
use serde_json::Value;

use crate::error::Error;
use effect::Change;

/// A schema as the code generates it now.
pub(crate) struct CurrentSchema<'a> {
    /// The folder of its releases, such as `dominds`.
    pub name: &'a str,
    pub text: &'a str,
}

/// The changes of a schema since its last release.
struct SchemaDiff {
    name: String,
    released: Version,
    changes: Vec<Change>,
}

/// Compares each schema with its last release; prints a table for the changelog where something has changed.
pub(crate) fn check(root: &Path, now: &str, schemas: &[CurrentSchema<'_>]) -> Result<(), Error> {
    let now = parse_version(now)?;
    let mut problems = Vec::new();
    for schema in schemas {
        let diff = diff(root, &now, schema)?;
        if !diff.changes.is_empty() {
            println!("{}", diff.table());
        }
        problems.extend(diff.incompatibility(&now));
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::message(problems.join("\n"))) }
}

/// Freezes each schema as the release of this version. An existing release must be identical.
pub(crate) fn release(root: &Path, now: &str, schemas: &[CurrentSchema<'_>]) -> Result<(), Error> {
    let now = parse_version(now)?;
    for schema in schemas {
        let file = root.join(format!("schemas/released/{}/{now}.json", schema.name));
        let failed =
            |error: io::Error| Error::message(format!("could not write {}: {error}", file.display()));
        match fs::read_to_string(&file) {
            Ok(frozen) if frozen == schema.text => {}
            Ok(_) => {
                return Err(Error::message(format!(
                    "{} {now} is released and frozen, but the code generates another schema: raise the version in \
                     Cargo.toml first",
                    schema.name
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = file.parent().expect("the path has a folder");
                fs::create_dir_all(folder).and_then(|()| fs::write(&file, schema.text)).map_err(failed)?;
                println!("froze {} {now}", schema.name);
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

fn parse_version(text: &str) -> Result<Version, Error> {
    version::parse(text).ok_or_else(|| Error::message(format!("`{text}` is not a release version")))
}

fn diff(root: &Path, now: &Version, schema: &CurrentSchema<'_>) -> Result<SchemaDiff, Error> {
    let folder = root.join("schemas/released").join(schema.name);
    let missing = || {
        Error::message(format!(
            "{} has no release to compare with: run `cargo xtask schema --release`",
            schema.name
        ))
    };
    let released =
        versions(&folder)?.into_iter().filter(|version| version <= now).max().ok_or_else(missing)?;
    let file = folder.join(format!("{released}.json"));
    let text = fs::read_to_string(&file)
        .map_err(|error| Error::message(format!("could not read {}: {error}", file.display())))?;
    let parse = |text: &str, what: &str| {
        serde_json::from_str::<Value>(text)
            .map_err(|error| Error::message(format!("{what} of {} is not JSON: {error}", schema.name)))
    };
    let changes = compare::compare(&parse(&text, "the release")?, &parse(schema.text, "the schema")?);
    Ok(SchemaDiff { name: schema.name.to_owned(), released, changes })
}

/// The released versions in a folder. Another file name is an error.
fn versions(folder: &Path) -> Result<Vec<Version>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::message(format!("could not read {}: {error}", folder.display()))),
    };
    let mut res = Vec::new();
    for entry in entries {
        let name =
            entry.map_err(|error| Error::message(format!("could not read {}: {error}", folder.display())))?;
        let name = name.file_name().to_string_lossy().into_owned();
        let version = name.strip_suffix(".json").and_then(version::parse);
        let stray =
            || Error::message(format!("{}/{name} does not have the name of a version", folder.display()));
        res.push(version.ok_or_else(stray)?);
    }
    Ok(res)
}

impl SchemaDiff {
    /// The changes as a Markdown table, the most severe first.
    fn table(&self) -> String {
        let mut rows: Vec<&Change> = self.changes.iter().collect();
        rows.sort_by_key(|change| std::cmp::Reverse(change.effect));
        let mut res = format!(
            "Schema `{}` since {}:\n\n| location | change | effect |\n|---|---|---|\n",
            self.name, self.released
        );
        for Change { location, description, effect } in rows {
            res += &format!("| `{location}` | {description} | {effect} |\n");
        }
        res
    }

    /// The reason why this version may not be released.
    fn incompatibility(&self, now: &Version) -> Option<String> {
        let count = self.changes.iter().filter(|change| change.effect.rejects_old_documents()).count();
        if count == 0 || version::may_break(&self.released, now) {
            return None;
        }
        Some(format!(
            "{}: {count} of the changes since {} may reject a valid document, which {now} does not allow: \
             revert them, or raise the version",
            self.name, self.released
        ))
    }
}

//! Schemas that evolve under watch.
//!
//! A released schema is a promise: people have pasted its address into files, keep it in repositories and validate with
//! it. `schemas/released/<schema>/<version>.json` is what was promised, and never changes. Each check holds what the
//! code says today against the last release, names the effect of every difference, and fails where a document that was
//! valid may be refused without the version number saying so.

mod compare;
mod effect;
mod sets;
#[cfg(test)]
mod tests;
mod version;

use std::path::Path;
use std::{fs, io};

use serde_json::Value;

use crate::error::Error;
use effect::Change;
use version::Version;

/// One schema as the code makes it now.
pub(crate) struct CurrentSchema<'a> {
    /// `dominds`: the folder of its releases.
    pub name: &'a str,
    pub text: &'a str,
}

/// What was released last, and what has become of it.
struct Evolution {
    name: String,
    released: Version,
    changes: Vec<Change>,
}

/// Compares each schema with its last release; prints a table for the changelog where something has changed.
pub(crate) fn check(root: &Path, now: &str, schemas: &[CurrentSchema<'_>]) -> Result<(), Error> {
    let now = parse_version(now)?;
    let mut refused = Vec::new();
    for schema in schemas {
        let evolution = evolution(root, now, schema)?;
        if !evolution.changes.is_empty() {
            println!("{}", evolution.table());
        }
        refused.extend(evolution.refusal(now));
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Error::message(refused.join("\n"))),
    }
}

/// Freezes each schema as the release of this version. What is frozen already must be the same.
pub(crate) fn release(root: &Path, now: &str, schemas: &[CurrentSchema<'_>]) -> Result<(), Error> {
    let now = parse_version(now)?;
    for schema in schemas {
        let file = root.join(format!("schemas/released/{}/{now}.json", schema.name));
        let said = |error: io::Error| Error::message(format!("could not write {}: {error}", file.display()));
        match fs::read_to_string(&file) {
            Ok(frozen) if frozen == schema.text => {}
            Ok(_) => {
                return Err(Error::message(format!(
                    "{} {now} is released and frozen, and the code says something else: raise the version in \
                     Cargo.toml first",
                    schema.name
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = file.parent().expect("it is in the folder of its schema");
                fs::create_dir_all(folder).and_then(|()| fs::write(&file, schema.text)).map_err(said)?;
                println!("froze {} {now}", schema.name);
            }
            Err(error) => return Err(said(error)),
        }
    }
    Ok(())
}

fn parse_version(text: &str) -> Result<Version, Error> {
    Version::parse(text).ok_or_else(|| Error::message(format!("`{text}` is no version of a release")))
}

fn evolution(root: &Path, now: Version, schema: &CurrentSchema<'_>) -> Result<Evolution, Error> {
    let folder = root.join("schemas/released").join(schema.name);
    let missing = || {
        Error::message(format!(
            "{} has no release to compare with: run `cargo xtask schema --release`",
            schema.name
        ))
    };
    let released = versions(&folder)?.into_iter().filter(|it| *it <= now).max().ok_or_else(missing)?;
    let file = folder.join(format!("{released}.json"));
    let text = fs::read_to_string(&file)
        .map_err(|error| Error::message(format!("could not read {}: {error}", file.display())))?;
    let parse = |text: &str, what: &str| {
        serde_json::from_str::<Value>(text)
            .map_err(|error| Error::message(format!("{what} of {} is no JSON: {error}", schema.name)))
    };
    let changes = compare::compare(&parse(&text, "the release")?, &parse(schema.text, "the schema")?);
    Ok(Evolution { name: schema.name.to_owned(), released, changes })
}

/// The versions a folder has frozen. Any other file there is a mistake that nobody would notice.
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
        let version = name.strip_suffix(".json").and_then(Version::parse);
        let stray = || Error::message(format!("{}/{name} is named after no version", folder.display()));
        res.push(version.ok_or_else(stray)?);
    }
    Ok(res)
}

impl Evolution {
    /// The changes as a table in Markdown, what hurts most first.
    fn table(&self) -> String {
        let mut rows: Vec<&Change> = self.changes.iter().collect();
        rows.sort_by_key(|it| std::cmp::Reverse(it.effect));
        let mut res = format!(
            "Schema `{}` since {}:\n\n| place | change | effect |\n|---|---|---|\n",
            self.name, self.released
        );
        for Change { place, what, effect } in rows {
            res += &format!("| `{place}` | {what} | {effect} |\n");
        }
        res
    }

    /// Why this version may not be released so.
    fn refusal(&self, now: Version) -> Option<String> {
        let worst = self.changes.iter().filter(|it| it.effect.refuses_old_documents()).count();
        if worst == 0 || now.may_break(self.released) {
            return None;
        }
        Some(format!(
            "{}: {worst} of the changes since {} may refuse a document that was valid, and {now} does not say so: \
             take them back, or raise the version that may break",
            self.name, self.released
        ))
    }
}

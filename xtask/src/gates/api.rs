//! `cargo xtask api`: the public items of each library in `api/`, so that a review sees every change of them.
//!
//! The items are read from the JSON output of rustdoc, which is unstable: its format depends on the compiler.
//! A compiler with another format is an error when the files are written, and skips the check.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::cargo::{cargo, compiler_version, exit_code, run as run_command, run_for_output, target_folder};
use crate::error::Error;
use crate::gates::library::Library;
use crate::gates::packages;
use crate::gates::tool::Tool;
use crate::generated_files::{GeneratedFile, OutputMode, write_or_check};
use crate::tree;

/// The version of the JSON format that the library `public_api` reads: that of Rust 1.95.
const RUSTDOC_FORMAT: u32 = 57;

/// The program that compares with a release. This version must support the JSON format of the compiler.
const SEMVER_CHECKS: Tool = Tool { name: "cargo-semver-checks", version: "0.51.0" };

/// The variable with which Cargo starts this program as rustdoc.
///
/// Only rustdoc may use unstable options. `RUSTC_BOOTSTRAP` for Cargo as a whole would build all dependencies again.
const AS_RUSTDOC: &str = "XTASK_AS_RUSTDOC";

/// Writes or checks the files.
pub(crate) fn run(mode: OutputMode) -> Result<(), Error> {
    let libraries = packages::libraries()?;
    let files = match read_items(&libraries)? {
        Some(files) => files,
        None if matches!(mode, OutputMode::Check) => {
            println!("skipped: the JSON format of {} is not {RUSTDOC_FORMAT}", compiler_version()?);
            return Ok(());
        }
        None => {
            return Err(Error::message(format!(
                "the JSON format of {} is not {RUSTDOC_FORMAT}",
                compiler_version()?
            )));
        }
    };
    write_or_check(&tree::root(), &files, "cargo xtask api", mode)
}

/// The items of each library. `None` if the compiler has another format.
fn read_items(libraries: &[Library]) -> Result<Option<Vec<GeneratedFile>>, Error> {
    let mut command = cargo();
    command.args(["doc", "--quiet", "--no-deps", "--all-features", "--lib"]);
    for library in libraries {
        command.args(["--package", &library.package]);
    }
    let this_program =
        env::current_exe().map_err(|error| Error::message(format!("this program: {error}")))?;
    command.env("RUSTDOC", this_program).env(AS_RUSTDOC, rustdoc_program());
    command.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json");
    run_command(&mut command)?;

    let folder = target_folder().join("doc");
    let mut res = Vec::new();
    for Library { package, name, .. } in libraries {
        let path = folder.join(format!("{name}.json"));
        if read_format_version(&path)? != RUSTDOC_FORMAT {
            return Ok(None);
        }
        let text = list_items(&path)?;
        let unreachable = unreachable_types(&text, name);
        if !unreachable.is_empty() {
            let types = unreachable.join(", ");
            return Err(Error::message(format!(
                "{package}: public signatures name types that are not exported: {types}"
            )));
        }
        res.push(GeneratedFile { path: format!("api/{package}.txt"), text });
    }
    Ok(Some(res))
}

/// Reads which version of the JSON format a file of rustdoc has.
fn read_format_version(path: &Path) -> Result<u32, Error> {
    #[derive(Deserialize)]
    struct FormatHeader {
        format_version: u32,
    }
    let text = fs::read_to_string(path)
        .map_err(|error| Error::message(format!("could not read {}: {error}", path.display())))?;
    let header: FormatHeader = serde_json::from_str(&text)
        .map_err(|error| Error::message(format!("{}: {error}", path.display())))?;
    Ok(header.format_version)
}

/// One line for each item. Implementations that every type has are left out.
fn list_items(path: &Path) -> Result<String, Error> {
    let api = public_api::Builder::from_rustdoc_json(path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| Error::message(format!("{}: {error}", path.display())))?;
    Ok(api.items().map(|it| format!("{it}\n")).collect())
}

/// The types of a library that its signatures name and that have no public path. Traits that seal others are meant to
/// have none.
fn unreachable_types(items: &str, library: &str) -> Vec<String> {
    let root = format!("{library}::");
    // Up to the first type or constant: `a::B` of `a::B::method`.
    let type_path = |path: &str| {
        let mut end = 0;
        for segment in path.split("::") {
            end += segment.len();
            if segment.starts_with(|it: char| it.is_ascii_uppercase()) {
                return Some(path[..end].to_owned());
            }
            end += "::".len();
        }
        None
    };
    let paths = |line: &str| -> Vec<String> {
        let words = line.split(|it: char| !(it.is_alphanumeric() || it == '_' || it == ':'));
        words
            .filter(|it| it.starts_with(&root))
            .filter_map(|it| type_path(it.trim_end_matches(':')))
            .collect()
    };
    let is_declaration = |line: &&str| {
        let line = line.trim_start_matches("#[non_exhaustive] ");
        ["enum", "struct", "union", "trait", "type", "use", "const", "static"]
            .iter()
            .any(|kind| line.strip_prefix("pub ").is_some_and(|it| it.starts_with(&format!("{kind} "))))
    };
    let declared: BTreeSet<String> =
        items.lines().filter(is_declaration).filter_map(|it| paths(it).into_iter().next()).collect();
    let named: BTreeSet<String> = items.lines().flat_map(paths).collect();
    named.into_iter().filter(|it| !declared.contains(it) && !it.contains("::sealed::")).collect()
}

/// The program that Cargo would start as rustdoc.
fn rustdoc_program() -> OsString {
    env::var_os("RUSTDOC").unwrap_or_else(|| OsString::from("rustdoc"))
}

/// Runs rustdoc with unstable options, if Cargo has started this program as rustdoc. Returns its exit code.
pub(crate) fn run_as_rustdoc() -> Option<u8> {
    let program = env::var_os(AS_RUSTDOC)?;
    let status = Command::new(program).args(env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").status();
    Some(status.map_or(1, |it| exit_code(it.code())))
}

/// `cargo xtask semver`: compares with the last release. Without a release tag there is nothing to compare with.
pub(crate) fn check_semver() -> Result<(), Error> {
    let mut describe = Command::new("git");
    describe.current_dir(tree::root()).args(["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]);
    let Ok(tag) = run_for_output(&mut describe) else {
        println!("nothing to compare with: there is no release tag `v…`");
        return Ok(());
    };
    let mut command = Command::new(SEMVER_CHECKS.install()?);
    command.current_dir(tree::root()).args(["semver-checks", "--baseline-rev", tag.trim()]);
    for library in packages::libraries()? {
        command.args(["--package", &library.package]);
    }
    run_command(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(items: &str, want: &[&str]) {
        assert_eq!(unreachable_types(items, "a"), want, "{items}");
    }

    #[test]
    fn types_without_a_public_path_are_found() {
        check(
            "pub mod a\n#[non_exhaustive] pub struct a::B<T>\npub fn a::B<T>::c(&self) -> a::B<a::d::E>\n",
            &["a::d::E"],
        );
        check(
            "pub trait a::B: a::sealed::Sealed\npub use a::C\npub const a::D: [a::C; 2]\nimpl a::B for b::F\n",
            &[],
        );
        check("pub enum a::B\npub a::B::C(a::b::B)\n", &["a::b::B"]);
    }
}

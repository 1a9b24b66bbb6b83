//! `cargo xtask fresh`: tries the newest release of every dependency, and reports.
//!
//! The tracked files are copied to `target/fresh`, and only the copy is changed. What works there can be taken over by
//! hand.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::cargo::{cargo, run as run_command, run_for_output};
use crate::error::Error;
use crate::suites::test_run::install::{io_error, node_program, read_file, write_file};
use crate::tree;

/// The folders with locked npm packages.
const NPM_FOLDERS: &[&str] = &["tests/node", "tests/conformance"];

/// The file with locked Python packages of which the newest are wanted.
const PYTHON_PACKAGES: &str = "tests/python/requirements.txt";

/// Updates a copy of the tree and runs all tests there. The exit code is that of the tests.
pub(crate) fn run() -> Result<(), Error> {
    let copy = copy_tree()?;
    update_compatible_crates(&copy)?;
    update_incompatible_crates(&copy)?;
    for folder in NPM_FOLDERS {
        update_npm_packages(&copy.join(folder), folder)?;
    }
    unlock_python_packages(&copy.join(PYTHON_PACKAGES))?;
    println!("\nAll tests with these versions:");
    run_command(cargo().current_dir(&copy).args(["xtask", "test"]))
}

/// Copies the tracked files to `target/fresh`, whose own `target` stays for the next time.
fn copy_tree() -> Result<PathBuf, Error> {
    let folder = tree::root().join("target/fresh");
    fs::create_dir_all(&folder).map_err(|error| io_error("make", &folder, error))?;
    for entry in fs::read_dir(&folder).map_err(|error| io_error("read", &folder, error))?.flatten() {
        let path = entry.path();
        let removed = match path.is_dir() {
            true if entry.file_name() == "target" => Ok(()),
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        removed.map_err(|error| io_error("remove", &path, error))?;
    }
    let prefix = format!("--prefix={}/", folder.display());
    run_command(Command::new("git").current_dir(tree::root()).args([
        "checkout-index",
        "--all",
        "--force",
        &prefix,
    ]))?;
    Ok(folder)
}

/// Updates the lock file, and prints what changed.
fn update_compatible_crates(copy: &Path) -> Result<(), Error> {
    let lock = copy.join("Cargo.lock");
    let before = locked_versions(&read_file(&lock)?)?;
    run_command(cargo().current_dir(copy).args(["update", "--quiet"]))?;
    let after = locked_versions(&read_file(&lock)?)?;
    println!("Compatible releases:");
    for (name, versions) in &after {
        match before.get(name) {
            Some(old) if old == versions => {}
            old => println!("  {name} {} -> {versions}", old.map_or("(none)", |it| it.as_str())),
        }
    }
    Ok(())
}

/// The locked versions of each package.
fn locked_versions(lock: &str) -> Result<BTreeMap<String, String>, Error> {
    let lock: toml::Table = lock.parse().map_err(|error| Error::message(format!("Cargo.lock: {error}")))?;
    let mut res = BTreeMap::<String, String>::new();
    for package in lock.get("package").and_then(toml::Value::as_array).into_iter().flatten() {
        let text = |key| package.get(key).and_then(toml::Value::as_str).unwrap_or_default();
        let versions = res.entry(text("name").to_owned()).or_default();
        if !versions.is_empty() {
            versions.push_str(", ");
        }
        versions.push_str(text("version"));
    }
    Ok(res)
}

/// Tries the newest release of each direct dependency that its requirement excludes, one after the other. One that
/// compiles stays in the copy.
fn update_incompatible_crates(copy: &Path) -> Result<(), Error> {
    let output = cargo()
        .current_dir(copy)
        .args(["update", "--dry-run", "--verbose"])
        .output()
        .map_err(|error| Error::message(format!("could not start cargo: {error}")))?;
    println!("\nReleases that the requirements exclude:");
    let manifest = copy.join("Cargo.toml");
    for (name, newest) in excluded_releases(&String::from_utf8_lossy(&output.stderr)) {
        let before = read_file(&manifest)?;
        let lock_before = read_file(&copy.join("Cargo.lock"))?;
        let Some(changed) = with_requirement(&before, &name, &newest) else { continue };
        write_file(&manifest, &changed)?;
        let check = cargo()
            .current_dir(copy)
            .args(["check", "--quiet", "--workspace", "--all-targets", "--all-features"])
            .output()
            .map_err(|error| Error::message(format!("could not start cargo: {error}")))?;
        if check.status.success() {
            println!("  {name} {newest}: compiles");
            continue;
        }
        let errors = String::from_utf8_lossy(&check.stderr).into_owned();
        let first = errors.lines().find(|line| line.starts_with("error")).unwrap_or("it does not compile");
        println!("  {name} {newest}: {first}");
        write_file(&manifest, &before)?;
        write_file(&copy.join("Cargo.lock"), &lock_before)?;
    }
    Ok(())
}

/// The packages that Cargo left at an older version, with the newest one: `Unchanged nix v0.31.4 (available: v0.32.0)`.
fn excluded_releases(report: &str) -> Vec<(String, String)> {
    let parse = |line: &str| {
        let (package, newest) = line.trim().strip_prefix("Unchanged ")?.split_once(" (available: v")?;
        let newest = newest.split([',', ')']).next()?;
        Some((package.split_once(' ')?.0.to_owned(), newest.to_owned()))
    };
    report.lines().filter_map(parse).collect()
}

/// The root manifest with another version of a dependency. `None` if it is no dependency of the workspace.
fn with_requirement(manifest: &str, name: &str, version: &str) -> Option<String> {
    let table: toml::Table = manifest.parse().ok()?;
    let dependency = table.get("workspace")?.get("dependencies")?.get(name)?;
    let old = dependency.as_str().or_else(|| dependency.get("version")?.as_str())?;
    let exact = if old.starts_with('=') { "=" } else { "" };
    let line =
        manifest.lines().find(|line| line.split_once('=').is_some_and(|(key, _)| key.trim() == name))?;
    let changed = line.replacen(&format!("\"{old}\""), &format!("\"{exact}{version}\""), 1);
    Some(manifest.replacen(line, &changed, 1))
}

/// Locks the newest release of each npm package of a folder, and prints what changed.
fn update_npm_packages(folder: &Path, label: &str) -> Result<(), Error> {
    println!("\nnpm packages of {label}:");
    let path = folder.join("package.json");
    let mut manifest: Value = serde_json::from_str(&read_file(&path)?)
        .map_err(|error| Error::message(format!("{label}: {error}")))?;
    let npm = || {
        let mut res = Command::new(node_program("npm"));
        res.current_dir(folder);
        res
    };
    for (name, version) in manifest["dependencies"].as_object_mut().into_iter().flatten() {
        // An alias such as `npm:NAME@1` is locked to a generation on purpose.
        let Some(locked) = version.as_str().filter(|it| !it.contains(':')).map(str::to_owned) else {
            continue;
        };
        let newest = run_for_output(npm().args(["view", name, "version"]))?.trim().to_owned();
        if newest != locked {
            println!("  {name} {locked} -> {newest}");
            *version = newest.into();
        }
    }
    write_file(&path, &format!("{manifest:#}\n"))?;
    run_command(npm().args(["install", "--package-lock-only", "--no-audit", "--no-fund", "--loglevel=error"]))
}

/// Removes the versions from a list of Python packages, so that the newest ones are installed.
fn unlock_python_packages(path: &Path) -> Result<(), Error> {
    let text = read_file(path)?;
    let unlocked = text.lines().map(|line| line.split("==").next().unwrap_or(line));
    write_file(path, &(unlocked.collect::<Vec<_>>().join("\n") + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_cargo_leaves_out_are_found() {
        let report = "   Unchanged jiff v0.2.46 (available: v1.0.2)\n   Updating a v1.0.0 -> v1.0.1\n   \
                      Unchanged nix v0.31.4 (available: v0.32.0, requires Rust 1.90)\n";
        let want = [("jiff", "1.0.2"), ("nix", "0.32.0")].map(|(name, it)| (name.to_owned(), it.to_owned()));
        assert_eq!(excluded_releases(report), want);
    }

    #[test]
    fn requirement_of_a_dependency_is_replaced() {
        let manifest = "[workspace.dependencies]\nnix = { version = \"0.31.2\", features = [\"fs\"] }\n\
                        exact = \"=1.2.3\"\n";
        let changed = with_requirement(manifest, "nix", "0.32.0").unwrap();
        assert!(changed.contains("nix = { version = \"0.32.0\", features = [\"fs\"] }"), "{changed}");
        let changed = with_requirement(manifest, "exact", "2.0.0").unwrap();
        assert!(changed.contains("exact = \"=2.0.0\""), "{changed}");
        assert_eq!(with_requirement(manifest, "other", "1.0.0"), None);
    }

    #[test]
    fn locked_versions_of_one_name_are_listed_together() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n[[package]]\nname = \"a\"\nversion = \"2.0.0\"\n";
        assert_eq!(locked_versions(lock).unwrap()["a"], "1.0.0, 2.0.0");
    }
}

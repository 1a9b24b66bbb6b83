//! `cargo xtask package`: packages the published crates, and checks that the packages and their tests compile. With
//! `--test` it also runs their tests.
//!
//! The packages are unpacked into a workspace of their own, which uses no file of the tree, and are built
//! with the oldest versions of their dependencies that the manifests allow. All other tests use the versions
//! of the lock file. A package contains the tests of `tests/` only if they need nothing outside of it:
//! neither fixtures of the workspace nor mcp-testkit, which is not published.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

use crate::cargo::{cargo, is_ci, run as run_command};
use crate::error::Error;
use crate::gates::packages;
use crate::tree;

/// What is done with the unpacked packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Check,
    /// Their tests run. This takes several times as long.
    Test,
}

/// Packages, unpacks and builds the crates in a new folder of `target`.
///
/// Cargo reuses an unpacked package of the same version even if its content is old, so an existing folder would build
/// against stale crates.
pub(crate) fn run(extent: Extent) -> Result<(), Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos());
    let folder = tree::root().join(format!("target/packed-{now}"));
    let result = write_packages(&folder)
        .and_then(|()| unpack_packages(&folder))
        .and_then(|workspace| build_workspace(&workspace, extent));
    // The folder is as large as a whole build and is not used again.
    let _ = fs::remove_dir_all(&folder);
    result
}

/// Writes `package/*.crate` into the folder. CI packages only what is committed.
fn write_packages(folder: &Path) -> Result<(), Error> {
    let unpublished = packages::unpublished_packages()?;
    run_command(cargo().args(package_arguments(&unpublished, is_ci())).env("CARGO_TARGET_DIR", folder))
}

/// The arguments of `cargo` that write the packages.
fn package_arguments(unpublished: &[String], in_ci: bool) -> Vec<&str> {
    // The packages are checked after they are unpacked.
    let mut res = vec!["package", "--workspace", "--no-verify"];
    res.extend(unpublished.iter().flat_map(|it| ["--exclude", it.as_str()]));
    if !in_ci {
        res.push("--allow-dirty");
    }
    res
}

/// Unpacks the packages into a workspace with the oldest dependencies, and returns its folder.
fn unpack_packages(folder: &Path) -> Result<PathBuf, Error> {
    let failed = |what: &Path, error: std::io::Error| Error::message(format!("{}: {error}", what.display()));
    let workspace = folder.join("unpacked");
    fs::create_dir_all(&workspace).map_err(|error| failed(&workspace, error))?;
    let packages = folder.join("package");
    let mut names = Vec::new();
    for entry in fs::read_dir(&packages).map_err(|error| failed(&packages, error))? {
        let path = entry.map_err(|error| failed(&packages, error))?.path();
        if path.extension().is_none_or(|it| it != "crate") {
            continue;
        }
        run_command(Command::new("tar").arg("-xzf").arg(&path).arg("-C").arg(&workspace))?;
        let size = fs::metadata(&path).map_err(|error| failed(&path, error))?.len();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        println!("{name}: {} KiB", size.div_ceil(1024));
        names.push(name);
    }
    names.sort();
    let manifest = workspace.join("Cargo.toml");
    fs::write(&manifest, workspace_manifest(&names)).map_err(|error| failed(&manifest, error))?;
    let mut update = cargo();
    update.current_dir(&workspace).args(["update", "--quiet", "-Z", "direct-minimal-versions"]);
    // Only with this variable a stable Cargo accepts the option.
    run_command(update.env("RUSTC_BOOTSTRAP", "1"))?;
    Ok(workspace)
}

/// The manifest of a workspace of unpacked packages, each in a folder `name-version`. They use each other instead of
/// packages of the registry.
fn workspace_manifest(folders: &[String]) -> String {
    let members: Vec<String> = folders.iter().map(|it| format!("{it:?}")).collect();
    let mut res = format!("[workspace]\nresolver = \"3\"\nmembers = [{}]\n", members.join(", "));
    res += "\n[patch.crates-io]\n";
    for folder in folders {
        let name = folder.rsplit_once('-').map_or(folder.as_str(), |it| it.0);
        res += &format!("{name} = {{ path = {folder:?} }}\n");
    }
    res
}

/// Checks all packages with their tests, or runs the tests.
fn build_workspace(workspace: &Path, extent: Extent) -> Result<(), Error> {
    let mut command = cargo();
    command.current_dir(workspace);
    match extent {
        Extent::Check => command.args(["check", "--quiet", "--workspace", "--all-targets"]),
        Extent::Test => command.args(["test", "--quiet", "--workspace"]),
    };
    // Without debug information the build takes two thirds of the time.
    command.env("CARGO_PROFILE_DEV_DEBUG", "none").env("CARGO_INCREMENTAL", "0");
    command.env("CARGO_TARGET_DIR", workspace.join("target"));
    // No file of the tree is used.
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MCP_HOST_")) {
        command.env_remove(name);
    }
    run_command(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ci_packages_only_committed_files() {
        assert!(!package_arguments(&[], true).contains(&"--allow-dirty"));
        assert!(package_arguments(&[], false).contains(&"--allow-dirty"));
    }

    #[test]
    fn packages_use_each_other() {
        let manifest = workspace_manifest(&["a-b-0.2.0".to_owned(), "c-0.2.0".to_owned()]);
        let manifest: toml::Table = manifest.parse().expect("it is TOML");
        assert_eq!(manifest["workspace"]["members"].as_array().map(Vec::len), Some(2));
        let patches = &manifest["patch"]["crates-io"];
        assert_eq!(patches["a-b"]["path"].as_str(), Some("a-b-0.2.0"));
        assert_eq!(patches["c"]["path"].as_str(), Some("c-0.2.0"));
    }
}

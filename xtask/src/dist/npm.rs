//! The npm packages: one for each platform with the program, and `mcp-host-cli`, whose script starts it.
//!
//! npm installs the platform package that fits, because the main package names all of them as optional.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::cargo::run_for_output;
use crate::dist::target::{NpmPlatform, Program, TARGETS, Target};
use crate::error::Error;
use crate::suites::test_run::install::{copy_file, io_error, node_program, write_file};
use crate::tree;

/// The main package.
pub(super) const PACKAGE: &str = "mcp-host-cli";

/// What a user reads on the page of the package.
const DESCRIPTION: &str =
    "Checks, runs, calls and serves the MCP servers of the configuration you already have.";

/// The files of the tree that each package contains.
const DOCUMENTS: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// Writes the packages as `.tgz` into `output`: first the main package, then those of the platforms.
pub(super) fn write_packages(
    programs: &[Program],
    version: &str,
    output: &Path,
) -> Result<Vec<PathBuf>, Error> {
    let staging = output.join("staging/npm");
    let main = staging.join(PACKAGE);
    copy_file(&tree::root().join("packaging/npm/mcp-host.js"), &main.join("bin/mcp-host.js"))?;
    copy_file(&tree::root().join("crates/mcp-cli/README.md"), &main.join("README.md"))?;
    let mut res = vec![pack(&main, &main_manifest(version), output)?];
    for Program { target, path } in programs {
        let Some(platform) = target.npm else { continue };
        let folder = staging.join(platform.package());
        copy_file(path, &folder.join("bin").join(target.program_name()))?;
        res.push(pack(&folder, &platform_manifest(*target, platform, version), output)?);
    }
    Ok(res)
}

/// The platform packages that the main package names.
pub(super) fn platform_packages() -> impl Iterator<Item = String> {
    TARGETS.iter().filter_map(|target| target.npm).map(NpmPlatform::package)
}

fn main_manifest(version: &str) -> Value {
    let platforms: serde_json::Map<String, Value> =
        platform_packages().map(|name| (name, Value::from(version))).collect();
    json!({
        "name": PACKAGE,
        "version": version,
        "description": DESCRIPTION,
        "license": "MIT OR Apache-2.0",
        "keywords": ["mcp", "model-context-protocol", "gateway"],
        "bin": { "mcp-host": "bin/mcp-host.js", PACKAGE: "bin/mcp-host.js" },
        "engines": { "node": ">=18" },
        "files": ["bin"],
        "optionalDependencies": platforms,
    })
}

fn platform_manifest(target: Target, platform: NpmPlatform, version: &str) -> Value {
    json!({
        "name": platform.package(),
        "version": version,
        "description": format!("The program of {PACKAGE} for {}.", target.triple),
        "license": "MIT OR Apache-2.0",
        "os": [platform.os],
        "cpu": [platform.cpu],
        "files": ["bin"],
        "preferUnplugged": true,
    })
}

/// Packs a folder and returns the file. npm sets all times to the same value.
fn pack(folder: &Path, manifest: &Value, output: &Path) -> Result<PathBuf, Error> {
    for document in DOCUMENTS {
        copy_file(&tree::root().join(document), &folder.join(document))?;
    }
    write_file(&folder.join("package.json"), &format!("{manifest:#}\n"))?;
    let destination = output.join("npm");
    fs::create_dir_all(&destination).map_err(|error| io_error("make", &destination, error))?;
    let name = run_for_output(
        Command::new(node_program("npm"))
            .args(["pack", "--silent", "--pack-destination"])
            .arg(&destination)
            .current_dir(folder),
    )?;
    Ok(destination.join(name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_package_names_each_platform_in_its_version() {
        let manifest = main_manifest("1.2.3");
        let names: Vec<&str> = manifest["optionalDependencies"]
            .as_object()
            .expect("it is an object")
            .iter()
            .filter(|(_, version)| *version == "1.2.3")
            .map(|(name, _)| name.as_str())
            .collect();
        for target in TARGETS {
            let Some(platform) = target.npm else { continue };
            assert!(names.contains(&platform.package().as_str()), "{}", target.triple);
            assert_eq!(platform_manifest(*target, platform, "1.2.3")["os"], json!([platform.os]));
        }
    }

    #[test]
    fn the_script_finds_the_packages_by_the_names_of_node() {
        let script = include_str!("../../../packaging/npm/mcp-host.js");
        assert!(script.contains("`mcp-host-cli-${process.platform}-${process.arch}`"));
    }
}

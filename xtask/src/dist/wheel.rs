//! The Python wheels: each contains the program for one platform, which `pip` and `uv` install as a script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::run as run_command;
use crate::dist::build::BuildSettings;
use crate::dist::target::Program;
use crate::error::Error;
use crate::suites::test_run::install::{copy_file, io_error, read_file, write_file};
use crate::tree;

/// The name on PyPI.
pub(super) const PACKAGE: &str = "mcp-host-cli";

/// The name in the names of files, where a hyphen separates fields.
const FILE_PREFIX: &str = "mcp_host_cli";

/// `uvx` runs the script with the name of the package.
const ENTRY_POINTS: &str = "[console_scripts]\nmcp-host-cli = mcp_host_cli:main\n";

/// Writes a wheel for each platform that has a tag, and returns the files.
pub(super) fn write_wheels(
    programs: &[Program],
    version: &str,
    settings: &BuildSettings,
    output: &Path,
) -> Result<Vec<PathBuf>, Error> {
    let wheels = output.join("python");
    fs::create_dir_all(&wheels).map_err(|error| io_error("make", &wheels, error))?;
    let mut res = Vec::new();
    for Program { target, path } in programs {
        let Some(tag) = target.wheel else { continue };
        let staging = output.join("staging/python").join(target.triple);
        let scripts = staging.join(format!("{FILE_PREFIX}-{version}.data/scripts"));
        copy_file(path, &scripts.join(target.program_name()))?;
        let information = staging.join(format!("{FILE_PREFIX}-{version}.dist-info"));
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            copy_file(&tree::root().join(licence), &information.join("licenses").join(licence))?;
        }
        let start_script = tree::root().join("packaging/python/__init__.py");
        copy_file(&start_script, &staging.join("mcp_host_cli/__init__.py"))?;
        write_file(&information.join("entry_points.txt"), ENTRY_POINTS)?;
        write_file(&information.join("METADATA"), &metadata(version)?)?;
        write_file(&information.join("WHEEL"), &wheel_file(tag))?;
        // `wheel` writes the list of files with their hashes.
        let python = settings.python_environment.join("bin/python");
        let mut pack = Command::new(python);
        pack.args(["-m", "wheel", "pack", "--dest-dir"]).arg(&wheels).arg(&staging);
        run_command(pack.env("SOURCE_DATE_EPOCH", &settings.commit_time))?;
        res.push(wheels.join(format!("{FILE_PREFIX}-{version}-py3-none-{tag}.whl")));
    }
    Ok(res)
}

fn metadata(version: &str) -> Result<String, Error> {
    let page = read_file(&tree::root().join("crates/mcp-cli/README.md"))?;
    Ok(format!(
        "Metadata-Version: 2.4\nName: {PACKAGE}\nVersion: {version}\n\
         Summary: Checks, runs, calls and serves the MCP servers of the configuration you already have.\n\
         License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n\
         Keywords: mcp,model-context-protocol,gateway\nRequires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n{page}"
    ))
}

/// The tags of a file name with several platforms are the product of its fields, one tag a line.
fn wheel_file(tag: &str) -> String {
    let mut res = "Wheel-Version: 1.0\nGenerator: mcp-host xtask\nRoot-Is-Purelib: false\n".to_owned();
    for platform in tag.split('.') {
        res += &format!("Tag: py3-none-{platform}\n");
    }
    res
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_platform_has_a_tag() {
        let file = wheel_file("manylinux2014_x86_64.musllinux_1_1_x86_64");
        assert!(file.ends_with("Tag: py3-none-manylinux2014_x86_64\nTag: py3-none-musllinux_1_1_x86_64\n"));
    }

    #[test]
    fn the_page_follows_the_fields() {
        let text = metadata("1.2.3").expect("the page is readable");
        let (fields, page) = text.split_once("\n\n").expect("an empty line separates them");
        assert!(fields.contains("\nVersion: 1.2.3\n") && page.starts_with("# "), "{fields}");
    }
}

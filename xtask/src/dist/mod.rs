//! `cargo xtask dist`: builds the packages of the program, installs each that runs here, and tries it.
//!
//! Everything is written to `target/packages`: archives, a Debian package, npm packages, Python wheels, a folder for a
//! container image, a bill of materials and checksums.

mod archive;
mod build;
mod install;
mod npm;
mod system;
mod target;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::cargo::run_for_output;
use crate::error::Error;
use crate::suites::test_run::install::{install_packaging_tools, io_error, write_file};
use crate::tree;
use archive::{EXECUTABLE, PackageFile, READABLE};
use build::BuildSettings;
use target::{Program, TARGETS, Target};

/// The size above which a package is reported.
const MAX_ARCHIVE: u64 = 15 * 1024 * 1024;

/// Builds the packages for the targets that the arguments name, by default all that can be built on Linux.
/// `--profile NAME` builds with another profile than `dist`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Error> {
    let (profile, targets) = parse_arguments(arguments)?;
    let git = |arguments: &[&str]| {
        let output = run_for_output(Command::new("git").current_dir(tree::root()).args(arguments))?;
        Ok::<String, Error>(output.trim().to_owned())
    };
    let settings = BuildSettings {
        profile,
        commit: git(&["rev-parse", "--short=12", "HEAD"])?,
        commit_time: git(&["log", "-1", "--format=%ct"])?,
        python_environment: install_packaging_tools()?,
    };
    let output = tree::root().join("target/packages");
    if output.exists() {
        fs::remove_dir_all(&output).map_err(|error| io_error("remove", &output, error))?;
    }
    fs::create_dir_all(&output).map_err(|error| io_error("make", &output, error))?;
    let version = env!("CARGO_PKG_VERSION");

    let mut programs = Vec::new();
    for target in targets {
        println!("== {}", target.triple);
        programs.push(Program { target, path: build::build_program(target, &settings)? });
    }
    let documents = write_documents(&programs, &output)?;
    let mut packages = Vec::new();
    for program in &programs {
        packages.push(write_archive(program, &documents, version, &output)?);
    }
    packages.extend(system::write_debian_packages(&programs, &settings, &output)?);
    packages.extend(npm::write_packages(&programs, version, &output)?);
    packages.extend(wheel::write_wheels(&programs, version, &settings, &output)?);
    packages.push(system::write_bill_of_materials(version, &settings, &output)?);
    system::write_container_folder(&programs, &output)?;
    write_checksums(&packages, &output)?;

    install::try_packages(&programs, &packages, &settings, &output)
}

fn parse_arguments(arguments: &[&str]) -> Result<(String, Vec<Target>), Error> {
    let mut profile = "dist".to_owned();
    let mut targets = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match *argument {
            "--profile" => {
                let name = rest.next().ok_or_else(|| Error::message("--profile needs a name"))?;
                profile = (*name).to_owned();
            }
            triple => targets.push(Target::find(triple).ok_or_else(|| {
                let known: Vec<&str> = TARGETS.iter().map(|target| target.triple).collect();
                Error::message(format!("{triple} is no target; there are {}", known.join(", ")))
            })?),
        }
    }
    if targets.is_empty() {
        targets.extend(TARGETS.iter().filter(|target| target.is_linux() || target.is_windows()));
    }
    Ok((profile, targets))
}

/// Writes the completions and the manual page, by a program that runs here, and lists them with the licences.
fn write_documents(programs: &[Program], output: &Path) -> Result<Vec<PackageFile>, Error> {
    let folder = output.join("staging/documents");
    fs::create_dir_all(&folder).map_err(|error| io_error("make", &folder, error))?;
    let program = programs.iter().find(|program| program.target.runs_here());
    let Some(program) = program else {
        return Err(Error::message("no target runs on this machine; one must write the completions"));
    };
    let mut res = Vec::new();
    for (name, arguments) in [
        ("completions/mcp-host.bash", ["completions", "bash"].as_slice()),
        ("completions/_mcp-host", &["completions", "zsh"]),
        ("completions/mcp-host.fish", &["completions", "fish"]),
        ("completions/mcp-host.ps1", &["completions", "powershell"]),
        ("mcp-host.1", &["man"]),
    ] {
        let text = run_for_output(Command::new(&program.path).args(arguments))?;
        let source = folder.join(name);
        let parent = source.parent().expect("it is a file of the folder");
        fs::create_dir_all(parent).map_err(|error| io_error("make", parent, error))?;
        write_file(&source, &text)?;
        res.push(PackageFile { name: name.to_owned(), source, mode: READABLE });
    }
    for (name, source) in [
        ("README.md", "crates/mcp-cli/README.md"),
        ("CHANGELOG.md", "CHANGELOG.md"),
        ("LICENSE-APACHE", "LICENSE-APACHE"),
        ("LICENSE-MIT", "LICENSE-MIT"),
    ] {
        res.push(PackageFile { name: name.to_owned(), source: tree::root().join(source), mode: READABLE });
    }
    Ok(res)
}

/// Writes the archive of a target, and returns its path.
fn write_archive(
    program: &Program,
    documents: &[PackageFile],
    version: &str,
    output: &Path,
) -> Result<PathBuf, Error> {
    let Program { target, path } = program;
    let folder = format!("mcp-host-{version}-{}", target.triple);
    let mut files = documents.to_vec();
    let name = target.program_name().to_owned();
    files.push(PackageFile { name, source: path.clone(), mode: EXECUTABLE });
    let archive = if target.is_windows() {
        let archive = output.join(format!("{folder}.zip"));
        archive::write_zip(&archive, &folder, &files)?;
        archive
    } else {
        let archive = output.join(format!("{folder}.tar.gz"));
        archive::write_tar_gz(&archive, &folder, &files)?;
        archive
    };
    Ok(archive)
}

/// Writes `SHA256SUMS` in the format of `sha256sum`, and prints the sizes.
fn write_checksums(packages: &[PathBuf], output: &Path) -> Result<(), Error> {
    let mut sums = String::new();
    println!("\n{:>10}  package", "KiB");
    for package in packages {
        let content = fs::read(package).map_err(|error| io_error("read", package, error))?;
        let name = package.strip_prefix(output).unwrap_or(package).display().to_string().replace('\\', "/");
        let hash = Sha256::digest(&content);
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        sums += &format!("{hash}  {name}\n");
        println!("{:>10}  {name}", content.len().div_ceil(1024));
        if content.len() as u64 > MAX_ARCHIVE {
            println!("WARNING: {name} is larger than {} MiB", MAX_ARCHIVE / 1024 / 1024);
        }
    }
    write_file(&output.join("SHA256SUMS"), &sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_select_profile_and_targets() {
        let (profile, targets) = parse_arguments(&[]).expect("there are defaults");
        assert_eq!((profile.as_str(), targets.len()), ("dist", 5));
        let (profile, targets) =
            parse_arguments(&["--profile", "dev", "x86_64-unknown-linux-gnu"]).expect("they are right");
        assert_eq!((profile.as_str(), targets[0].triple), ("dev", "x86_64-unknown-linux-gnu"));
        for wrong in [["--profile"].as_slice(), &["x86_64-linux"]] {
            assert!(parse_arguments(wrong).is_err(), "{wrong:?}");
        }
    }
}

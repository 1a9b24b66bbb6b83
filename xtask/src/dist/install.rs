//! Installs the packages that run on this machine, each into an empty folder, and runs the quick start with each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo::{is_ci, run as run_command, run_for_output};
use crate::dist::build::BuildSettings;
use crate::dist::target::Program;
use crate::dist::{npm, wheel};
use crate::error::Error;
use crate::suites::test_run::install::{io_error, node_program};
use crate::tree;

/// Installs and tries all packages of the targets that run here.
pub(super) fn try_packages(
    programs: &[Program],
    packages: &[PathBuf],
    settings: &BuildSettings,
    output: &Path,
) -> Result<(), Error> {
    let folder = output.join("installed");
    for Program { target, path: _ } in programs.iter().filter(|program| program.target.runs_here()) {
        for package in packages {
            let name = package.file_name().unwrap_or_default().to_string_lossy();
            let prefix = folder.join(&*name);
            let program = if name.ends_with(&format!("{}.tar.gz", target.triple)) {
                install_archive(package, &prefix)?
            } else if target.deb.is_some_and(|architecture| name.ends_with(&format!("{architecture}.deb"))) {
                install_debian_package(package, &prefix)?
            } else if target.wheel.is_some_and(|tag| name.ends_with(&format!("{tag}.whl"))) {
                install_wheel(package, &prefix, settings)?
            } else if target.npm.is_some_and(|platform| name.starts_with(&platform.package())) {
                let main = packages.iter().find(|package| is_main_npm_package(package));
                install_npm(main.expect("it is always written"), package, &prefix)?
            } else {
                continue;
            };
            try_program(&program, &settings.commit, &prefix)?;
            println!("ok: {name}");
        }
    }
    try_container(programs, output)
}

fn is_main_npm_package(package: &Path) -> bool {
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".tgz") && !npm::platform_packages().any(|platform| name.starts_with(&platform))
}

/// Runs the quick start: version, list of tools, one call.
fn try_program(program: &Path, commit: &str, folder: &Path) -> Result<(), Error> {
    let config = folder.join("quickstart.yaml");
    let example = tree::root().join("examples/quickstart/.minds/mcp.yaml");
    fs::copy(&example, &config).map_err(|error| io_error("copy", &example, error))?;
    let run = |arguments: &[&str]| {
        run_for_output(Command::new(program).args(arguments).current_dir(folder).env("HOME", folder))
    };
    for (arguments, expected) in [
        (["--version"].as_slice(), commit),
        (&["tools", "quickstart.yaml", "--dialect", "dominds"], "demo_echo"),
        (&["call", "quickstart.yaml", "demo_add", "a=2", "b=3", "--dialect", "dominds"], "5"),
    ] {
        let text = run(arguments)?;
        if !text.contains(expected) {
            let command = arguments.join(" ");
            return Err(Error::message(format!(
                "{} {command} did not print {expected}:\n{text}",
                program.display()
            )));
        }
    }
    Ok(())
}

fn install_archive(package: &Path, prefix: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(prefix).map_err(|error| io_error("make", prefix, error))?;
    run_command(
        Command::new("tar").args(["--strip-components=1", "-xzf"]).arg(package).arg("-C").arg(prefix),
    )?;
    Ok(prefix.join("mcp-host"))
}

/// Unpacks the files; installing them would change this machine.
fn install_debian_package(package: &Path, prefix: &Path) -> Result<PathBuf, Error> {
    run_command(Command::new("dpkg-deb").arg("--extract").arg(package).arg(prefix))?;
    Ok(prefix.join("usr/bin/mcp-host"))
}

fn install_wheel(package: &Path, prefix: &Path, settings: &BuildSettings) -> Result<PathBuf, Error> {
    let python = settings.python_environment.join("bin/python");
    run_command(Command::new(python).args(["-m", "venv"]).arg(prefix))?;
    let mut pip = Command::new(prefix.join("bin/pip"));
    run_command(pip.args(["install", "--quiet", "--no-index", "--disable-pip-version-check"]).arg(package))?;
    // The script that `uvx` runs starts the program.
    run_for_output(Command::new(prefix.join("bin").join(wheel::PACKAGE)).arg("--version"))?;
    Ok(prefix.join("bin/mcp-host"))
}

/// The platform packages of other machines are not published yet; npm leaves out optional packages that it cannot get.
fn install_npm(main: &Path, platform: &Path, prefix: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(prefix).map_err(|error| io_error("make", prefix, error))?;
    let mut command = Command::new(node_program("npm"));
    command.args(["install", "--global", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(prefix);
    run_command(command.arg(platform).arg(main))?;
    Ok(prefix.join("bin/mcp-host"))
}

/// The name of the image that is tried.
const IMAGE: &str = "localhost/mcp-host-try";

/// Builds the image and runs the program in it, if buildah is installed.
fn try_container(programs: &[Program], output: &Path) -> Result<(), Error> {
    let architecture = programs.iter().filter(|program| program.target.runs_here());
    let Some(architecture) = architecture.filter_map(|program| program.target.deb).next() else {
        return Ok(());
    };
    if Command::new("buildah").arg("--version").output().is_err() {
        return if is_ci() {
            Err(Error::message("buildah is missing: apt-get install buildah"))
        } else {
            println!("WARNING: without buildah the container image is not tried");
            Ok(())
        };
    }
    let buildah = |command: &str| {
        let mut res = Command::new("buildah");
        res.arg(command).args(["--storage-driver", "vfs"]);
        res
    };
    let mut build = buildah("build");
    build.args(["--isolation", "chroot", "--quiet", "--tag", IMAGE]);
    run_command(build.arg(output.join("container").join(architecture)))?;
    let container = run_for_output(buildah("from").args(["--quiet", IMAGE]))?;
    let mut run = buildah("run");
    run.args(["--isolation", "chroot", container.trim(), "/usr/bin/mcp-host", "--version"]);
    let version = run_for_output(&mut run);
    run_command(buildah("rm").arg(container.trim()).stdout(Stdio::null()))?;
    if !version?.contains("-linux-musl") {
        return Err(Error::message("the program in the container is not the static one"));
    }
    println!("ok: container image for {architecture}");
    Ok(())
}

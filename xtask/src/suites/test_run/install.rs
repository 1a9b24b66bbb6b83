//! Installation of locked npm and Python packages into `target`.
//!
//! A stamp file records what is installed, so a second run installs nothing. The stamp is written last, so an
//! interrupted installation is repeated.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::{cargo, tree};

/// The name of the stamp file.
const STAMP: &str = "installed.stamp";

/// Installs tests/node/package-lock.json into `target/node/node_modules`.
pub(crate) fn install_node_modules() -> Result<PathBuf, Error> {
    install_npm_packages("node")
}

/// The environment variable with the folder of [`install_conformance_suite`].
pub(crate) const CONFORMANCE_VARIABLE: &str = "MCP_HOST_CONFORMANCE";

/// Installs tests/conformance/package-lock.json into `target/conformance/node_modules`: the official suite, SDKs,
/// clients and a Node of their own.
pub(crate) fn install_conformance_suite() -> Result<PathBuf, Error> {
    install_npm_packages("conformance")
}

/// Installs the lock file of a folder of tests into a folder of the same name in `target`.
fn install_npm_packages(name: &str) -> Result<PathBuf, Error> {
    let root = tree::root();
    let (locked, folder) = (root.join("tests").join(name), root.join("target").join(name));
    let names = ["package.json", "package-lock.json"];
    let mut stamp = program_version(node_program("node"))?;
    for name in names {
        stamp += &read_file(&locked.join(name))?;
    }
    if !is_installed(&folder, &stamp) {
        recreate(&folder)?;
        for name in names {
            let (from, to) = (locked.join(name), folder.join(name));
            fs::copy(&from, &to).map_err(|error| io_error("copy", &from, error))?;
        }
        let mut npm = Command::new(node_program("npm"));
        npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&folder);
        run_installer("npm", &mut npm)?;
        write_file(&folder.join(STAMP), &stamp)?;
    }
    Ok(folder.join("node_modules"))
}

/// Installs tests/python/requirements.txt into `target/venv`, with the tools that tests start with `uvx`.
pub(super) fn install_venv() -> Result<PathBuf, Error> {
    let requirements = tree::root().join("tests/python/requirements.txt");
    create_environment("venv", &requirements, "with uv tools\n", |folder, python| {
        install_uv_tools(folder, python, &requirements)
    })
}

/// Installs tests/python/mcp1.requirements.txt into `target/venv-mcp1`: an environment cannot hold two versions of one
/// package.
pub(super) fn install_mcp1_venv() -> Result<PathBuf, Error> {
    let requirements = tree::root().join("tests/python/mcp1.requirements.txt");
    create_environment("venv-mcp1", &requirements, "", |_, _| Ok(()))
}

/// Installs packaging/requirements.txt into `target/venv-packaging`: the tools that `cargo xtask dist` needs.
pub(crate) fn install_packaging_tools() -> Result<PathBuf, Error> {
    let requirements = tree::root().join("packaging/requirements.txt");
    create_environment("venv-packaging", &requirements, "", |_, _| Ok(()))
}

/// Installs tests/python/zig.requirements.txt into `target/venv-zig`: a C compiler with the headers of macOS.
pub(crate) fn install_zig() -> Result<PathBuf, Error> {
    let requirements = tree::root().join("tests/python/zig.requirements.txt");
    create_environment("venv-zig", &requirements, "", |_, _| Ok(()))
}

/// Creates a virtual environment in `target`. `install_more` installs additional packages, which `kind` names in the
/// stamp.
fn create_environment(
    name: &str,
    requirements: &Path,
    kind: &str,
    install_more: impl FnOnce(&Path, &Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let folder = tree::root().join("target").join(name);
    // A venv contains absolute paths and links to its Python.
    let stamp =
        format!("{kind}{}{}\n{}", program_version("python3")?, folder.display(), read_file(requirements)?);
    if !is_installed(&folder, &stamp) {
        recreate(&folder)?;
        run_installer("python3", Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        run_installer("pip", pip.arg(requirements))?;
        install_more(&folder, &python)?;
        write_file(&folder.join(STAMP), &stamp)?;
    }
    Ok(folder)
}

/// Installs the tools that tests start with `uvx`, in locked versions, so that no test queries an index.
fn install_uv_tools(venv: &Path, python: &Path, requirements: &Path) -> Result<(), Error> {
    let mut uv = Command::new(venv.join(if cfg!(windows) { "Scripts/uv.exe" } else { "bin/uv" }));
    uv.args(["tool", "install", "--quiet", "mcp-server-time", "--constraints"]).arg(requirements);
    uv.env("UV_TOOL_DIR", venv.join("uv-tools")).env("UV_TOOL_BIN_DIR", venv.join("uv-tools/bin"));
    // uv does not read the settings of pip, where a machine may have configured an index.
    let index = Command::new(python).args(["-m", "pip", "config", "get", "global.index-url"]).output();
    if let Ok(index) = index
        .map_err(drop)
        .and_then(|output| if output.status.success() { Ok(output.stdout) } else { Err(()) })
    {
        uv.env("UV_DEFAULT_INDEX", String::from_utf8_lossy(&index).trim());
    }
    run_installer("uv", &mut uv)
}

/// The file name of a Node program; npm is a script on Windows.
pub(crate) fn node_program(name: &'static str) -> &'static str {
    match name {
        "npm" if cfg!(windows) => "npm.cmd",
        _ => name,
    }
}

/// What `program --version` prints.
fn program_version(program: &str) -> Result<String, Error> {
    let output = Command::new(program).arg("--version").output();
    let output = output.map_err(|error| Error::message(format!("could not start {program}: {error}")))?;
    if !output.status.success() {
        return Err(Error::message(format!("`{program} --version` failed")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether the stamp of the folder has this text.
pub(super) fn is_installed(folder: &Path, stamp: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|text| text == stamp)
}

/// Creates an empty folder.
fn recreate(folder: &Path) -> Result<(), Error> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| io_error("remove", folder, error))?;
    }
    fs::create_dir_all(folder).map_err(|error| io_error("make", folder, error))
}

/// Runs an installer. Its standard output goes to standard error, because ours has the output of the tests.
fn run_installer(what: &str, command: &mut Command) -> Result<(), Error> {
    eprintln!("installing with {what} into target");
    command.stdout(Stdio::from(std::io::stderr()));
    cargo::run(command).map_err(|error| Error::message(format!("{what}: {error}")))
}

pub(crate) fn read_file(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| io_error("read", path, error))
}

pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|error| io_error("write", path, error))
}

/// Copies a file, and creates the folder that it is copied to.
pub(crate) fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    let folder = to.parent().expect("a file has a folder");
    fs::create_dir_all(folder).map_err(|error| io_error("make", folder, error))?;
    fs::copy(from, to).map(drop).map_err(|error| io_error("copy", from, error))
}

pub(crate) fn io_error(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::message(format!("could not {what} {}: {error}", path.display()))
}

//! Programs under wine, in a folder and a Windows of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::toolchain::Toolchain;
use crate::error::Error;
use crate::suites::test_run::install::{io_error, read_file, write_file};
use crate::tree;

/// The product.
pub(super) const HOST: &str = "mcp-host.exe";

/// The host and the server of the tests of processes.
pub(super) const PROBE: &str = "mcp-windows-probe.exe";

/// Runs programs under wine.
pub(super) struct Wine {
    /// The folder of the programs and of the files of the scenarios.
    folder: PathBuf,
    /// The folder of the registry and of the drives.
    prefix: PathBuf,
}

impl Wine {
    /// Copies the programs into an empty folder, with a library that wine lacks.
    pub(super) fn prepare(toolchain: &Toolchain) -> Result<Wine, Error> {
        let target = tree::root().join("target/windows");
        let (folder, prefix) = (target.join("Program Files"), target.join("wine"));
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| io_error("remove", &folder, error))?;
        }
        fs::create_dir_all(&folder).map_err(|error| io_error("make", &folder, error))?;
        fs::create_dir_all(&prefix).map_err(|error| io_error("make", &prefix, error))?;
        for program in [HOST, PROBE] {
            let built = toolchain.programs().join(program);
            fs::copy(&built, folder.join(program)).map_err(|error| io_error("copy", &built, error))?;
        }
        let source = tree::root().join("tests/windows/bcryptprimitives.c");
        toolchain.build_library(&source, &folder.join("bcryptprimitives.dll"))?;
        Ok(Wine { folder, prefix })
    }

    /// The path of a file of the scenarios on this system.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The path of a file of the scenarios as Windows sees it.
    pub(super) fn windows_path(&self, name: &str) -> String {
        windows_path(&self.path(name))
    }

    /// Writes a file of the scenarios.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        write_file(&self.path(name), text)
    }

    /// Reads a file of the scenarios.
    pub(super) fn read(&self, name: &str) -> Result<String, Error> {
        read_file(&self.path(name))
    }

    /// A command with this program.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut res = Command::new("wine");
        res.arg(self.path(program)).args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        res.env("WINEPREFIX", &self.prefix).env("WINEDEBUG", "-all").env("DISPLAY", "").env("NO_COLOR", "1");
        res
    }

    /// Runs a program to its end, with an empty standard input. Fails if it fails.
    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> Result<String, Error> {
        let output = self.command(program, arguments).output();
        let output = output.map_err(|error| Error::message(format!("could not start wine: {error}")))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        Err(Error::message(format!("{arguments:?} failed with {}\n{out}{errors}", output.status)))
    }

    /// Starts a program with a pipe at its standard input.
    pub(super) fn start(&self, program: &str, arguments: &[&str]) -> Result<Child, Error> {
        let mut command = self.command(program, arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map_err(|error| Error::message(format!("could not start wine: {error}")))
    }
}

/// The path of a file as Windows sees it: the drive Z is the root.
fn windows_path(path: &Path) -> String {
    format!("Z:{}", path.display().to_string().replace('/', "\\"))
}

/// The ids of the processes whose command line contains this text.
pub(super) fn processes_with(text: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let matches = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(text)
    };
    pids.filter(matches).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_begins_with_a_drive() {
        assert_eq!(windows_path(Path::new("/a b/c.json")), "Z:\\a b\\c.json");
    }
}

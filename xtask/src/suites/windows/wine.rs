//! Programs under wine, in a folder and a Windows of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::toolchain::Toolchain;
use crate::cargo::run as run_command;
use crate::error::Error;
use crate::suites::test_run::install::{io_error, read_file, write_file};
use crate::tree;

/// The product.
pub(super) const HOST: &str = "mcp-host.exe";

/// The host and the server of the tests of processes.
pub(super) const PROBE: &str = "mcp-windows-probe.exe";

/// The folders of servers that are found by their names.
const SERVER_FOLDERS: &str = r"C:\Program Files\nodejs;C:\tools";

/// Runs programs under wine.
pub(super) struct Wine {
    /// The folder of the programs and of the files of the scenarios.
    folder: PathBuf,
    /// The folder of the registry and of the drives.
    prefix: PathBuf,
}

impl Wine {
    /// Creates a Windows 10, with a library that wine lacks, and copies the programs into an empty folder.
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
        let wine = Wine { folder, prefix };
        // Node requires it.
        let key = ["add", r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f"];
        run_command(wine.wine("reg").args(key))?;
        let source = tree::root().join("tests/windows/bcryptprimitives.c");
        toolchain.build_library(&source, &wine.drive().join("windows/system32/bcryptprimitives.dll"))?;
        Ok(wine)
    }

    /// The drive C.
    pub(super) fn drive(&self) -> PathBuf {
        self.prefix.join("drive_c")
    }

    /// Copies the probe to a path on the drive C, where it is a server.
    pub(super) fn install_server(&self, path: &str) -> Result<(), Error> {
        let (probe, path) = (self.path(PROBE), self.drive().join(path));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| io_error("make", folder, error))?;
        }
        fs::copy(&probe, &path).map(drop).map_err(|error| io_error("copy", &path, error))
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

    /// A command with a program of wine. The folders of servers are in its `PATH`.
    fn wine(&self, program: &str) -> Command {
        let mut res = Command::new("wine");
        res.arg(program).current_dir(&self.folder).stdin(Stdio::null());
        res.env("WINEPREFIX", &self.prefix).env("WINEDEBUG", "-all").env("DISPLAY", "").env("NO_COLOR", "1");
        // A variable of a user's file.
        res.env("PRICES_KEY", "example");
        // File names are UTF-8.
        res.env("LC_ALL", "C.UTF-8").env("WINEPATH", SERVER_FOLDERS);
        res
    }

    /// A command with this program.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut res = self.wine(&self.path(program).display().to_string());
        res.args(arguments);
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

    /// Starts a program in a console, with a pipe at its standard input. `script` of util-linux makes the terminal.
    pub(super) fn start_in_console(&self, program: &str, arguments: &[&str]) -> Result<Child, Error> {
        let inner = self.command(program, arguments);
        let words = std::iter::once(inner.get_program()).chain(inner.get_args());
        let words: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        let mut command = Command::new("script");
        command.args(["-qefc", &words.join(" "), "/dev/null"]).current_dir(&self.folder);
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map_err(|error| Error::message(format!("could not start script: {error}")))
    }
}

/// The path of a file as Windows sees it: the drive Z is the root.
pub(super) fn windows_path(path: &Path) -> String {
    format!("Z:{}", path.display().to_string().replace('/', "\\"))
}

/// Fails unless the text contains the other.
pub(super) fn expect(text: &str, contained: &str) -> Result<(), Error> {
    if text.contains(contained) {
        return Ok(());
    }
    Err(Error::message(format!("{contained:?} is not in {text:?}")))
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

//! The configuration files of users in tests/windows/configs, in the home folder of such a user.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Deserialize;

use super::wine::{HOST, PROBE, Wine};
use crate::error::Error;
use crate::suites::test_run::install::{io_error, read_file, write_file};
use crate::tree;

/// The home folder.
const HOME: &str = r"C:\Users\Zoë B";

/// The home folder on the drive C.
const HOME_ON_DRIVE: &str = "users/Zoë B";

/// The programs that the files start. Each is a copy of the probe.
const PROGRAMS: [&str; 9] = [
    "Program Files/nodejs/node.exe",
    "tools/bunx.exe",
    "tools/docker.exe",
    "tools/dotnet.exe",
    "tools/py.exe",
    "tools/uvx.exe",
    "tools/wsl.exe",
    "users/Zoë B/.cargo/bin/tickets-mcp.exe",
    "users/Zoë B/tools/.venv/Scripts/python.exe",
];

/// A program that wine has already.
const POWERSHELL: &str = "windows/system32/WindowsPowerShell/v1.0/powershell.exe";

/// The files of npm beside Node: a batch file, and scripts of other shells that must not be used.
const NPX_FILES: [(&str, &str); 3] = [
    ("npx.cmd", "@echo off\r\n\"%~dp0node.exe\" --batch-file npx %*\r\n"),
    ("npx", "#!/bin/sh\nexit 1\n"),
    ("npx.ps1", "exit 1\r\n"),
];

/// What a server is started with.
#[derive(Deserialize)]
struct ExpectedStart {
    /// The command and its arguments.
    start: Vec<String>,
    /// Some of its variables.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The working directory, if the file decides it.
    directory: Option<String>,
}

/// What a server reports.
#[derive(Deserialize)]
struct ReportedStart {
    program: String,
    arguments: Vec<String>,
    directory: String,
    env: BTreeMap<String, String>,
}

/// The files, by their paths in the home folder, with their servers.
type ExpectedFiles = BTreeMap<String, BTreeMap<String, ExpectedStart>>;

/// Copies the files into the home folder, and installs their programs.
fn prepare(wine: &Wine) -> Result<ExpectedFiles, Error> {
    let configs = tree::root().join("tests/windows/configs");
    let files: ExpectedFiles = from_json(&read_file(&configs.join("expected.json"))?)?;
    for path in files.keys() {
        let target = wine.drive().join(HOME_ON_DRIVE).join(path);
        let folder = target.parent().unwrap_or(&target);
        fs::create_dir_all(folder).map_err(|error| io_error("make", folder, error))?;
        fs::copy(configs.join(path), &target).map_err(|error| io_error("copy", &target, error))?;
    }
    for program in PROGRAMS.into_iter().chain([POWERSHELL]) {
        wine.install_server(program)?;
    }
    for (name, text) in NPX_FILES {
        write_file(&wine.drive().join("Program Files/nodejs").join(name), text)?;
    }
    Ok(files)
}

/// Runs the host as the user.
fn run(wine: &Wine, arguments: &[&str]) -> Result<String, Error> {
    let host = wine.windows_path(HOST);
    wine.run(PROBE, &[&["user", HOME, &host], arguments].concat())
}

/// `import` finds each file that is not one of a project.
pub(super) fn check_import(wine: &Wine) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct ImportList {
        found: Vec<SourceFile>,
    }
    #[derive(Deserialize)]
    struct SourceFile {
        path: String,
    }
    let files = prepare(wine)?;
    let found: ImportList = from_json(&run(wine, &["import", "--format", "json"])?)?;
    let found: BTreeSet<String> = found.found.iter().map(|file| normalized(&file.path)).collect();
    for path in files.keys().filter(|path| !path.starts_with("source/")) {
        if !found.contains(&normalized(&format!("{HOME}/{path}"))) {
            return Err(Error::message(format!("{path} is not in {found:?}")));
        }
    }
    Ok(())
}

/// Starts each server, and compares what it was started with.
pub(super) fn check_starts(wine: &Wine) -> Result<(), Error> {
    let files = prepare(wine)?;
    let (mut servers, mut failures) = (0, Vec::new());
    for (path, expected) in &files {
        for (name, expected) in expected {
            servers += 1;
            if let Err(error) = check_start(wine, &format!("{HOME}/{path}"), name, expected) {
                failures.push(format!("{path}, {name}: {error}"));
            }
        }
    }
    println!(
        "{} of {servers} servers in {} files started as expected",
        servers - failures.len(),
        files.len()
    );
    if failures.is_empty() { Ok(()) } else { Err(Error::message(failures.join("\n"))) }
}

fn check_start(wine: &Wine, file: &str, name: &str, expected: &ExpectedStart) -> Result<(), Error> {
    let ExpectedStart { start, env, directory } = expected;
    let output = run(wine, &["call", file, "echo", "--server", name])?;
    let reported: ReportedStart = from_json(output.trim())?;
    // A shell starts the program behind it.
    let start = match start.as_slice() {
        [shell, option, start @ ..] if shell.starts_with("cmd") && option == "/c" => start,
        start => start,
    };
    let (command, arguments) = start.split_first().ok_or_else(|| Error::message("no command"))?;
    let program = command.rsplit(['\\', '/']).next().unwrap_or_default();
    let program = program.split('.').next().unwrap_or_default();
    compare("program", &reported.program, program)?;
    for (index, argument) in arguments.iter().enumerate() {
        compare("argument", reported.arguments.get(index).map_or("", String::as_str), argument)?;
    }
    compare("number of arguments", &reported.arguments.len().to_string(), &arguments.len().to_string())?;
    for (variable, value) in env {
        let mut reported = reported.env.iter().filter(|(name, _)| name.eq_ignore_ascii_case(variable));
        compare(variable, reported.next().map_or("", |(_, value)| value), value)?;
    }
    match directory {
        Some(directory) => compare("directory", &reported.directory, directory),
        None => Ok(()),
    }
}

fn compare(what: &str, reported: &str, expected: &str) -> Result<(), Error> {
    if normalized(reported) == normalized(expected) {
        return Ok(());
    }
    Err(Error::message(format!("{what}: {reported:?}, and not {expected:?}")))
}

/// `\` and `/` separate folders alike, and names are compared without case.
fn normalized(text: &str) -> String {
    text.replace('\\', "/").to_lowercase()
}

fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::message(format!("{error}: {text:?}")))
}

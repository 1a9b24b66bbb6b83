//! Finds the file of a command as the system does, and what prevents its start.
//!
//! Reads the disk. The system reports a missing interpreter of a script as a missing file, and a directory as a missing
//! permission.

use std::env;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::regular_file::open_regular_file;
use super::system;
use crate::error::disconnect::StartError;

/// The maximum length of the first line of a script; the system reads as much.
const MAX_FIRST_LINE_BYTES: u64 = 256;

/// Where to search for a command.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ProgramSearch<'a> {
    /// The `PATH` of the child process.
    pub path: &'a str,
    /// The working directory of the child process.
    pub directory: &'a Path,
}

impl<'a> ProgramSearch<'a> {
    /// A search with this `PATH`, from this working directory.
    pub fn new(path: &'a str, directory: &'a Path) -> ProgramSearch<'a> {
        ProgramSearch { path, directory }
    }
}

/// The result of the search for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgramSearchResult {
    /// The executable file.
    Found(PathBuf),
    /// A script whose first line names an interpreter that does not exist.
    NoInterpreter {
        /// The script.
        script: PathBuf,
        /// The path of the interpreter, or its name if it is searched on the `PATH`.
        interpreter: String,
    },
    /// The file exists but is not executable.
    NotExecutable(PathBuf),
    /// A directory.
    Directory(PathBuf),
    /// There is no such file.
    NotFound,
}

impl ProgramSearchResult {
    /// Why the command cannot be started; `None` if it was found.
    pub fn start_error(&self) -> Option<StartError> {
        let text = |path: &Path| path.display().to_string();
        Some(match self {
            ProgramSearchResult::Found(_) => return None,
            ProgramSearchResult::NoInterpreter { script, interpreter } => {
                StartError::NoInterpreter { script: text(script), interpreter: interpreter.clone() }
            }
            ProgramSearchResult::NotExecutable(path) => StartError::NotExecutable(text(path)),
            ProgramSearchResult::Directory(path) => StartError::IsDirectory(text(path)),
            ProgramSearchResult::NotFound => StartError::CommandNotFound,
        })
    }
}

/// The kind of a file at a path.
#[derive(Clone, Copy)]
enum PathKind {
    Executable,
    NotExecutable,
    Directory,
}

/// Finds the file of a command: a path if it contains a separator, otherwise the first match on the `PATH`. On Windows
/// the name may be without its extension.
pub fn find_program(command: &str, search: ProgramSearch<'_>) -> ProgramSearchResult {
    let path_kind = |path: &Path| {
        let metadata = system::program_metadata(path).ok()?;
        Some(match (metadata.is_dir(), system::is_executable(path, &metadata)) {
            (true, _) => PathKind::Directory,
            (false, false) => PathKind::NotExecutable,
            (false, true) => PathKind::Executable,
        })
    };
    let script = match find_file(command, search, &path_kind) {
        ProgramSearchResult::Found(path) => path,
        other => return other,
    };
    match named_interpreter(&first_line(&script)) {
        Some(interpreter)
            if !matches!(find_file(&interpreter, search, &path_kind), ProgramSearchResult::Found(_)) =>
        {
            ProgramSearchResult::NoInterpreter { script, interpreter }
        }
        Some(_) | None => ProgramSearchResult::Found(script),
    }
}

/// Finds the file of a command, without a look at its content.
fn find_file(
    command: &str,
    search: ProgramSearch<'_>,
    path_kind: &dyn Fn(&Path) -> Option<PathKind>,
) -> ProgramSearchResult {
    let ProgramSearch { path, directory } = search;
    let is_path = command.contains(std::path::is_separator);
    let folders: Vec<PathBuf> = if is_path {
        vec![directory.to_owned()]
    } else {
        // An empty folder means the working directory.
        env::split_paths(path).map(|folder| directory.join(folder)).collect()
    };
    let names = system::program_file_names(command);
    let candidates = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    let mut unusable = ProgramSearchResult::NotFound;
    for candidate in candidates {
        match path_kind(&candidate) {
            Some(PathKind::Executable) => return ProgramSearchResult::Found(candidate),
            Some(PathKind::NotExecutable) if unusable == ProgramSearchResult::NotFound => {
                unusable = ProgramSearchResult::NotExecutable(candidate);
            }
            // A directory on the `PATH` is skipped.
            Some(PathKind::Directory) if is_path => unusable = ProgramSearchResult::Directory(candidate),
            Some(_) | None => {}
        }
    }
    unusable
}

/// The first line of a file; empty if the file cannot be read.
fn first_line(path: &Path) -> Vec<u8> {
    let mut line = Vec::new();
    let read =
        open_regular_file(path).and_then(|file| file.take(MAX_FIRST_LINE_BYTES).read_to_end(&mut line));
    let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
    line.truncate(if read.is_ok() { end } else { 0 });
    line
}

/// The interpreter in the first line of a script: a path, or the name that `env` searches.
fn named_interpreter(first_line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(first_line.strip_prefix(b"#!")?).into_owned();
    // A carriage return is part of the name, for which it is not found.
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let interpreter = words.next()?;
    if interpreter.trim_end() != interpreter || !interpreter.ends_with("/env") {
        return Some(interpreter.to_owned());
    }
    let is_option = |word: &&str| word.starts_with('-') || word.contains('=');
    words.find(|word| !is_option(word)).map(str::to_owned)
}

/// Interpreters whose first argument is a script.
const INTERPRETERS: [&str; 8] = ["node", "python", "python3", "bun", "tsx", "ruby", "php", "perl"];

/// The file extensions of scripts.
const SCRIPT_EXTENSIONS: [&str; 10] = ["js", "mjs", "cjs", "ts", "mts", "py", "rb", "php", "pl", "sh"];

/// Finds the script that an interpreter is to run, if the file does not exist: the first argument that is no option,
/// if it has the extension of a script.
pub fn find_missing_script<'a>(
    command: &str,
    arguments: impl Iterator<Item = &'a str>,
    directory: &Path,
) -> Option<String> {
    let program = command.rsplit(std::path::is_separator).next().unwrap_or_default();
    let program = program.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(program);
    let is_version_part = |character: char| character.is_ascii_digit() || character == '.';
    if !INTERPRETERS.contains(&program) && !INTERPRETERS.contains(&program.trim_end_matches(is_version_part))
    {
        return None;
    }
    let is_script = |argument: &&str| {
        let extension = Path::new(argument).extension().and_then(|it| it.to_str()).unwrap_or_default();
        SCRIPT_EXTENSIONS.contains(&extension) && !argument.contains("://") && !argument.contains([' ', '\n'])
    };
    // With these options, there is no script.
    let mut arguments = arguments.take_while(|argument| !matches!(*argument, "-m" | "-c" | "-e" | "-p"));
    let script = arguments.find(|argument| !argument.starts_with('-'))?;
    (is_script(&script) && !directory.join(script).exists()).then(|| script.to_owned())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[track_caller]
    fn check(command: &str, path: &str, want: ProgramSearchResult) {
        let path_kind = |it: &Path| match it.to_str().unwrap() {
            "/bin/run" | "/here/run" | "/here/sub/run" | "/here/./sub/run" => Some(PathKind::Executable),
            "/opt/run" | "/opt/text" => Some(PathKind::NotExecutable),
            "/opt" | "/bin/opt" => Some(PathKind::Directory),
            _ => None,
        };
        let search = ProgramSearch { path, directory: Path::new("/here") };
        assert_eq!(find_file(command, search, &path_kind), want);
    }

    #[test]
    fn command_is_searched_as_the_system_does() {
        check("run", "/usr/bin:/bin", ProgramSearchResult::Found("/bin/run".into()));
        check("run", "/opt:/bin", ProgramSearchResult::Found("/bin/run".into()));
        check("run", "/opt:", ProgramSearchResult::Found("/here/run".into()));
        check("run", "/usr/bin", ProgramSearchResult::NotFound);
        check("text", "/bin:/opt", ProgramSearchResult::NotExecutable("/opt/text".into()));
        check("./sub/run", "/bin", ProgramSearchResult::Found("/here/./sub/run".into()));
        check("sub/run", "/bin", ProgramSearchResult::Found("/here/sub/run".into()));
        check("/bin/run", "", ProgramSearchResult::Found("/bin/run".into()));
        check("/bin/none", "/bin", ProgramSearchResult::NotFound);
        check("/opt", "/bin", ProgramSearchResult::Directory("/opt".into()));
        check("opt", "/bin", ProgramSearchResult::NotFound);
    }

    #[track_caller]
    fn check_interpreter(first_line: &str, want: Option<&str>) {
        assert_eq!(named_interpreter(first_line.as_bytes()).as_deref(), want, "{first_line}");
    }

    #[test]
    fn interpreter_of_a_script_is_in_its_first_line() {
        check_interpreter("#!/old/venv/bin/python", Some("/old/venv/bin/python"));
        check_interpreter("#! /bin/sh -e", Some("/bin/sh"));
        check_interpreter("#!/usr/bin/env node", Some("node"));
        check_interpreter("#!/usr/bin/env -S A=b deno run", Some("deno"));
        check_interpreter("#!/bin/sh\r", Some("/bin/sh\r"));
        check_interpreter("#!/usr/bin/env node\r", Some("node\r"));
        check_interpreter("echo text", None);
        check_interpreter("#!", None);
        check_interpreter("", None);
    }

    #[test]
    fn script_without_its_interpreter_cannot_be_started() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("server");
        let search = ProgramSearch { path: "/usr/bin:/bin", directory: folder.path() };
        let write = |text: &str| {
            fs::write(&script, text).unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
            find_program("./server", search)
        };
        let found = ProgramSearchResult::Found(folder.path().join("./server"));
        let missing = |interpreter: &str| ProgramSearchResult::NoInterpreter {
            script: folder.path().join("./server"),
            interpreter: interpreter.to_owned(),
        };
        assert_eq!(write("#!/bin/sh\n"), found);
        assert_eq!(write("#!/usr/bin/env sh\n"), found);
        assert_eq!(write("#!/old/venv/bin/python3\n"), missing("/old/venv/bin/python3"));
        assert_eq!(write("#!/usr/bin/env no-such-program\n"), missing("no-such-program"));
        assert_eq!(write("#!/bin/sh\r\n"), missing("/bin/sh\r"));
        assert_eq!(write("text"), found);
    }

    #[track_caller]
    fn check_script(command: &str, arguments: &[&str], want: Option<&str>) {
        let got = find_missing_script(command, arguments.iter().copied(), Path::new("/no/such/folder"));
        assert_eq!(got.as_deref(), want, "{command} {arguments:?}");
    }

    #[test]
    fn script_is_searched_in_the_working_directory() {
        check_script("node", &["build/index.js"], Some("build/index.js"));
        check_script("/usr/bin/python3.12", &["-u", "server.py", "x.py"], Some("server.py"));
        check_script("node", &["--env-file=.env", "a.mjs"], Some("a.mjs"));
        check_script("node", &["--import", "tsx", "a.ts"], None);
        check_script("python", &["-m", "server.py"], None);
        check_script("node", &["-e", "a.js"], None);
        check_script("uv", &["run", "server.py"], None);
        check_script("node", &["/"], None);
    }
}

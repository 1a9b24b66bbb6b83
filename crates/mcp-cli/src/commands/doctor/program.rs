//! Finds the file of a command as the system does, and suggests what to install if it is missing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where to search for a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search<'a> {
    /// The `PATH` of the child process.
    pub(super) path: &'a str,
    /// The working directory of the child process.
    pub(super) directory: &'a Path,
}

/// The result of the search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// The executable file.
    Found(PathBuf),
    /// The file exists but is not executable.
    NotExecutable(PathBuf),
    /// There is no such file.
    NotFound,
}

/// Finds the file of a command: a path if it contains a slash, otherwise the first match on the `PATH`. Reads the disk.
pub(super) fn find_program(command: &str, search: Search<'_>) -> Program {
    find_program_with(command, search, &|path| {
        let metadata = fs::metadata(path).ok()?;
        metadata.is_file().then(|| metadata.permissions().mode() & 0o111 != 0)
    })
}

/// `file` returns whether a path is executable, `None` if it is not a file.
fn find_program_with(command: &str, search: Search<'_>, file: &dyn Fn(&Path) -> Option<bool>) -> Program {
    let Search { path, directory } = search;
    let candidates: Vec<PathBuf> = match command.contains('/') {
        true => vec![directory.join(command)],
        // An empty entry means the working directory.
        false => path.split(':').map(|folder| directory.join(folder).join(command)).collect(),
    };
    let mut not_executable = None;
    for candidate in candidates {
        match file(&candidate) {
            Some(true) => return Program::Found(candidate),
            Some(false) => not_executable = not_executable.or(Some(candidate)),
            None => {}
        }
    }
    not_executable.map_or(Program::NotFound, Program::NotExecutable)
}

/// The help for a command that was not found.
pub(super) fn install_help(command: &str) -> String {
    let install = match command {
        "npx" | "npm" | "node" => "install Node.js, which includes it",
        "bunx" | "bun" => "install Bun, which includes it",
        "deno" => "install Deno",
        "uvx" | "uv" => "install uv, which includes it",
        "python" | "python3" | "pip" | "pipx" => "install Python 3",
        "docker" => "install Docker",
        "podman" => "install Podman",
        "cargo" => "install Rust",
        "dotnet" => "install .NET",
        "java" => "install Java",
        "go" => "install Go",
        _ if command.contains('/') => return "correct the path or build the program".to_owned(),
        _ => "install it",
    };
    format!("{install}, or write its full path; your shell may use another PATH than this program")
}

/// Whether a command downloads a package at its first start.
pub(super) fn downloads_packages(command: &str) -> bool {
    let name = command.rsplit('/').next().unwrap_or_default();
    ["npx", "bunx", "uvx", "pipx", "docker", "podman", "deno"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, path: &str, want: Program) {
        let file = |it: &Path| match it.to_str().unwrap() {
            "/bin/run" | "/here/run" | "/here/sub/run" | "/here/./sub/run" => Some(true),
            "/opt/run" | "/opt/text" => Some(false),
            _ => None,
        };
        let search = Search { path, directory: Path::new("/here") };
        assert_eq!(find_program_with(command, search, &file), want);
    }

    #[test]
    fn command_is_searched_as_the_system_does() {
        check("run", "/usr/bin:/bin", Program::Found("/bin/run".into()));
        check("run", "/opt:/bin", Program::Found("/bin/run".into()));
        check("run", "/opt:", Program::Found("/here/run".into()));
        check("run", "/usr/bin", Program::NotFound);
        check("text", "/bin:/opt", Program::NotExecutable("/opt/text".into()));
        check("./sub/run", "/bin", Program::Found("/here/./sub/run".into()));
        check("sub/run", "/bin", Program::Found("/here/sub/run".into()));
        check("/bin/run", "", Program::Found("/bin/run".into()));
        check("/bin/none", "/bin", Program::NotFound);
    }

    #[test]
    fn help_names_what_to_install() {
        assert!(install_help("npx").starts_with("install Node.js"));
        assert!(install_help("my-server").starts_with("install it, or write"));
        assert_eq!(install_help("./target/x"), "correct the path or build the program");
        assert!(
            downloads_packages("/usr/bin/npx") && downloads_packages("uvx") && !downloads_packages("node")
        );
    }
}

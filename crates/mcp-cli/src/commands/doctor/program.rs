//! Which file a command means, looked up as the system does when it starts one; and what to install where there is none.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where a command is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search<'a> {
    /// The `PATH` that the child is given.
    pub(super) path: &'a str,
    /// The folder that it is started in.
    pub(super) directory: &'a Path,
}

/// What a command means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// This file.
    At(PathBuf),
    /// This file is there, and cannot be run.
    NotExecutable(PathBuf),
    /// Nothing.
    Nowhere,
}

/// Looks a command up: one with a slash is a path, any other is the first of its name on the `PATH`. Looks at the disk.
pub(super) fn look_up(command: &str, search: Search<'_>) -> Program {
    look_up_with(command, search, &|path| {
        let metadata = fs::metadata(path).ok()?;
        metadata.is_file().then(|| metadata.permissions().mode() & 0o111 != 0)
    })
}

/// `file` says of a path whether it can be run, `None` where it is no file.
fn look_up_with(command: &str, search: Search<'_>, file: &dyn Fn(&Path) -> Option<bool>) -> Program {
    let Search { path, directory } = search;
    let candidates: Vec<PathBuf> = match command.contains('/') {
        true => vec![directory.join(command)],
        // An empty entry is the working directory.
        false => path.split(':').map(|it| directory.join(it).join(command)).collect(),
    };
    let mut there = None;
    for it in candidates {
        match file(&it) {
            Some(true) => return Program::At(it),
            Some(false) => there = there.or(Some(it)),
            None => {}
        }
    }
    there.map_or(Program::Nowhere, Program::NotExecutable)
}

/// What to do about a command that is nowhere.
pub(super) fn remedy(command: &str) -> String {
    let install = match command {
        "npx" | "npm" | "node" => "install Node.js, which brings it",
        "bunx" | "bun" => "install Bun, which brings it",
        "deno" => "install Deno",
        "uvx" | "uv" => "install uv, which brings it",
        "python" | "python3" | "pip" | "pipx" => "install Python 3",
        "docker" => "install Docker",
        "podman" => "install Podman",
        "cargo" => "install Rust",
        "dotnet" => "install .NET",
        "java" => "install Java",
        "go" => "install Go",
        _ if command.contains('/') => return "correct the path, or build the program first".to_owned(),
        _ => "install it",
    };
    format!(
        "{install}, or write its whole path; a program that your shell finds may be on a PATH that only your shell has"
    )
}

/// What the first start of a package does, for the programs that fetch one.
pub(super) fn fetches(command: &str) -> bool {
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
        assert_eq!(look_up_with(command, search, &file), want);
    }

    #[test]
    fn a_command_is_looked_up_as_the_system_does() {
        check("run", "/usr/bin:/bin", Program::At("/bin/run".into()));
        check("run", "/opt:/bin", Program::At("/bin/run".into()));
        check("run", "/opt:", Program::At("/here/run".into()));
        check("run", "/usr/bin", Program::Nowhere);
        check("text", "/bin:/opt", Program::NotExecutable("/opt/text".into()));
        check("./sub/run", "/bin", Program::At("/here/./sub/run".into()));
        check("sub/run", "/bin", Program::At("/here/sub/run".into()));
        check("/bin/run", "", Program::At("/bin/run".into()));
        check("/bin/none", "/bin", Program::Nowhere);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(remedy("npx").starts_with("install Node.js"));
        assert!(remedy("my-server").starts_with("install it, or write"));
        assert_eq!(remedy("./target/x"), "correct the path, or build the program first");
        assert!(fetches("/usr/bin/npx") && fetches("uvx") && !fetches("node"));
    }
}

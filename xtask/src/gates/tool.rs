//! Programs of crates.io that gates run, in fixed versions, so that every machine gives the same result.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{cargo, run as run_command};
use crate::error::Error;
use crate::tree;

/// A program of crates.io, whose package has the program's name.
pub(crate) struct Tool {
    /// The name.
    pub(crate) name: &'static str,
    /// The version.
    pub(crate) version: &'static str,
}

impl Tool {
    /// Installs the program into `target/tools` if it is missing or has another version, which takes minutes. Returns
    /// its path.
    pub(crate) fn install(&self) -> Result<PathBuf, Error> {
        let Tool { name, version } = self;
        let tools = tree::root().join("target/tools");
        let program = tools.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        if self.is_installed(&program) {
            return Ok(program);
        }
        eprintln!("installing {name} {version} into target/tools");
        let build = tools.join("build");
        let mut install = cargo();
        // A debug build is slower, but compiles in a third of the time.
        install.args(["install", name, "--locked", "--force", "--debug", "--version", version]);
        install.env("CARGO_PROFILE_DEV_DEBUG", "none");
        install.arg("--root").arg(&tools).arg("--target-dir").arg(&build);
        let done = run_command(&mut install);
        // The build folder is not needed again.
        let _ = std::fs::remove_dir_all(&build);
        done?;
        if self.is_installed(&program) {
            Ok(program)
        } else {
            Err(Error::message(format!("the installed {name} is not version {version}")))
        }
    }

    /// Some subcommands of Cargo know their version only behind their name.
    fn is_installed(&self, program: &Path) -> bool {
        let subcommand = self.name.trim_start_matches("cargo-");
        [["--version"].as_slice(), &[subcommand, "--version"]].into_iter().any(|arguments| {
            let output = Command::new(program).args(arguments).output();
            output.is_ok_and(|output| self.is_version_line(&String::from_utf8_lossy(&output.stdout)))
        })
    }

    /// A tool may print its subcommand behind its name.
    fn is_version_line(&self, text: &str) -> bool {
        let words = text.trim().rsplit_once(' ');
        words.is_some_and(|(name, version)| name.starts_with(self.name) && version == self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_rejected() {
        let tool = Tool { name: "cargo-deny", version: "0.20.2" };
        for text in ["cargo-deny 0.20.2\n", "cargo-deny-deny 0.20.2"] {
            assert!(tool.is_version_line(text), "{text}");
        }
        for text in ["", "cargo-deny 0.20.1", "cargo-deny 0.20.20", "deny 0.20.2"] {
            assert!(!tool.is_version_line(text), "{text}");
        }
    }
}

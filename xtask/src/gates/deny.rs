//! `cargo xtask deny`: runs cargo-deny with deny.toml.
//!
//! A fixed version is installed into `target/tools`, so that every machine gives the same result.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{cargo, run as run_command};
use crate::error::Error;
use crate::tree;

/// The version of the tool. The format of deny.toml depends on it.
const VERSION: &str = "0.20.2";

/// The checks. Advisories are left out: they come from the network and change without a commit.
const CHECKS: &[&str] = &["check", "bans", "licenses", "sources"];

/// Checks the dependency tree. The tool prints its findings.
pub(crate) fn run() -> Result<(), Error> {
    let program = installed()?;
    // cargo-deny must use the Cargo that runs this command.
    let mut command = Command::new(program);
    command.current_dir(tree::root()).args(CHECKS);
    if let Some(cargo) = std::env::var_os("CARGO") {
        command.env("CARGO", cargo);
    }
    run_command(&mut command)
}

/// Installs the tool if it is missing or has another version, which takes a minute, and returns its path.
fn installed() -> Result<PathBuf, Error> {
    let tools = tree::root().join("target/tools");
    let program = tools.join(if cfg!(windows) { "bin/cargo-deny.exe" } else { "bin/cargo-deny" });
    if has_version(&program) {
        return Ok(program);
    }
    eprintln!("installing cargo-deny {VERSION} into target/tools");
    let build = tools.join("build");
    let mut install = cargo();
    // A debug build runs three seconds instead of one, but compiles in a third of the time.
    install.args(["install", "cargo-deny", "--locked", "--force", "--debug", "--version", VERSION]);
    install.env("CARGO_PROFILE_DEV_DEBUG", "none");
    install.arg("--root").arg(&tools).arg("--target-dir").arg(&build);
    let done = run_command(&mut install);
    // The build folder is not needed again.
    let _ = std::fs::remove_dir_all(&build);
    done?;
    if has_version(&program) {
        Ok(program)
    } else {
        Err(Error::message(format!("the installed cargo-deny is not version {VERSION}")))
    }
}

fn has_version(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| is_version_line(&String::from_utf8_lossy(&output.stdout)))
}

fn is_version_line(text: &str) -> bool {
    text.trim().strip_prefix("cargo-deny ") == Some(VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_rejected() {
        assert!(is_version_line("cargo-deny 0.20.2\n"));
        for text in ["", "cargo-deny 0.20.1", "cargo-deny 0.20.20", "deny 0.20.2"] {
            assert!(!is_version_line(text), "{text}");
        }
    }

    #[test]
    fn every_package_comes_from_the_one_registry() {
        let text = std::fs::read_to_string(tree::root().join("deny.toml")).expect("the file exists");
        let policy: toml::Table = text.parse().expect("it is TOML");
        let level = |key: &str| policy["sources"][key].as_str().map(str::to_owned);
        assert_eq!(level("unknown-registry").as_deref(), Some("deny"));
        assert_eq!(level("unknown-git").as_deref(), Some("deny"));
        let registries =
            policy["sources"]["allow-registry"].as_array().map(Vec::as_slice).unwrap_or_default();
        let registries: Vec<&str> = registries.iter().filter_map(toml::Value::as_str).collect();
        assert_eq!(registries, ["https://github.com/rust-lang/crates.io-index"]);

        let lock = std::fs::read_to_string(tree::root().join("Cargo.lock")).expect("the file exists");
        let lock: toml::Table = lock.parse().expect("it is TOML");
        let packages = lock["package"].as_array().expect("it has packages");
        for package in packages {
            let source = package.get("source").and_then(toml::Value::as_str);
            let known = source.is_none_or(|source| source == format!("registry+{}", registries[0]));
            assert!(known, "{package}");
        }
    }
}

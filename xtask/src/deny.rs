//! `cargo deny`: what the tree of dependencies may hold, by deny.toml. The tool is installed into `target/tools` and
//! nowhere else, in one version, so that every machine judges alike.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{cargo, run as run_command};
use crate::failure::Failure;
use crate::tree;

/// The tool's version. It reads deny.toml, whose words change with it.
const VERSION: &str = "0.20.2";

/// What is judged. Advisories are not: they come from the network, and change while the commit stays the same.
const CHECKS: &[&str] = &["check", "bans", "licenses", "sources"];

/// Judges the tree; the tool prints what it finds.
pub(crate) fn run() -> Result<(), Failure> {
    let program = installed()?;
    // It asks Cargo for the tree, and is to ask the one that runs this.
    let mut command = Command::new(program);
    command.current_dir(tree::root()).args(CHECKS);
    if let Some(cargo) = std::env::var_os("CARGO") {
        command.env("CARGO", cargo);
    }
    run_command(&mut command)
}

/// Where the tool is, once it is there in the right version. It compiles for a minute, once.
fn installed() -> Result<PathBuf, Failure> {
    let tools = tree::root().join("target/tools");
    let program = tools.join(if cfg!(windows) { "bin/cargo-deny.exe" } else { "bin/cargo-deny" });
    if is_ours(&program) {
        return Ok(program);
    }
    eprintln!("installing cargo-deny {VERSION} into target/tools");
    let build = tools.join("build");
    let mut install = cargo();
    // It judges for three seconds instead of one, and is built in a third of the time.
    install.args(["install", "cargo-deny", "--locked", "--force", "--debug", "--version", VERSION]);
    install.env("CARGO_PROFILE_DEV_DEBUG", "none");
    install.arg("--root").arg(&tools).arg("--target-dir").arg(&build);
    let done = run_command(&mut install);
    // What it was built from is never needed again.
    let _ = std::fs::remove_dir_all(&build);
    done?;
    match is_ours(&program) {
        true => Ok(program),
        false => Err(Failure::words("cargo-deny was installed, and is not what it was to be")),
    }
}

fn is_ours(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|it| said(&String::from_utf8_lossy(&it.stdout)))
}

fn said(text: &str) -> bool {
    text.trim().strip_prefix("cargo-deny ") == Some(VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_another_judge() {
        assert!(said("cargo-deny 0.20.2\n"));
        for text in ["", "cargo-deny 0.20.1", "cargo-deny 0.20.20", "deny 0.20.2"] {
            assert!(!said(text), "{text}");
        }
    }

    /// What deny.toml is for, whoever edits it.
    #[test]
    fn every_package_comes_from_the_one_registry() {
        let text = std::fs::read_to_string(tree::root().join("deny.toml")).expect("it is there");
        let policy: toml::Table = text.parse().expect("it is TOML");
        let words = |key: &str| policy["sources"][key].as_str().map(str::to_owned);
        assert_eq!(words("unknown-registry").as_deref(), Some("deny"));
        assert_eq!(words("unknown-git").as_deref(), Some("deny"));
        let registries =
            policy["sources"]["allow-registry"].as_array().map(Vec::as_slice).unwrap_or_default();
        let registries: Vec<&str> = registries.iter().filter_map(toml::Value::as_str).collect();
        assert_eq!(registries, ["https://github.com/rust-lang/crates.io-index"]);

        let lock = std::fs::read_to_string(tree::root().join("Cargo.lock")).expect("it is there");
        let lock: toml::Table = lock.parse().expect("it is TOML");
        let packages = lock["package"].as_array().expect("it has packages");
        for package in packages {
            let source = package.get("source").and_then(toml::Value::as_str);
            let known = source.is_none_or(|it| it == format!("registry+{}", registries[0]));
            assert!(known, "{package}");
        }
    }
}

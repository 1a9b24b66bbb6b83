//! `cargo xtask deny`: runs cargo-deny with deny.toml.

use std::process::Command;

use crate::cargo::run as run_command;
use crate::error::Error;
use crate::gates::tool::Tool;
use crate::tree;

/// The format of deny.toml depends on the version.
const CARGO_DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };

/// The checks. Advisories are left out: they come from the network and change without a commit.
const CHECKS: &[&str] = &["check", "bans", "licenses", "sources"];

/// Checks the dependency tree. The tool prints its findings.
pub(crate) fn run() -> Result<(), Error> {
    // cargo-deny must use the Cargo that runs this command.
    let mut command = Command::new(CARGO_DENY.install()?);
    command.current_dir(tree::root()).args(CHECKS);
    if let Some(cargo) = std::env::var_os("CARGO") {
        command.env("CARGO", cargo);
    }
    run_command(&mut command)
}

#[cfg(test)]
mod tests {
    use crate::tree;

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

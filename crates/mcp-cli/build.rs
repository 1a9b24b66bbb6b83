//! Sets the variables that `mcp-host --version` shows: the target, and the commit if it is known.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MCP_HOST_COMMIT");
    println!("cargo::rustc-env=MCP_HOST_TARGET={}", env::var("TARGET").expect("Cargo sets it"));
    let commit = env::var("MCP_HOST_COMMIT").ok().or_else(find_commit);
    println!("cargo::rustc-env=MCP_HOST_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

/// The commit of the working tree. Only for release builds: others would be built again after each commit.
fn find_commit() -> Option<String> {
    if env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        return None;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // This file changes with each commit and each checkout.
    println!("cargo::rerun-if-changed={}", git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    git(&["rev-parse", "--short=12", "HEAD"])
}

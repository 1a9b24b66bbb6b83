//! `cargo xtask ci`: every gate that is no test.
//!
//! All of them run, whatever the first one finds: one look shows everything that is wrong.

use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs};

use crate::cargo::{cargo, run as run_command};
use crate::failure::Failure;
use crate::generated::{self, Mode};
use crate::tree::{self, Source};
use crate::{deny, floors, rules, tidy};

/// One thing that must hold.
struct Gate {
    name: String,
    run: Box<dyn Fn() -> Result<(), Failure>>,
}

impl Gate {
    fn new(name: impl Into<String>, run: impl Fn() -> Result<(), Failure> + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }

    /// A gate that is one Cargo command; the command is its name.
    fn cargo(arguments: &str) -> Self {
        let words = arguments.to_owned();
        Self::new(format!("cargo {arguments}"), move || run_command(&mut command(&words)))
    }
}

fn command(arguments: &str) -> Command {
    let mut res = cargo();
    res.args(arguments.split_whitespace());
    if arguments.starts_with("doc ") {
        res.env("RUSTDOCFLAGS", "-D warnings");
    }
    res
}

/// Runs all gates, and reports all failures at the end.
pub(crate) fn run() -> Result<(), Failure> {
    let gates = gates(&tree::sources()?);
    let mut failures = Vec::new();
    for gate in &gates {
        println!("== {}", gate.name);
        let start = Instant::now();
        let done = (gate.run)();
        let seconds = start.elapsed().as_secs_f64();
        match done {
            Ok(()) => println!("== ok in {seconds:.1} s"),
            Err(failure) => {
                println!("== FAILED in {seconds:.1} s");
                failures.push(format!("{}\n{failure}", gate.name));
            }
        }
    }
    println!();
    if failures.is_empty() {
        println!("all {} gates hold", gates.len());
        return Ok(());
    }
    Err(Failure::words(format!(
        "{} of {} gates failed\n\n{}",
        failures.len(),
        gates.len(),
        failures.join("\n\n")
    )))
}

/// Cheap gates first, so that a person sees the common mistakes soon.
fn gates(sources: &[Source]) -> Vec<Gate> {
    let mut res = vec![
        Gate::cargo("fmt --all --check"),
        Gate::new("floors", floors::run),
        Gate::new("tidy", tidy::run),
        Gate::new("schema --check", || generated::schemas(Mode::Check).and_then(|()| generated::evolution())),
        Gate::new("docs --check", || generated::pages(Mode::Check)),
        Gate::new("features", || rules::run().map(|report| println!("{report}"))),
        Gate::cargo("clippy --workspace --all-targets --all-features -- -D warnings"),
        Gate::cargo("doc --workspace --no-deps --all-features"),
    ];
    for library in libraries(sources) {
        res.push(Gate::cargo(&format!("check -p {library} --no-default-features")));
    }
    for wire in ["stdio", "http", "sse", "websocket", "rmcp", "oauth"] {
        res.push(Gate::cargo(&format!("check -p mcp-transport --no-default-features --features {wire}")));
    }
    for (library, feature) in [
        ("mcp-acp", "schema"),
        ("mcp-acp-agent", "mcp-over-acp"),
        ("mcp-acp-agent", "protocol-v2"),
        ("mcp-host", "oauth"),
        ("mcp-host", "otel"),
    ] {
        res.push(Gate::cargo(&format!("check -p {library} --no-default-features --features {feature}")));
    }
    res.push(Gate::new(format!("cargo deny {}", deny::CHECKS.join(" ")), deny::run));
    let arguments = package(is_ci());
    res.push(Gate::new(format!("cargo {arguments}"), move || pack(arguments)));
    res
}

/// Packs and builds what would be published, in a target folder that no run had before.
///
/// Cargo unpacks the packages where the folder's path says, and takes what it finds there for the same version, however
/// old it is: in a folder of the same name a crate would be built against yesterday's neighbours. Nobody runs what is built
/// there: without what a debugger needs it takes two thirds of the time.
fn pack(arguments: &str) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos());
    let folder = tree::root().join(format!("target/packed-{now}"));
    let environment = [("CARGO_PROFILE_DEV_DEBUG", "none"), ("CARGO_INCREMENTAL", "0")];
    let done = run_command(command(arguments).envs(environment).env("CARGO_TARGET_DIR", &folder));
    // It is as large as a whole build, and is never used again.
    let _ = fs::remove_dir_all(&folder);
    done
}

/// What is packed must be what is committed; a person at work may pack what is not yet.
fn package(in_ci: bool) -> &'static str {
    match in_ci {
        true => {
            "package --workspace --exclude xtask --exclude mcp-tests --exclude mcp-benches --exclude acp-agent --exclude acp-proxy"
        }
        false => {
            "package --workspace --exclude xtask --exclude mcp-tests --exclude mcp-benches --exclude acp-agent --exclude acp-proxy --allow-dirty"
        }
    }
}

fn is_ci() -> bool {
    env::var("CI").is_ok_and(|it| it == "true" || it == "1")
}

/// The crates that others can depend on.
fn libraries(sources: &[Source]) -> Vec<&str> {
    let roots = sources.iter().filter_map(|it| it.path.strip_prefix("crates/")?.strip_suffix("/src/lib.rs"));
    roots.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::planted;

    #[test]
    fn each_library_is_built_alone() {
        let sources = planted(&[
            ("crates/mcp-cli/src/main.rs", ""),
            ("crates/mcp-host/src/lib.rs", ""),
            ("crates/mcp-model/src/lib.rs", ""),
            ("tests/src/lib.rs", ""),
        ]);
        assert_eq!(libraries(&sources), ["mcp-host", "mcp-model"]);
        let names: Vec<String> = gates(&sources).into_iter().map(|it| it.name).collect();
        for name in [
            "cargo check -p mcp-host --no-default-features",
            "cargo check -p mcp-model --no-default-features",
            "cargo check -p mcp-transport --no-default-features --features stdio",
            "cargo check -p mcp-transport --no-default-features --features http",
            "cargo check -p mcp-transport --no-default-features --features sse",
            "cargo check -p mcp-transport --no-default-features --features websocket",
            "cargo deny check bans licenses sources",
        ] {
            assert!(names.iter().any(|it| it == name), "{name} is not in {names:?}");
        }
    }

    #[test]
    fn ci_packs_only_what_is_committed() {
        assert!(!package(true).contains("--allow-dirty"));
        assert!(package(false).contains("--allow-dirty"));
    }

    #[test]
    fn warnings_of_the_docs_are_errors() {
        let flags = |arguments: &str| {
            let command = command(arguments);
            let value = command.get_envs().find(|(name, _)| *name == "RUSTDOCFLAGS").and_then(|it| it.1);
            value.map(|it| it.to_string_lossy().into_owned())
        };
        assert_eq!(flags("doc --workspace").as_deref(), Some("-D warnings"));
        assert_eq!(flags("check"), None);
    }
}

//! `cargo xtask ci`: every gate that is not a test.
//!
//! All gates run, even after a failure. Gates with their own build folder run in a child process in parallel to the
//! others, because one build seldom keeps all processors busy.

use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::cargo::{cargo, exit_code, is_ci, run as run_command};
use crate::error::Error;
use crate::gates::{api, layers, packages, rules, tidy};
use crate::generated_files::{self, OutputMode};
use crate::suites::windows;
use crate::tree::{self, Source, Tree};

/// A check, with the name that is printed.
struct Gate {
    name: String,
    run: Box<dyn Fn() -> Result<(), Error>>,
}

impl Gate {
    fn new(name: impl Into<String>, run: impl Fn() -> Result<(), Error> + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }

    /// A gate that is one Cargo command.
    fn cargo(arguments: &str) -> Self {
        let owned = arguments.to_owned();
        Self::new(format!("cargo {arguments}"), move || run_command(&mut cargo_command(&owned)))
    }
}

/// A Cargo command with these arguments. Warnings of rustdoc are errors.
fn cargo_command(arguments: &str) -> Command {
    let mut res = cargo();
    res.args(arguments.split_whitespace());
    if arguments.starts_with("doc ") {
        res.env("RUSTDOCFLAGS", "-D warnings");
    }
    res
}

/// Commands of this program that run in parallel to the gates. Their output is printed when they end.
const PARALLEL: [&str; 4] = ["deny", "package", "counts", WINDOWS];

/// The check for Windows. Outside of continuous integration it needs an installed compiler for Windows.
const WINDOWS: &str = "windows";

/// The outcome of a gate.
struct GateResult {
    name: String,
    seconds: f64,
    result: Result<(), Error>,
}

impl GateResult {
    /// Runs a gate and measures its time.
    fn measure(name: &str, run: impl FnOnce() -> Result<(), Error>) -> GateResult {
        let start = Instant::now();
        let result = run();
        GateResult { name: name.to_owned(), seconds: start.elapsed().as_secs_f64(), result }
    }

    fn print(&self) {
        let GateResult { name: _, seconds, result } = self;
        println!("== {} in {seconds:.1} s", if result.is_ok() { "ok" } else { "FAILED" });
    }
}

/// Runs all gates, and reports all failures at the end.
pub(crate) fn run() -> Result<(), Error> {
    let gates = list_gates(&Tree::read()?.sources);
    let results = thread::scope(|scope| {
        let is_possible = |name: &&str| *name != WINDOWS || is_ci() || windows::is_available();
        let parallel = scope
            .spawn(move || PARALLEL.into_iter().filter(is_possible).map(run_captured).collect::<Vec<_>>());
        let mut results = Vec::new();
        for Gate { name, run } in &gates {
            println!("== {name}");
            let result = GateResult::measure(name, run);
            result.print();
            results.push(result);
        }
        for (result, output) in parallel.join().expect("a gate does not panic") {
            println!("== {}", result.name);
            print!("{output}");
            result.print();
            results.push(result);
        }
        results
    });
    let (all, mut failures) = (results.len(), Vec::new());
    for GateResult { name, seconds: _, result } in results {
        if let Err(error) = result {
            failures.push(format!("{name}\n{error}"));
        }
    }
    println!();
    if failures.is_empty() {
        println!("all {all} gates passed");
        return Ok(());
    }
    Err(Error::message(format!("{} of {all} gates failed\n\n{}", failures.len(), failures.join("\n\n"))))
}

/// Runs a command of this program, and returns its outcome and its output.
fn run_captured(name: &str) -> (GateResult, String) {
    let mut output = String::new();
    let result = GateResult::measure(&format!("xtask {name}"), || {
        let failed = |error: std::io::Error| Error::message(format!("could not run xtask {name}: {error}"));
        // One pipe for standard output and error keeps their order.
        let (mut reader, writer) = std::io::pipe().map_err(failed)?;
        let mut command = Command::new(env::current_exe().map_err(failed)?);
        command.arg(name).stdin(Stdio::null()).stdout(writer.try_clone().map_err(failed)?).stderr(writer);
        let mut child = command.spawn().map_err(failed)?;
        // The command owns the write end; reading ends only when that is closed.
        drop(command);
        let mut bytes = Vec::new();
        let read = reader.read_to_end(&mut bytes);
        output = String::from_utf8_lossy(&bytes).into_owned();
        let status = child.wait().map_err(failed)?;
        read.map_err(failed)?;
        if status.success() { Ok(()) } else { Err(Error::Exit(exit_code(status.code()))) }
    });
    (result, output)
}

/// All gates, cheap ones first.
fn list_gates(sources: &[Source]) -> Vec<Gate> {
    let mut res = vec![
        Gate::cargo("fmt --all --check"),
        Gate::new("layers", layers::run),
        Gate::new("tidy", tidy::run),
        Gate::new("packages", packages::run),
        Gate::new("schema --check", generated_files::check_schemas),
        Gate::new("docs --check", || generated_files::write_or_check_pages(OutputMode::Check)),
        Gate::new("features", || rules::run().map(|report| println!("{report}"))),
        Gate::cargo("clippy --workspace --all-targets --all-features -- -D warnings"),
        Gate::cargo("doc --workspace --no-deps --all-features"),
        Gate::new("api --check", || api::run(OutputMode::Check)),
        Gate::new("semver", api::check_semver),
    ];
    for library in library_packages(sources) {
        res.push(Gate::cargo(&format!("check -p {library} --no-default-features")));
    }
    for feature in ["stdio", "http", "sse", "websocket"] {
        res.push(Gate::cargo(&format!(
            "check -p mcp-host-transport --no-default-features --features {feature}"
        )));
    }
    for (library, feature) in [
        ("mcp-host-acp", "schema"),
        ("mcp-host-registry", "validator"),
        ("mcp-host-acp-agent", "mcp-over-acp"),
        ("mcp-host-acp-agent", "oauth"),
        ("mcp-host-acp-agent", "protocol-v2"),
        ("mcp-host-runtime", "oauth"),
        ("mcp-host-runtime", "otel"),
    ] {
        res.push(Gate::cargo(&format!("check -p {library} --no-default-features --features {feature}")));
    }
    res
}

/// The packages of the workspace that are libraries.
fn library_packages(sources: &[Source]) -> Vec<String> {
    sources
        .iter()
        .filter_map(|source| source.path.strip_prefix("crates/")?.strip_suffix("/src/lib.rs"))
        .map(tree::package_name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_is_built_on_its_own() {
        let sources = Tree::of(&[
            ("crates/mcp-cli/src/main.rs", ""),
            ("crates/mcp-host/src/lib.rs", ""),
            ("crates/mcp-model/src/lib.rs", ""),
            ("tests/src/lib.rs", ""),
        ])
        .sources;
        assert_eq!(library_packages(&sources), ["mcp-host-runtime", "mcp-host-model"]);
        let names: Vec<String> = list_gates(&sources).into_iter().map(|it| it.name).collect();
        for name in [
            "cargo check -p mcp-host-runtime --no-default-features",
            "cargo check -p mcp-host-model --no-default-features",
            "cargo check -p mcp-host-transport --no-default-features --features stdio",
            "cargo check -p mcp-host-transport --no-default-features --features http",
            "cargo check -p mcp-host-transport --no-default-features --features sse",
            "cargo check -p mcp-host-transport --no-default-features --features websocket",
        ] {
            assert!(names.iter().any(|it| it == name), "{name} is not in {names:?}");
        }
    }

    #[test]
    fn parallel_gates_are_commands() {
        for name in PARALLEL {
            assert!(crate::USAGE.contains(&format!("\n  {name} ")), "{name} is not a command");
        }
    }

    #[test]
    fn rustdoc_warnings_are_errors() {
        let flags = |arguments: &str| {
            let command = cargo_command(arguments);
            let value = command.get_envs().find(|(name, _)| *name == "RUSTDOCFLAGS").and_then(|it| it.1);
            value.map(|it| it.to_string_lossy().into_owned())
        };
        assert_eq!(flags("doc --workspace").as_deref(), Some("-D warnings"));
        assert_eq!(flags("check"), None);
    }
}

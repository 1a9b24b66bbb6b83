//! `cargo xtask ci`: every gate that is no test.
//!
//! All of them run, whatever the first one finds: one look shows everything that is wrong. Those that build into folders
//! of their own are commands of their own, too, and run beside the others: a build seldom has work for all processors.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs};

use crate::cargo::{cargo, exit_code, run as run_command};
use crate::failure::Failure;
use crate::generated::{self, Mode};
use crate::tree::{self, Source};
use crate::{floors, rules, tidy};

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

/// The gates beside the others, as commands of this program. What they print is shown when they are over.
const BESIDE: [&str; 3] = ["deny", "package", "counts"];

/// What became of a gate.
struct Ended {
    name: String,
    seconds: f64,
    done: Result<(), Failure>,
}

impl Ended {
    fn of(name: &str, run: impl FnOnce() -> Result<(), Failure>) -> Ended {
        let start = Instant::now();
        let done = run();
        Ended { name: name.to_owned(), seconds: start.elapsed().as_secs_f64(), done }
    }

    fn show(&self) {
        let Ended { name: _, seconds, done } = self;
        println!("== {} in {seconds:.1} s", if done.is_ok() { "ok" } else { "FAILED" });
    }
}

/// Runs all gates, and reports all failures at the end.
pub(crate) fn run() -> Result<(), Failure> {
    let gates = gates(&tree::sources()?);
    let ended = thread::scope(|scope| {
        let beside = scope.spawn(|| BESIDE.map(beside));
        let mut ended = Vec::new();
        for Gate { name, run } in &gates {
            println!("== {name}");
            let gate = Ended::of(name, run);
            gate.show();
            ended.push(gate);
        }
        for (gate, said) in beside.join().expect("a gate does not panic") {
            println!("== {}", gate.name);
            print!("{said}");
            gate.show();
            ended.push(gate);
        }
        ended
    });
    let (all, mut failures) = (ended.len(), Vec::new());
    for Ended { name, seconds: _, done } in ended {
        if let Err(failure) = done {
            failures.push(format!("{name}\n{failure}"));
        }
    }
    println!();
    if failures.is_empty() {
        println!("all {all} gates hold");
        return Ok(());
    }
    Err(Failure::words(format!("{} of {all} gates failed\n\n{}", failures.len(), failures.join("\n\n"))))
}

/// Runs a gate beside the others: what became of it, and what it said.
fn beside(name: &str) -> (Ended, String) {
    let mut said = String::new();
    let ended = Ended::of(&format!("xtask {name}"), || {
        let words = |error: std::io::Error| Failure::words(format!("could not run xtask {name}: {error}"));
        // One pipe for both, so that they stay in the order in which they were said.
        let (mut from, into) = std::io::pipe().map_err(words)?;
        let mut command = Command::new(env::current_exe().map_err(words)?);
        command.arg(name).stdin(Stdio::null()).stdout(into.try_clone().map_err(words)?).stderr(into);
        let mut child = command.spawn().map_err(words)?;
        // It holds the pipe's other end, which must be closed for the reading to end.
        drop(command);
        let mut bytes = Vec::new();
        let read = from.read_to_end(&mut bytes);
        said = String::from_utf8_lossy(&bytes).into_owned();
        let status = child.wait().map_err(words)?;
        read.map_err(words)?;
        if status.success() { Ok(()) } else { Err(Failure::Exit(exit_code(status.code()))) }
    });
    (ended, said)
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
    res
}

/// Packs and builds what would be published, in a target folder that no run had before.
///
/// Cargo unpacks the packages where the folder's path says, and takes what it finds there for the same version, however
/// old it is: in a folder of the same name a crate would be built against yesterday's neighbours. Nobody runs what is built
/// there: without what a debugger needs it takes two thirds of the time.
pub(crate) fn pack() -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos());
    let folder = tree::root().join(format!("target/packed-{now}"));
    let environment = [("CARGO_PROFILE_DEV_DEBUG", "none"), ("CARGO_INCREMENTAL", "0")];
    let done = run_command(command(package(is_ci())).envs(environment).env("CARGO_TARGET_DIR", &folder));
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
        ] {
            assert!(names.iter().any(|it| it == name), "{name} is not in {names:?}");
        }
    }

    #[test]
    fn what_runs_beside_is_a_command() {
        for name in BESIDE {
            assert!(crate::USAGE.contains(&format!("\n  {name} ")), "{name} is no command");
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

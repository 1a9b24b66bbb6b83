//! `cargo xtask fuzz`: runs the fuzz targets one after the other.
//!
//! It needs a nightly toolchain and cargo-fuzz. The tests of mcp-testkit check the same properties on the seeds without
//! either; a target without seeds or without such a test fails the tidy gate.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::cargo::run as run_command;
use crate::error::{Error, Violation};
use crate::tree::{self, Source, Tree};

/// The default time of each target, in seconds.
const DEFAULT_SECONDS: u64 = 10;

/// Limits of one input: bytes, seconds, and memory in MiB.
const INPUT_LIMITS: [&str; 3] = ["-max_len=4096", "-timeout=20", "-rss_limit_mb=2048"];

/// The test that checks the properties of all targets on their seeds.
const SEED_TESTS: &str = "crates/mcp-testkit/tests/fuzz_seeds.rs";

/// The arguments of `fuzz`.
#[derive(Debug, PartialEq, Eq)]
struct FuzzArgs {
    /// The time of each target.
    seconds: u64,
    targets: Vec<String>,
}

/// Runs the named targets, or all. A failure does not stop the others.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Error> {
    let known = list_targets(&Tree::read()?.sources);
    let FuzzArgs { seconds, targets } = parse_arguments(arguments, &known)?;
    let version = fuzzer_command(&["--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|it| it.success()) {
        return Err(Error::message(
            "the fuzzer is missing: `rustup toolchain install nightly`, then `cargo install cargo-fuzz --locked`",
        ));
    }
    let mut failed = Vec::new();
    for target in &targets {
        run_command(fuzzer_command(&["build", "-s", "none", "--fuzz-dir", "fuzz"]).arg(target))?;
        let start = Instant::now();
        let corpus = format!("fuzz/corpus/{target}");
        fs::create_dir_all(tree::root().join(&corpus))
            .map_err(|error| Error::message(format!("could not make {corpus}: {error}")))?;
        let output = fuzzer_command(&["run", "-s", "none", "--fuzz-dir", "fuzz", target, &corpus])
            .arg(format!("fuzz/seeds/{target}"))
            .arg("--")
            .args(INPUT_LIMITS)
            .arg(format!("-max_total_time={seconds}"))
            .stdout(Stdio::null())
            .output()
            .map_err(|error| Error::message(format!("could not start rustup: {error}")))?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("{target}: {} runs in {} s", run_count(&log), start.elapsed().as_secs());
        if !output.status.success() {
            eprintln!("{log}");
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let failed = failed.join(", ");
    Err(Error::message(format!(
        "failed: {failed}; the inputs are in fuzz/artifacts: add each as a seed with its fix"
    )))
}

/// cargo-fuzz on the nightly toolchain, at the root of the workspace.
fn fuzzer_command(arguments: &[&str]) -> Command {
    let mut res = Command::new("rustup");
    res.args(["run", "nightly", "cargo", "fuzz"]).args(arguments).current_dir(tree::root());
    res
}

/// Parses the arguments of `fuzz`.
fn parse_arguments(arguments: &[&str], known: &[String]) -> Result<FuzzArgs, Error> {
    let mut res = FuzzArgs { seconds: DEFAULT_SECONDS, targets: Vec::new() };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--seconds" => {
                let seconds = arguments.next().and_then(|it| it.parse().ok()).filter(|it| *it > 0);
                res.seconds = seconds.ok_or_else(|| Error::message("--seconds needs a number above 0"))?;
            }
            target if known.iter().any(|it| it == target) => res.targets.push(target.to_owned()),
            other => {
                let known = known.join(", ");
                return Err(Error::message(format!("`{other}` is not a target; the targets are {known}")));
            }
        }
    }
    if res.targets.is_empty() {
        res.targets = known.to_vec();
    }
    Ok(res)
}

/// The number of runs from the output of the fuzzer.
fn run_count(log: &str) -> u64 {
    let runs = log.lines().rev().find_map(|line| line.strip_prefix("Done ")?.split(' ').next()?.parse().ok());
    runs.unwrap_or(0)
}

/// The names of all targets.
fn list_targets(sources: &[Source]) -> Vec<String> {
    let names =
        sources.iter().filter_map(|it| it.path.strip_prefix("fuzz/fuzz_targets/")?.strip_suffix(".rs"));
    names.map(str::to_owned).collect()
}

/// Checks that each target has seeds and a test, and is listed.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let mut res = Vec::new();
    for target in list_targets(sources) {
        let path = format!("fuzz/fuzz_targets/{target}.rs");
        let seeds = format!("fuzz/seeds/{target}/");
        if !sources.iter().any(|it| it.path.starts_with(&seeds)) {
            res.push(Violation::new(&path, 0, format!("the target has no seed in {seeds}")));
        }
        let call = format!("check_seeds(\"{target}\", ");
        if !sources.iter().any(|source| source.path == SEED_TESTS && source.text.contains(&call)) {
            res.push(Violation::new(&path, 0, format!("{SEED_TESTS} does not run the target on its seeds")));
        }
        let listed = format!("name = \"{target}\"");
        let is_listed = |it: &&Source| it.path == "fuzz/Cargo.toml" && it.text.contains(&listed);
        if sources.iter().find(is_listed).is_none() {
            res.push(Violation::new(&path, 0, "fuzz/Cargo.toml does not list it"));
        }
    }
    res
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_seeds_and_a_test() {
        let sources = &Tree::read().unwrap().sources;
        assert_eq!(check(sources), []);
        assert!(list_targets(sources).len() > 20);
    }

    #[test]
    fn an_incomplete_target_is_found() {
        let target = ("fuzz/fuzz_targets/a.rs", "");
        let whole = [
            target,
            ("fuzz/seeds/a/one", ""),
            (SEED_TESTS, "check_seeds(\"a\", a);"),
            ("fuzz/Cargo.toml", "name = \"a\""),
        ];
        assert_eq!(check(&Tree::of(&whole).sources), []);
        for left_out in 1..whole.len() {
            let mut files = whole.to_vec();
            files.remove(left_out);
            assert_eq!(check(&Tree::of(&files).sources).len(), 1, "{left_out}");
        }
    }

    #[test]
    fn arguments_are_parsed() {
        let known = ["a".to_owned(), "b".to_owned()];
        let parse = |arguments: &[&str]| parse_arguments(arguments, &known).map_err(|it| it.to_string());
        assert_eq!(parse(&[]), Ok(FuzzArgs { seconds: DEFAULT_SECONDS, targets: known.to_vec() }));
        let want = FuzzArgs { seconds: 60, targets: vec!["b".to_owned()] };
        assert_eq!(parse(&["b", "--seconds", "60"]), Ok(want));
        assert_eq!(parse(&["c"]), Err("`c` is not a target; the targets are a, b".to_owned()));
        assert_eq!(parse(&["--seconds", "0"]), Err("--seconds needs a number above 0".to_owned()));
    }

    #[test]
    fn runs_are_read_from_the_output() {
        assert_eq!(run_count("#1 INITED\nDone 4711 runs in 11 second(s)\n"), 4711);
        assert_eq!(run_count("nothing"), 0);
    }
}

//! `cargo xtask fuzz`: each target of `fuzz/` for a while, one after the other.
//!
//! It needs a nightly toolchain and cargo-fuzz. What must hold is also fed by the crates' own tests, which need neither:
//! a target without seeds, or without such a test, fails the gate here.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::cargo::run as run_command;
use crate::error::{Error, Violation};
use crate::tree::{self, Source, Tree};

/// How long each target runs, in seconds, unless somebody says.
const SECONDS: u64 = 10;

/// What an input may cost: its bytes, the seconds for one of them, the memory in MiB.
const BOUNDS: [&str; 3] = ["-max_len=4096", "-timeout=20", "-rss_limit_mb=2048"];

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    seconds: u64,
    targets: Vec<String>,
}

/// Runs the targets that are named, or all. All of them run, whatever the first one finds.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Error> {
    let known = targets(&Tree::read()?.sources);
    let Asked { seconds, targets } = parse(arguments, &known)?;
    let version = fuzzer(&["--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|it| it.success()) {
        return Err(Error::message(
            "the fuzzer is missing: `rustup toolchain install nightly`, then `cargo install cargo-fuzz --locked`",
        ));
    }
    let mut failed = Vec::new();
    for target in &targets {
        run_command(fuzzer(&["build", "-s", "none", "--fuzz-dir", "fuzz"]).arg(target))?;
        let start = Instant::now();
        let corpus = format!("fuzz/corpus/{target}");
        fs::create_dir_all(tree::root().join(&corpus))
            .map_err(|error| Error::message(format!("could not make {corpus}: {error}")))?;
        let ended = fuzzer(&["run", "-s", "none", "--fuzz-dir", "fuzz", target, &corpus])
            .arg(format!("fuzz/seeds/{target}"))
            .arg("--")
            .args(BOUNDS)
            .arg(format!("-max_total_time={seconds}"))
            .stdout(Stdio::null())
            .output()
            .map_err(|error| Error::message(format!("could not start rustup: {error}")))?;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        println!("{target}: {} runs in {} s", runs(&said), start.elapsed().as_secs());
        if !ended.status.success() {
            eprintln!("{said}");
            failed.push(target.as_str());
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Error::message(format!(
            "does not hold: {}; the inputs are in fuzz/artifacts, and each becomes a seed with its mending",
            failed.join(", ")
        ))),
    }
}

/// cargo-fuzz, at the root of the workspace, with the toolchain that has the fuzzer.
fn fuzzer(arguments: &[&str]) -> Command {
    let mut res = Command::new("rustup");
    res.args(["run", "nightly", "cargo", "fuzz"]).args(arguments).current_dir(tree::root());
    res
}

fn parse(arguments: &[&str], known: &[String]) -> Result<Asked, Error> {
    let mut res = Asked { seconds: SECONDS, targets: Vec::new() };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--seconds" => {
                let seconds = words.next().and_then(|it| it.parse().ok()).filter(|it| *it > 0);
                res.seconds = seconds.ok_or_else(|| Error::message("--seconds wants a number above 0"))?;
            }
            target if known.iter().any(|it| it == target) => res.targets.push(target.to_owned()),
            other => {
                let known = known.join(", ");
                return Err(Error::message(format!("`{other}` is no target; there are {known}")));
            }
        }
    }
    if res.targets.is_empty() {
        res.targets = known.to_vec();
    }
    Ok(res)
}

/// How often the fuzzer ran, by its own words.
fn runs(said: &str) -> u64 {
    let done = said.lines().rev().find_map(|it| it.strip_prefix("Done ")?.split(' ').next()?.parse().ok());
    done.unwrap_or(0)
}

/// The names of all targets.
fn targets(sources: &[Source]) -> Vec<String> {
    let names =
        sources.iter().filter_map(|it| it.path.strip_prefix("fuzz/fuzz_targets/")?.strip_suffix(".rs"));
    names.map(str::to_owned).collect()
}

/// Targets that only the fuzzer would feed: `cargo test` must.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let mut res = Vec::new();
    for target in targets(sources) {
        let path = format!("fuzz/fuzz_targets/{target}.rs");
        let seeds = format!("fuzz/seeds/{target}/");
        if !sources.iter().any(|it| it.path.starts_with(&seeds)) {
            res.push(Violation::new(&path, 0, format!("it has no seed in {seeds}")));
        }
        let fed = format!("feed(\"{target}\", ");
        let is_fed = |it: &&Source| it.path.ends_with("/src/fuzzing.rs") && it.text.contains(&fed);
        if sources.iter().find(is_fed).is_none() {
            res.push(Violation::new(&path, 0, "no test of a crate feeds it: see a `fuzzing.rs`"));
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
    fn every_target_is_fed_by_a_test_and_has_seeds() {
        let sources = &Tree::read().unwrap().sources;
        assert_eq!(check(sources), []);
        assert!(targets(sources).len() > 20);
    }

    #[test]
    fn a_forgotten_target_is_told() {
        let target = ("fuzz/fuzz_targets/a.rs", "");
        let whole = [
            target,
            ("fuzz/seeds/a/one", ""),
            ("crates/x/src/fuzzing.rs", "feed(\"a\", a);"),
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
    fn seconds_and_targets_can_be_said() {
        let known = ["a".to_owned(), "b".to_owned()];
        let asked = |words: &[&str]| parse(words, &known).map_err(|it| it.to_string());
        assert_eq!(asked(&[]), Ok(Asked { seconds: SECONDS, targets: known.to_vec() }));
        let want = Asked { seconds: 60, targets: vec!["b".to_owned()] };
        assert_eq!(asked(&["b", "--seconds", "60"]), Ok(want));
        assert_eq!(asked(&["c"]), Err("`c` is no target; there are a, b".to_owned()));
        assert_eq!(asked(&["--seconds", "0"]), Err("--seconds wants a number above 0".to_owned()));
    }

    #[test]
    fn the_fuzzer_says_how_often_it_ran() {
        assert_eq!(runs("#1 INITED\nDone 4711 runs in 11 second(s)\n"), 4711);
        assert_eq!(runs("nothing"), 0);
    }
}

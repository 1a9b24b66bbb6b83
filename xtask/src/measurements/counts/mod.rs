//! `cargo xtask counts`: what the hot paths cost, in instructions and allocations, against what they cost before.
//!
//! Instructions are counted under callgrind, as the difference between two run lengths: that figure does not depend on
//! what else the machine does, so that a change of a few percent shows. What it was stands in `benches/counts.json`, under
//! the compiler and the lock file that it was counted with; others give other figures for the same code, so a key that is
//! missing is no failure. A host that has nothing to do must not wake up, which is counted beside it.

mod baseline;
mod callgrind;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

use crate::cargo::{cargo, run as run_command};
use crate::error::Error;
use crate::measurements::page;
use crate::tree;
use baseline::{Baseline, Figures};
use callgrind::Counts;

/// Where the figures of before stand.
const FILE: &str = "benches/counts.json";

/// So many servers have nothing to do, for so many seconds.
const IDLE: (&str, &str) = ("20", "5");

/// How often a second a host may wake up meanwhile: the look at it is one.
const WAKEUPS: f64 = 1.0;

/// What becomes of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They are compared with those of before.
    Compare,
    /// They are written down.
    Renew,
}

/// Counts, and compares or writes down.
pub(crate) fn run(mode: Mode) -> Result<(), Error> {
    if let Err(why) = has_valgrind() {
        if env::var("CI").is_ok_and(|it| it == "true" || it == "1") {
            return Err(Error::message(format!("instructions cannot be counted: {why}")));
        }
        println!("SKIPPED: no instructions were counted: {why}");
        return Ok(());
    }
    let folder = build()?;
    let cases = cases(&folder)?;
    let figures = count_all(&folder, &cases)?;
    let wakeups = wakeups(&folder)?;
    let path = tree::root().join(FILE);
    let text = fs::read_to_string(&path).unwrap_or_else(|_| "{}".to_owned());
    let mut baseline = Baseline::parse(&text).map_err(|it| Error::message(format!("{FILE}: {it}")))?;
    let key = key()?;
    let verdict = baseline.compare(&key, &figures);
    println!("{}", verdict.table);
    println!("with 20 servers and nothing to do: {wakeups:.1} wake-ups a second");
    let mut complaints = Vec::new();
    if wakeups > WAKEUPS {
        complaints.push(format!("a host that has nothing to do wakes up {wakeups:.1} times a second"));
    }
    match mode {
        Mode::Renew => {
            page::write(&[("counts", baseline::page(&figures, &key))])?;
            baseline.renew(&key, figures);
            let written = fs::write(&path, baseline.text());
            written.map_err(|error| Error::message(format!("could not write {FILE}: {error}")))?;
            println!("{FILE} has these figures now");
        }
        Mode::Compare if verdict.is_new => {
            println!(
                "There is nothing to compare with for {key}: `cargo xtask counts --renew` writes these figures down."
            );
        }
        Mode::Compare => complaints.extend(verdict.complaints),
    }
    if complaints.is_empty() { Ok(()) } else { Err(Error::message(complaints.join("\n"))) }
}

fn has_valgrind() -> Result<(), String> {
    match Command::new("valgrind").arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("valgrind cannot be started ({error})")),
    }
}

/// Builds what is counted; the folder that holds it.
fn build() -> Result<PathBuf, Error> {
    let words = "build -p mcp-benches --profile measured --bin counted --bin server";
    run_command(cargo().args(words.split(' ')))?;
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => tree::root().join(folder),
        None => tree::root().join("target"),
    };
    Ok(target.join("measured"))
}

/// A thing to count, with two numbers of times.
struct Case {
    name: String,
    few: u64,
    many: u64,
}

fn cases(folder: &Path) -> Result<Vec<Case>, Error> {
    let text = output(Command::new(folder.join("counted")).arg("list"))?;
    let case = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        Some(Case { name, few: words.next()?.parse().ok()?, many: words.next()?.parse().ok()? })
    };
    let all: Option<Vec<Case>> = text.lines().map(case).collect();
    all.ok_or_else(|| Error::message(format!("this is no list of cases: {text}")))
}

/// Two at a time: what a case costs does not depend on its neighbour.
fn count_all(folder: &Path, cases: &[Case]) -> Result<Figures, Error> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let counted = count(folder, case);
                    done.lock().expect("nothing panics with it").push((case.name.clone(), counted));
                }
            });
        }
    });
    let done = done.into_inner().expect("nothing panics with it");
    done.into_iter().map(|(name, counted)| Ok((name, counted?))).collect()
}

/// What doing it once costs.
fn count(folder: &Path, case: &Case) -> Result<Counts, Error> {
    let Case { name, few, many } = case;
    let run = |times: u64| {
        let out = folder.join(format!("callgrind-{}-{name}-{times}", std::process::id()));
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--quiet"]);
        command.arg(format!("--callgrind-out-file={}", out.display()));
        command.arg(folder.join("counted")).args([name.as_str(), &times.to_string()]);
        let ran = output(&mut command);
        let text = fs::read_to_string(&out).unwrap_or_default();
        let _ = fs::remove_file(&out);
        ran?;
        callgrind::read(&text)
            .ok_or_else(|| Error::message(format!("callgrind has counted nothing of {name}")))
    };
    Ok(run(*many)?.slope(run(*few)?, many - few))
}

fn wakeups(folder: &Path) -> Result<f64, Error> {
    let text = output(Command::new(folder.join("counted")).args(["idle", IDLE.0, IDLE.1]))?;
    text.trim().parse().map_err(|_| Error::message(format!("this is no number of wake-ups: {text}")))
}

/// The compiler and the lock file: what the same code's figures depend on.
fn key() -> Result<String, Error> {
    let version = output(Command::new("rustc").arg("-V").current_dir(tree::root()))?;
    let lock = fs::read_to_string(tree::root().join("Cargo.lock"))
        .map_err(|error| Error::message(format!("could not read Cargo.lock: {error}")))?;
    Ok(baseline::key(&version, &lock))
}

fn output(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output =
        command.output().map_err(|error| Error::message(format!("could not start {program}: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::message(format!("{program} failed: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

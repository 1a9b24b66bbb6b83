//! `cargo xtask counts`: compares instructions and allocations of the hot paths with a baseline.
//!
//! callgrind counts two runs of different length; the difference does not depend on the load of the machine, so changes
//! of a few percent are visible. The baseline in `benches/counts.json` has one entry for each compiler and lock file,
//! because these change the counts. A missing entry is not an error. The command also checks that an idle host does not
//! wake up.

mod baseline;
mod callgrind;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cargo::{build_measured, compiler, is_ci, output};
use crate::error::Error;
use crate::measurements::page;
use crate::tree;
use baseline::{Baseline, Figures};
use callgrind::Counts;

/// The file with the baseline.
const FILE: &str = "benches/counts.json";

/// The number of servers and the seconds of the idle measurement.
const IDLE: (&str, &str) = ("20", "5");

/// The allowed wake-ups per second of an idle host; the measurement itself causes one.
const WAKEUPS: f64 = 1.0;

/// Whether to compare the counts with the baseline or to replace it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Compare,
    Renew,
}

/// Counts, and compares or renews the baseline.
pub(crate) fn run(mode: Mode) -> Result<(), Error> {
    if let Err(reason) = has_valgrind() {
        if is_ci() {
            return Err(Error::message(format!("instructions cannot be counted: {reason}")));
        }
        println!("SKIPPED: no instructions were counted: {reason}");
        return Ok(());
    }
    let folder = build_measured(&["--bin", "counted", "--bin", "server"])?;
    let cases = cases(&folder)?;
    let figures = count_all(&folder, &cases)?;
    let wakeups = wakeups(&folder)?;
    let path = tree::root().join(FILE);
    let text = fs::read_to_string(&path).unwrap_or_else(|_| "{}".to_owned());
    let mut baseline = Baseline::parse(&text).map_err(|error| Error::message(format!("{FILE}: {error}")))?;
    let key = key()?;
    let comparison = baseline.compare(&key, &figures);
    println!("{}", comparison.table);
    println!("idle host with 20 servers: {wakeups:.1} wake-ups per second");
    let mut problems = Vec::new();
    if wakeups > WAKEUPS {
        problems.push(format!("an idle host wakes up {wakeups:.1} times per second"));
    }
    match mode {
        Mode::Renew => {
            page::write(&[("counts", baseline::page(&figures, &key))])?;
            baseline.renew(&key, figures);
            let written = fs::write(&path, baseline.text());
            written.map_err(|error| Error::message(format!("could not write {FILE}: {error}")))?;
            println!("wrote {FILE}");
        }
        Mode::Compare if comparison.is_new => {
            println!("The baseline has no entry for {key}: `cargo xtask counts --renew` adds it.");
        }
        Mode::Compare => problems.extend(comparison.problems),
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::message(problems.join("\n"))) }
}

fn has_valgrind() -> Result<(), String> {
    match Command::new("valgrind").arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("valgrind cannot be started ({error})")),
    }
}

/// A hot path, with the lengths of the short and the long run.
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
    all.ok_or_else(|| Error::message(format!("the list of cases is not readable: {text}")))
}

/// Counts all cases, two in parallel, which does not change the counts.
fn count_all(folder: &Path, cases: &[Case]) -> Result<Figures, Error> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let counted = count(folder, case);
                    done.lock().expect("no thread panics with the lock").push((case.name.clone(), counted));
                }
            });
        }
    });
    let done = done.into_inner().expect("no thread panics with the lock");
    done.into_iter().map(|(name, counted)| Ok((name, counted?))).collect()
}

/// The cost of one repetition.
fn count(folder: &Path, case: &Case) -> Result<Counts, Error> {
    let Case { name, few, many } = case;
    let run = |times: u64| {
        let out = folder.join(format!("callgrind-{}-{name}-{times}", std::process::id()));
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--quiet"]);
        command.arg(format!("--callgrind-out-file={}", out.display()));
        command.arg(folder.join("counted")).args([name.as_str(), &times.to_string()]);
        let result = output(&mut command);
        let text = fs::read_to_string(&out).unwrap_or_default();
        let _ = fs::remove_file(&out);
        result?;
        callgrind::read(&text).ok_or_else(|| Error::message(format!("callgrind counted nothing for {name}")))
    };
    Ok(run(*many)?.slope(run(*few)?, many - few))
}

fn wakeups(folder: &Path) -> Result<f64, Error> {
    let text = output(Command::new(folder.join("counted")).args(["idle", IDLE.0, IDLE.1]))?;
    text.trim().parse().map_err(|_| Error::message(format!("the number of wake-ups is not readable: {text}")))
}

/// The key of the baseline: the compiler and the lock file.
fn key() -> Result<String, Error> {
    let lock = fs::read_to_string(tree::root().join("Cargo.lock"))
        .map_err(|error| Error::message(format!("could not read Cargo.lock: {error}")))?;
    Ok(baseline::key(&compiler()?, &lock))
}

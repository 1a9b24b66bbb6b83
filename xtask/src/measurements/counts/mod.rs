//! `cargo xtask counts`: compares instructions and allocations of the hot paths with a baseline.
//!
//! callgrind counts two runs of different length; the difference does not depend on the load of the machine, so changes
//! of a few percent are visible. The baseline in `benches/counts.json` has one entry for each compiler and lock file,
//! because these change the counts. Without an entry nothing is counted, because the build is long. The command also
//! checks that an idle host does not wake up.

mod baseline;
mod callgrind;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cargo::{build_measured, compiler_version, is_ci, run_for_output};
use crate::error::Error;
use crate::measurements::page;
use crate::tree;
use baseline::{Baseline, CaseCounts};
use callgrind::Counts;

/// The file with the baseline.
const BASELINE_FILE: &str = "benches/counts.json";

/// The number of servers of the idle measurement, an argument of the program.
const IDLE_SERVERS: &str = "20";

/// The seconds of the idle measurement, an argument of the program.
const IDLE_SECONDS: &str = "5";

/// The allowed wake-ups per second of an idle host; the measurement itself causes one.
const MAX_WAKEUPS: f64 = 1.0;

/// Whether to compare the counts with the baseline or to replace it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BaselineMode {
    Compare,
    Renew,
}

/// Counts, and compares or renews the baseline.
pub(crate) fn run(mode: BaselineMode) -> Result<(), Error> {
    if let Err(reason) = check_valgrind() {
        if is_ci() {
            return Err(Error::message(format!("instructions cannot be counted: {reason}")));
        }
        println!("SKIPPED: no instructions were counted: {reason}");
        return Ok(());
    }
    let path = tree::root().join(BASELINE_FILE);
    let text = fs::read_to_string(&path).unwrap_or_else(|_| "{}".to_owned());
    let mut baseline =
        Baseline::parse(&text).map_err(|error| Error::message(format!("{BASELINE_FILE}: {error}")))?;
    let key = current_key()?;
    if mode == BaselineMode::Compare && !baseline.has_entry(&key) {
        println!("The baseline has no entry for {key}, so nothing is counted.");
        println!("`cargo xtask counts --renew` adds it.");
        return Ok(());
    }
    let folder = build_measured(&["--bin", "counted", "--bin", "server"])?;
    let cases = list_cases(&folder)?;
    let counts = count_all(&folder, &cases)?;
    let wakeups = count_wakeups(&folder)?;
    let comparison = baseline.compare(&key, &counts);
    println!("{}", comparison.table);
    println!("idle host with 20 servers: {wakeups:.1} wake-ups per second");
    let mut problems = Vec::new();
    if wakeups > MAX_WAKEUPS {
        problems.push(format!("an idle host wakes up {wakeups:.1} times per second"));
    }
    match mode {
        BaselineMode::Renew => {
            page::write_tables(&[("counts", baseline::counts_table(&counts, &key))])?;
            baseline.renew(&key, counts);
            let written = fs::write(&path, baseline.to_text());
            written.map_err(|error| Error::message(format!("could not write {BASELINE_FILE}: {error}")))?;
            println!("wrote {BASELINE_FILE}");
        }
        BaselineMode::Compare => problems.extend(comparison.problems),
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::message(problems.join("\n"))) }
}

/// The reason if valgrind cannot run.
fn check_valgrind() -> Result<(), String> {
    match Command::new("valgrind").arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("valgrind cannot be started ({error})")),
    }
}

/// The function that runs the repetitions of a case whose start is not counted.
const COUNTED_FUNCTION: &str = "*run_counted*";

/// A hot path, with the lengths of the short and the long run. If the short one is 0, only the repetitions of the long
/// one are counted.
struct Case {
    name: String,
    short_run: u64,
    long_run: u64,
}

/// The cases that the program `counted` has.
fn list_cases(folder: &Path) -> Result<Vec<Case>, Error> {
    let text = run_for_output(Command::new(folder.join("counted")).arg("list"))?;
    let case = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        Some(Case { name, short_run: words.next()?.parse().ok()?, long_run: words.next()?.parse().ok()? })
    };
    let all: Option<Vec<Case>> = text.lines().map(case).collect();
    all.ok_or_else(|| Error::message(format!("the list of cases is not readable: {text}")))
}

/// Counts all cases, two in parallel, which does not change the counts.
fn count_all(folder: &Path, cases: &[Case]) -> Result<CaseCounts, Error> {
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
    let Case { name, short_run, long_run } = case;
    let run = |times: u64| {
        let out = folder.join(format!("callgrind-{}-{name}-{times}", std::process::id()));
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--quiet"]);
        command.arg(format!("--callgrind-out-file={}", out.display()));
        if *short_run == 0 {
            command.arg(format!("--toggle-collect={COUNTED_FUNCTION}"));
        }
        command.arg(folder.join("counted")).args([name.as_str(), &times.to_string()]);
        let result = run_for_output(&mut command);
        let text = fs::read_to_string(&out).unwrap_or_default();
        let _ = fs::remove_file(&out);
        result?;
        callgrind::parse_counts(&text)
            .ok_or_else(|| Error::message(format!("callgrind counted nothing for {name}")))
    };
    let long = run(*long_run)?;
    let start = match short_run {
        // Calls are counted everywhere, so the allocations of the repetitions are not known.
        0 => Counts { instructions: 0, ..long },
        short_run => run(*short_run)?,
    };
    Ok(long.cost_per_repetition(start, long_run - short_run))
}

/// The wake-ups per second of an idle host.
fn count_wakeups(folder: &Path) -> Result<f64, Error> {
    let text =
        run_for_output(Command::new(folder.join("counted")).args(["idle", IDLE_SERVERS, IDLE_SECONDS]))?;
    text.trim().parse().map_err(|_| Error::message(format!("the number of wake-ups is not readable: {text}")))
}

/// The key of the baseline: the compiler and the lock file.
fn current_key() -> Result<String, Error> {
    let lock = fs::read_to_string(tree::root().join("Cargo.lock"))
        .map_err(|error| Error::message(format!("could not read Cargo.lock: {error}")))?;
    Ok(baseline::baseline_key(&compiler_version()?, &lock))
}

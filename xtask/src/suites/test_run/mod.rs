//! `cargo xtask test`: what the tests need, then the tests, then one line with their totals, then the official
//! conformance suite, and a line with the totals of both.

pub(crate) mod install;
mod totals;

use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::num::NonZero;
use std::process::Stdio;
use std::thread;

use crate::cargo::{cargo, exit_code};
use crate::error::Error;
use crate::suites::conformance;
use totals::Totals;

/// Runs `cargo test` over everything, benches left out; `arguments` go to it as they are.
///
/// The output is shown as it comes. The exit code is Cargo's.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Error> {
    let variables = needs()?;

    let mut command = cargo();
    if env::var_os(THREADS).is_none() {
        command.env(THREADS, threads().to_string());
    }
    command.args(["test", "--all-features", "--no-fail-fast"]);
    if !names_packages(arguments) {
        command.arg("--workspace");
    }
    command.args(arguments).envs(variables).stdout(Stdio::piped());
    let failed =
        |what: &str, error: std::io::Error| Error::message(format!("could not {what} cargo: {error}"));
    let mut child = command.spawn().map_err(|error| failed("start", error))?;

    let mut totals = Totals::default();
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = Vec::new();
    // Bytes, not text: a test may print anything.
    while lines.read_until(b'\n', &mut line).map_err(|error| failed("read from", error))? > 0 {
        totals.add_line(&String::from_utf8_lossy(&line));
        let mut out = stdout().lock();
        out.write_all(&line)
            .and_then(|()| out.flush())
            .map_err(|error| failed("show the words of", error))?;
        line.clear();
    }
    let status = child.wait().map_err(|error| failed("wait for", error))?;
    println!("{totals}");
    if !status.success() {
        return Err(Error::Exit(exit_code(status.code())));
    }
    // Who chooses among the tests does not want the suite.
    if !arguments.is_empty() {
        return Ok(());
    }
    let scenarios = conformance::where_possible()?;
    totals.passed += scenarios.passed;
    totals.failed += scenarios.failed;
    totals.skipped += scenarios.skipped;
    println!("with the conformance scenarios: {totals}");
    scenarios.ending()
}

/// How many tests of a program run at once.
const THREADS: &str = "RUST_TEST_THREADS";

/// Half of a long test is waiting for others, for servers that start and for time that is to pass.
fn threads() -> usize {
    2 * thread::available_parallelism().map_or(2, NonZero::get)
}

/// Do the arguments for Cargo, those before a second `--`, choose packages?
fn names_packages(arguments: &[&str]) -> bool {
    let for_cargo = arguments.iter().take_while(|it| **it != "--");
    let mut choices = for_cargo.filter(|it| it.starts_with("-p") || it.starts_with("--package"));
    choices.next().is_some()
}

/// Installs what is missing, and tells the tests where it is.
///
/// A machine without Node or Python may still run the other tests, unless it is the one that decides.
fn needs() -> Result<Vec<(&'static str, String)>, Error> {
    let must = env::var("CI").is_ok_and(|it| it == "true" || it == "1");
    let mut res = Vec::new();
    for (variable, what, installed) in [
        ("MCP_HOST_NODE_MODULES", "the npm packages", install::node_modules()),
        ("MCP_HOST_VENV", "the Python packages", install::venv()),
        ("MCP_HOST_VENV_MCP1", "the older Python packages", install::mcp1_venv()),
        (install::CONFORMANCE, "the conformance suite and its clients", install::conformance_suite()),
    ] {
        match installed {
            Ok(folder) => res.push((variable, folder.to_string_lossy().into_owned())),
            Err(failure) if must => {
                return Err(Error::message(format!("could not install {what}: {failure}")));
            }
            Err(failure) => {
                eprintln!("WARNING: could not install {what}: {failure}");
                eprintln!("WARNING: every test that needs them is skipped");
            }
        }
    }
    Ok(res)
}

#[cfg(test)]
mod tests;

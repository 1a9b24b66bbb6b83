//! `cargo xtask test`: installs test packages, runs all tests and the conformance suite, and prints totals.

pub(crate) mod install;
mod output_holders;
mod totals;

use std::env;
use std::io::{self, BufRead, BufReader, Write, stdout};
use std::num::NonZero;
use std::process::{ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::cargo::{build_test_programs, cargo, exit_code, is_ci};
use crate::error::Error;
use crate::suites::conformance;
use output_holders::OutputHolders;
use totals::Totals;

/// Runs `cargo test` on the workspace without benches. `arguments` are passed on.
///
/// Output is forwarded as it arrives. The exit code is Cargo's.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Error> {
    let mut variables = install_packages()?;
    if arguments.is_empty() {
        let programs = build_test_programs()?;
        variables.push((PROGRAMS_VARIABLE, programs.to_string_lossy().into_owned()));
    }

    let mut command = cargo();
    if env::var_os(THREADS_VARIABLE).is_none() {
        command.env(THREADS_VARIABLE, thread_count().to_string());
    }
    command.args(["test", "--all-features", "--no-fail-fast"]);
    if !selects_packages(arguments) {
        command.arg("--workspace");
    }
    command.args(arguments).envs(variables).stdout(Stdio::piped());
    let failed =
        |what: &str, error: std::io::Error| Error::message(format!("could not {what} cargo: {error}"));
    let mut child = command.spawn().map_err(|error| failed("start", error))?;

    let output = child.stdout.take().expect("it is piped");
    let holders = OutputHolders::of_process(child.id());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(forward_output(output)));
    let status = child.wait().map_err(|error| failed("wait for", error))?;
    let Ok(forwarded) = receiver.recv_timeout(END_OF_OUTPUT) else {
        return Err(Error::message(format!(
            "the tests have ended, but a process that one of them started still runs and holds their output{}",
            holders.end_all()
        )));
    };
    let mut totals = forwarded.map_err(|error| failed("forward the output of", error))?;
    println!("{totals}");
    if !status.success() {
        return Err(Error::Exit(exit_code(status.code())));
    }
    // The suite runs only with all tests.
    if !arguments.is_empty() {
        return Ok(());
    }
    let scenarios = conformance::run_if_installable()?;
    totals.passed += scenarios.passed;
    totals.failed += scenarios.failed;
    totals.skipped += scenarios.skipped;
    println!("with the conformance scenarios: {totals}");
    scenarios.into_result()
}

/// Forwards the output of the tests as it arrives, and adds their counts.
fn forward_output(output: ChildStdout) -> io::Result<Totals> {
    let mut res = Totals::default();
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    // A test may print bytes that are not UTF-8.
    while lines.read_until(b'\n', &mut line)? > 0 {
        res.add_line(&String::from_utf8_lossy(&line));
        let mut out = stdout().lock();
        out.write_all(&line)?;
        out.flush()?;
        line.clear();
    }
    Ok(res)
}

/// How long the output may stay open after Cargo has ended. A process that a test left behind would hold it forever.
const END_OF_OUTPUT: Duration = Duration::from_secs(20);

/// The variable with the number of parallel tests of a test binary.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// The variable with the folder of the programs that tests start. Without it a test builds the program that it needs.
const PROGRAMS_VARIABLE: &str = "MCP_TEST_PROGRAMS";

/// Twice the processors, because long tests mostly wait for servers and time.
fn thread_count() -> usize {
    2 * thread::available_parallelism().map_or(2, NonZero::get)
}

/// Whether the arguments for Cargo, before a second `--`, select packages.
fn selects_packages(arguments: &[&str]) -> bool {
    let mut for_cargo = arguments.iter().take_while(|argument| **argument != "--");
    for_cargo.any(|argument| argument.starts_with("-p") || argument.starts_with("--package"))
}

/// Installs missing packages and returns the variables with their folders.
///
/// Without Node or Python the tests that need them are skipped, except in CI.
pub(crate) fn install_packages() -> Result<Vec<(&'static str, String)>, Error> {
    let mut res = Vec::new();
    for (variable, what, installed) in [
        ("MCP_HOST_NODE_MODULES", "the npm packages", install::install_node_modules()),
        ("MCP_HOST_VENV", "the Python packages", install::install_venv()),
        ("MCP_HOST_VENV_MCP1", "the older Python packages", install::install_mcp1_venv()),
        (
            install::CONFORMANCE_VARIABLE,
            "the conformance suite and its clients",
            install::install_conformance_suite(),
        ),
    ] {
        match installed {
            Ok(folder) => res.push((variable, folder.to_string_lossy().into_owned())),
            Err(error) if is_ci() => {
                return Err(Error::message(format!("could not install {what}: {error}")));
            }
            Err(error) => {
                eprintln!("WARNING: could not install {what}: {error}");
                eprintln!("WARNING: every test that needs them is skipped");
            }
        }
    }
    Ok(res)
}

#[cfg(test)]
mod tests;

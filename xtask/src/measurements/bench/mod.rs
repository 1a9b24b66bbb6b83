//! `cargo xtask bench`: our clients beside the floor and the official SDK, in one run, and docs/performance.md.
//!
//! Times on a shared machine say little by themselves, so every round runs all rows of a case one after the other, a
//! ratio is taken within a round, and what is told is the median of the rounds. The tables of the page are written anew
//! between their markers; the words around them are a person's.

mod cases;
mod server;
mod table;

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::cargo::{cargo, run as run_command};
use crate::error::Error;
use crate::measurements::page;
use crate::tree;
use cases::{CASES, Case, GROWTH, Row, Wire};
use server::Server;
use table::Measured;

/// The folder of another harness that drives any client, where there is one.
const HARNESS: &str = "MCP_HOST_BENCH";

/// How many rounds are run where nobody says.
pub(crate) const ROUNDS: usize = 5;

/// Builds, measures, prints and writes.
pub(crate) fn run(rounds: usize) -> Result<(), Error> {
    let folder = build()?;
    let mut tables = vec![("machine", table::machine(rounds, &compiler()?))];
    tables.push(("rows", table::rows(&CASES, &measure(&folder, &CASES, rounds)?)));
    tables.push(("growth", table::rows(&GROWTH, &measure(&folder, &GROWTH, rounds)?)));
    tables.iter().for_each(|(_, text)| println!("{text}"));
    page::write(&tables)?;
    for words in [
        "bench -p mcp-transport --bench session",
        "bench -p mcp-transport --bench parts --features parts",
        "bench -p mcp-registry --bench decide",
        "bench -p mcp-config --bench read",
    ] {
        run_command(cargo().args(words.split(' ')))?;
    }
    match env::var_os(HARNESS) {
        Some(harness) => elsewhere(Path::new(&harness), &folder, rounds),
        None => Ok(()),
    }
}

fn build() -> Result<PathBuf, Error> {
    run_command(cargo().args([
        "build",
        "--profile",
        "measured",
        "-p",
        "mcp-benches",
        "--features",
        "peers",
    ]))?;
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => tree::root().join(folder),
        None => tree::root().join("target"),
    };
    Ok(target.join("measured"))
}

fn compiler() -> Result<String, Error> {
    let output = Command::new("rustc").arg("-V").current_dir(tree::root()).output();
    let output = output.map_err(|error| Error::message(format!("could not start rustc: {error}")))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What each row of each case came to, round by round.
fn measure(folder: &Path, cases: &[Case], rounds: usize) -> Result<Measured, Error> {
    let mut res: Measured = BTreeMap::new();
    for case in cases {
        let server = match case.wire {
            Wire::Stdio => None,
            Wire::Http => Some(Server::start(folder, "json", case.is_pinned)?),
            Wire::Events => Some(Server::start(folder, "sse", case.is_pinned)?),
        };
        for round in 0..rounds * case.often {
            for row in case.rows {
                let line = line(folder, case, *row, server.as_ref())?;
                let value = line.get(case.metric).and_then(Value::as_f64);
                let value = value.ok_or_else(|| {
                    Error::message(format!(
                        "{} says no {} of {}: {line}",
                        row.name(),
                        case.metric,
                        case.title
                    ))
                })?;
                println!("{} {} [{round}]: {} {value:.1}", case.title, row.name(), case.metric);
                res.entry((case.title, *row)).or_default().push(value * case.scale);
            }
        }
    }
    Ok(res)
}

/// One run of one client.
fn line(folder: &Path, case: &Case, row: Row, server: Option<&Server>) -> Result<Value, Error> {
    let mut command = server::pinned(&folder.join(row.program()), case.is_pinned);
    command.args(row.arguments()).args(case.arguments.split(' '));
    match server {
        Some(server) => command.args(["--transport", "http", "--url", server.url()]),
        None => command.arg("--").arg(folder.join("server")).args(case.server.split_whitespace()),
    };
    let output = command
        .output()
        .map_err(|error| Error::message(format!("could not start {}: {error}", row.name())))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().rev().find_map(|it| serde_json::from_str(it).ok()).ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        Error::message(format!("{} failed in {}: {}", row.name(), case.title, said.trim()))
    })
}

/// The same clients in another harness, which prints tables of its own.
fn elsewhere(harness: &Path, folder: &Path, rounds: usize) -> Result<(), Error> {
    let client = folder.join("ours").display().to_string();
    let mut command = Command::new("python3");
    command.current_dir(harness).arg("bench.py").arg("seq,conc,big,list,fleet,rss,sleep,hol,http");
    command.args(["--rounds", &rounds.to_string(), "--clients", "raw,lean-ct,lean-mt,rmcp-mt"]);
    for (name, more) in [("session", ""), ("session-ct", " --rt ct"), ("host", " --api host")] {
        command.args(["--client", &format!("{name}={client}{more}")]);
    }
    run_command(&mut command)?;
    run_command(Command::new("python3").current_dir(harness).arg("report.py"))
}

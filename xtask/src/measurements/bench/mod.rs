//! `cargo xtask bench`: compares our clients with a hand-written client (the floor) and rmcp, for docs/performance.md.
//!
//! Absolute times depend on the load of the machine. Therefore each round runs all clients of a case in
//! sequence, ratios are taken within a round, and the result is the median of the rounds.

mod cases;
mod table;

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::cargo::{build_measured, cargo, compiler_version, run as run_command};
use crate::error::Error;
use crate::measurements::page;
use crate::measurements::server::{Server, pinned_command};
use cases::{BenchTransport, Case, Cases, Client};
use table::Measurements;

/// The variable with the folder of an external benchmark harness.
const HARNESS_VARIABLE: &str = "MCP_HOST_BENCH";

/// The default number of rounds.
pub(crate) const DEFAULT_ROUNDS: usize = 5;

/// Builds and measures, prints the tables and writes them into the page.
pub(crate) fn run(rounds: usize) -> Result<(), Error> {
    let cases = Cases::read()?;
    let folder = build_measured(&["--features", "peers"])?;
    let mut tables = vec![("machine", page::describe_machine(rounds, compiler_version()?.trim()))];
    for (name, group) in [("rows", &cases.comparison), ("growth", &cases.growth)] {
        let clients = cases.clients_of(group);
        let measured = measure(&folder, group, &clients, rounds)?;
        tables.push((name, table::case_rows(group, &clients, &measured)));
    }
    tables.iter().for_each(|(_, text)| println!("{text}"));
    page::write_tables(&tables)?;
    for arguments in [
        "bench -p mcp-host-transport --bench session",
        "bench -p mcp-host-transport --bench parts",
        "bench -p mcp-host-registry --bench decide",
        "bench -p mcp-host-config --bench read",
    ] {
        run_command(cargo().args(arguments.split(' ')))?;
    }
    match env::var_os(HARNESS_VARIABLE) {
        Some(harness) => run_external(Path::new(&harness), &folder, rounds),
        None => Ok(()),
    }
}

/// The results of each case and client, one value for each round.
fn measure(folder: &Path, cases: &[Case], clients: &[&Client], rounds: usize) -> Result<Measurements, Error> {
    let mut res: Measurements = BTreeMap::new();
    for case in cases {
        let server = match case.transport {
            BenchTransport::Stdio => None,
            BenchTransport::Http => Some(Server::start(folder, "json", case.is_pinned)?),
            BenchTransport::Events => Some(Server::start(folder, "sse", case.is_pinned)?),
        };
        for round in 0..rounds * case.rounds_factor {
            for client in clients.iter().filter(|client| case.clients.contains(&client.id)) {
                let (Client { id, name, .. }, Case { title, metric, .. }) = (client, case);
                let line = run_client(folder, case, client, server.as_ref())?;
                let value = line.get(metric).and_then(Value::as_f64).ok_or_else(|| {
                    Error::message(format!("{name} does not report {metric} of {title}: {line}"))
                })?;
                println!("{title} {name} [{round}]: {metric} {value:.1}");
                res.entry((title.clone(), id.clone())).or_default().push(value / case.divisor);
            }
        }
    }
    Ok(res)
}

/// Runs one client and returns the JSON that it prints.
fn run_client(folder: &Path, case: &Case, client: &Client, server: Option<&Server>) -> Result<Value, Error> {
    let mut command = pinned_command(&folder.join(&client.program), case.is_pinned);
    command.args(&client.arguments).args(case.arguments.split(' '));
    match server {
        Some(server) => command.args(["--transport", "http", "--url", server.url()]),
        None => command.arg("--").arg(folder.join("server")).args(case.server.split_whitespace()),
    };
    let output = command
        .output()
        .map_err(|error| Error::message(format!("could not start {}: {error}", client.name)))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().rev().find_map(|line| serde_json::from_str(line).ok()).ok_or_else(|| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        Error::message(format!("{} failed in {}: {}", client.name, case.title, stderr.trim()))
    })
}

/// Runs the same clients in the external harness, which prints its own tables.
fn run_external(harness: &Path, folder: &Path, rounds: usize) -> Result<(), Error> {
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

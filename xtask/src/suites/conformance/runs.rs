//! The runs of the suite: each side at each revision, and for the gateway the kind of server behind it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::error::Error;

use super::process::{ServerProcess, build};
use super::report::Report;
use super::requirements::Side;
use super::suite::Suite;
use super::verdict;

/// The program under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// The conformance client.
    Client,
    /// The gateway in front of a server without sessions.
    GatewayToModern,
    /// The gateway in front of a server with sessions.
    GatewayToLegacy,
}

/// One run of the suite.
#[derive(Debug)]
pub(super) struct Run {
    subject: Subject,
    revision: &'static str,
    /// The number of scored scenarios. The sets are frozen, so another number means a parsing error.
    pub(super) scored: usize,
}

const fn run(subject: Subject, revision: &'static str, scored: usize) -> Run {
    Run { subject, revision, scored }
}

pub(super) const RUNS: &[Run] = &[
    run(Subject::Client, "2025-11-25", 18),
    run(Subject::Client, "2026-07-28", 32),
    run(Subject::GatewayToLegacy, "2025-11-25", 30),
    run(Subject::GatewayToModern, "2025-11-25", 30),
    run(Subject::GatewayToModern, "2026-07-28", 37),
];

impl Run {
    pub(super) fn side(&self) -> Side {
        match self.subject {
            Subject::Client => Side::Client,
            Subject::GatewayToModern | Subject::GatewayToLegacy => Side::Server,
        }
    }

    /// Runs all scenarios of the revision. The exit code of the suite is ignored; its result files are read.
    pub(super) fn execute(&self, suite: &Suite) -> Result<Report, Error> {
        let (side, revision) = (self.side(), self.revision);
        let required = suite.required(revision, side)?;
        if required.scored.len() != self.scored {
            let (found, scored, side) = (required.scored.len(), self.scored, side.name());
            return Err(Error::message(format!(
                "the suite requires {found} {side} scenarios for {revision}, not the frozen {scored}"
            )));
        }
        let (title, folder) = match self.subject {
            Subject::Client => (format!("client, {revision}"), format!("client-{revision}")),
            Subject::GatewayToModern => (
                format!("server, {revision}, in front of a server without sessions"),
                format!("server-{revision}-modern"),
            ),
            Subject::GatewayToLegacy => (
                format!("server, {revision}, in front of a server with sessions"),
                format!("server-{revision}-legacy"),
            ),
        };
        let folder = suite.fresh(&folder)?;
        let start = match self.subject {
            Subject::Client => {
                let client = build("mcp-tests", &["--all-features", "--example", "conformance_client"])?;
                let start = Instant::now();
                suite.run(side, revision, ["--command".as_ref(), client.as_os_str()], &folder)?;
                start
            }
            Subject::GatewayToModern => gateway(suite, revision, &folder, &[])?,
            Subject::GatewayToLegacy => gateway(suite, revision, &folder, &["--era", "legacy"])?,
        };
        let verdicts = |names: &[String]| {
            names.iter().map(|name| (name.clone(), verdict::read(&folder, side, name))).collect()
        };
        Ok(Report {
            title,
            scored: verdicts(&required.scored),
            unscored: verdicts(&required.unscored),
            seconds: start.elapsed().as_secs_f64(),
        })
    }
}

/// Runs the suite against the gateway in front of the test server, and returns the start time.
fn gateway(suite: &Suite, revision: &str, folder: &Path, more: &[&str]) -> Result<Instant, Error> {
    let program = build("mcp-cli", &["--bin", "mcp-host"])?;
    let start = Instant::now();
    let everything = ServerProcess::start(&mut suite.everything(), &folder.join("everything.txt"))?;
    let servers = serde_json::json!({"everything": {"type": "http", "url": everything.url()}});
    let file: PathBuf = folder.join("mcp.json");
    fs::write(&file, serde_json::json!({"mcpServers": servers}).to_string())
        .map_err(|error| Error::message(format!("{}: {error}", file.display())))?;
    let mut command = std::process::Command::new(program);
    command.arg("serve").arg(&file).args(["--http", "127.0.0.1:0", "--only", "everything", "--raw-names"]);
    command.args(more).env("XDG_STATE_HOME", folder.join("state"));
    let gateway = ServerProcess::start(&mut command, &folder.join("gateway.txt"))?;
    suite.run(Side::Server, revision, ["--url".as_ref(), gateway.url().as_ref()], folder)?;
    Ok(start)
}

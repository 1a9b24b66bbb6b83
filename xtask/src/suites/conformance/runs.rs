//! What is run: each face, at each revision, and for the gateway what it stands before.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::error::Error;

use super::judge;
use super::list::Face;
use super::report::Report;
use super::started::{Started, built};
use super::suite::Suite;

/// Who is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    /// The conformance client.
    Client,
    /// The gateway, which asks the server behind it without sessions, as that server can.
    GatewayToNewest,
    /// The gateway, which has a session with the server behind it.
    GatewayToSessions,
}

/// One run of the suite.
#[derive(Debug)]
pub(super) struct Run {
    judged: Judged,
    revision: &'static str,
    /// How many scenarios count. The sets are frozen, so that another number means that they were read wrongly.
    pub(super) scored: usize,
}

const fn run(judged: Judged, revision: &'static str, scored: usize) -> Run {
    Run { judged, revision, scored }
}

/// All of them.
pub(super) const RUNS: &[Run] = &[
    run(Judged::Client, "2025-11-25", 18),
    run(Judged::Client, "2026-07-28", 32),
    run(Judged::GatewayToSessions, "2025-11-25", 30),
    run(Judged::GatewayToNewest, "2025-11-25", 30),
    run(Judged::GatewayToNewest, "2026-07-28", 37),
];

impl Run {
    pub(super) fn face(&self) -> Face {
        match self.judged {
            Judged::Client => Face::Client,
            Judged::GatewayToNewest | Judged::GatewayToSessions => Face::Server,
        }
    }

    /// Runs all scenarios of the revision. The suite's own exit code says less than what it found.
    pub(super) fn judged(&self, suite: &Suite) -> Result<Report, Error> {
        let (face, revision) = (self.face(), self.revision);
        let required = suite.required(revision, face)?;
        if required.scored.len() != self.scored {
            let (found, scored, face) = (required.scored.len(), self.scored, face.word());
            return Err(Error::message(format!(
                "the suite requires {found} {face} scenarios for {revision}, not the {scored} that were frozen"
            )));
        }
        let (title, folder) = match self.judged {
            Judged::Client => (format!("client, {revision}"), format!("client-{revision}")),
            Judged::GatewayToNewest => (
                format!("server, {revision}, before a server without sessions"),
                format!("server-{revision}-before-newest"),
            ),
            Judged::GatewayToSessions => (
                format!("server, {revision}, before a server with sessions"),
                format!("server-{revision}-before-sessions"),
            ),
        };
        let folder = suite.fresh(&folder)?;
        let begun = match self.judged {
            Judged::Client => {
                let client = built("mcp-tests", &["--all-features", "--example", "conformance_client"])?;
                let begun = Instant::now();
                suite.run(face, revision, ["--command".as_ref(), client.as_os_str()], &folder)?;
                begun
            }
            Judged::GatewayToNewest => gateway(suite, revision, &folder, &[])?,
            Judged::GatewayToSessions => gateway(suite, revision, &folder, &["--era", "legacy"])?,
        };
        let verdicts =
            |names: &[String]| names.iter().map(|it| (it.clone(), judge::read(&folder, face, it))).collect();
        Ok(Report {
            title,
            scored: verdicts(&required.scored),
            unscored: verdicts(&required.unscored),
            seconds: begun.elapsed().as_secs_f64(),
        })
    }
}

/// Puts the gateway before the server that has everything, and runs the suite; the moment when that began.
fn gateway(suite: &Suite, revision: &str, folder: &Path, more: &[&str]) -> Result<Instant, Error> {
    let program = built("mcp-cli", &["--bin", "mcp-host"])?;
    let begun = Instant::now();
    let everything = Started::start(&mut suite.everything(), &folder.join("everything.txt"))?;
    let servers = serde_json::json!({"everything": {"type": "http", "url": everything.url()}});
    let file: PathBuf = folder.join("mcp.json");
    fs::write(&file, serde_json::json!({"mcpServers": servers}).to_string())
        .map_err(|it| Error::message(format!("{}: {it}", file.display())))?;
    let mut command = std::process::Command::new(program);
    command.arg("serve").arg(&file).args(["--http", "127.0.0.1:0", "--only", "everything", "--raw-names"]);
    command.args(more).env("XDG_STATE_HOME", folder.join("state"));
    let gateway = Started::start(&mut command, &folder.join("gateway.txt"))?;
    suite.run(Face::Server, revision, ["--url".as_ref(), gateway.url().as_ref()], folder)?;
    Ok(begun)
}

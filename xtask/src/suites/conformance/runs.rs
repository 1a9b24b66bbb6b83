//! The runs of the suite: each side at each revision, and for the gateway the kind of server behind it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::error::Error;

use super::process::ServerProcess;
use super::report::Report;
use super::requirements::Side;
use super::suite::Suite;
use super::verdict;

/// One run of the suite.
#[derive(Debug)]
pub(super) struct Run {
    /// The side under test: the conformance client or the gateway.
    pub(super) side: Side,
    revision: &'static str,
    /// Whether the server behind the gateway has sessions.
    has_sessions: bool,
    /// The number of scored scenarios. The sets are frozen, so another number means a parsing error.
    pub(super) scored: usize,
}

/// A run, for the table.
const fn new_run(side: Side, revision: &'static str, has_sessions: bool, scored: usize) -> Run {
    Run { side, revision, has_sessions, scored }
}

/// All runs.
pub(super) const RUNS: &[Run] = &[
    new_run(Side::Client, "2025-11-25", false, 18),
    new_run(Side::Client, "2026-07-28", false, 32),
    new_run(Side::Server, "2025-11-25", true, 30),
    new_run(Side::Server, "2025-11-25", false, 30),
    new_run(Side::Server, "2026-07-28", false, 37),
];

/// The scenarios that do not count, and why. All others count, also those that the suite runs without scoring
/// them: those of extensions, pending ones, and ones that are newer than their revision.
pub(super) const NOT_COUNTED: [(&str, &str); 3] = [
    (
        "tasks-status-notifications",
        "The suite skips it: its client does not read `subscriptions/listen` yet.",
    ),
    (
        "tasks-required-task-error",
        "It expects an error. For a client without tasks, the gateway waits for the task and returns its result.",
    ),
    (
        "server-sse-polling",
        "It tests a tool that closes the stream of its call. The gateway keeps the stream of its client open.",
    ),
];

impl Run {
    /// Runs all scenarios of the revision. `programs` is the folder of the programs under test. The exit code of the
    /// suite is ignored; its result files are read.
    pub(super) fn execute(&self, suite: &Suite, programs: &Path) -> Result<Report, Error> {
        let Run { side, revision, has_sessions, scored } = *self;
        let mut required = suite.required_scenarios(revision, side)?;
        if required.scored.len() != scored {
            let (found, side) = (required.scored.len(), side.name());
            return Err(Error::message(format!(
                "the suite requires {found} {side} scenarios for {revision}, not the frozen {scored}"
            )));
        }
        let (counted, unscored): (Vec<_>, Vec<_>) = required
            .unscored
            .into_iter()
            .partition(|name| NOT_COUNTED.iter().all(|(other, _)| other != name));
        required.scored.extend(counted);
        required.unscored = unscored;
        let (title, folder) = match (side, has_sessions) {
            (Side::Client, _) => ("client", "client"),
            (Side::Server, false) => ("server, in front of a server without sessions", "server-modern"),
            (Side::Server, true) => ("server, in front of a server with sessions", "server-legacy"),
        };
        let folder = suite.create_results_folder(&format!("{folder}-{revision}"))?;
        let start = match side {
            Side::Client => {
                let client = programs.join("examples/conformance_client");
                let start = Instant::now();
                suite.run(side, revision, ["--command".as_ref(), client.as_os_str()], &folder)?;
                start
            }
            Side::Server => {
                let era: &[&str] = if has_sessions { &["--era", "legacy"] } else { &[] };
                run_against_gateway(suite, &programs.join("mcp-host"), revision, &folder, era)?
            }
        };
        let verdicts = |names: &[String]| {
            names.iter().map(|name| (name.clone(), verdict::read_verdict(&folder, side, name))).collect()
        };
        Ok(Report {
            title: format!("{title}, {revision}"),
            scored: verdicts(&required.scored),
            unscored: verdicts(&required.unscored),
            seconds: start.elapsed().as_secs_f64(),
        })
    }
}

/// Runs the suite against the gateway in front of the test server, and returns the start time.
fn run_against_gateway(
    suite: &Suite,
    program: &Path,
    revision: &str,
    folder: &Path,
    arguments: &[&str],
) -> Result<Instant, Error> {
    let start = Instant::now();
    let everything = ServerProcess::start(&mut suite.everything_server(), &folder.join("everything.txt"))?;
    let servers = serde_json::json!({"everything": {"type": "http", "url": everything.url()}});
    let file: PathBuf = folder.join("mcp.json");
    fs::write(&file, serde_json::json!({"mcpServers": servers}).to_string())
        .map_err(|error| Error::message(format!("{}: {error}", file.display())))?;
    let mut command = std::process::Command::new(program);
    command.arg("serve").arg(&file).args(["--http", "127.0.0.1:0", "--only", "everything", "--raw-names"]);
    command.args(arguments).env("XDG_STATE_HOME", folder.join("state"));
    let gateway = ServerProcess::start(&mut command, &folder.join("gateway.txt"))?;
    suite.run(Side::Server, revision, ["--url".as_ref(), gateway.url().as_ref()], folder)?;
    Ok(start)
}

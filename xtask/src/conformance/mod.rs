//! `cargo xtask conformance [client|server]`: the official suite, installed and locked, judges our two faces.
//!
//! What a revision requires is the suite's to say, and all of it has to pass: there is no file of expected failures. A
//! scenario that was skipped, that brought no verdict, or whose client never came to an end is a failure here, though
//! the suite itself ends well then. What it runs without scoring is listed with its result.
//!
//! Absent on purpose: the server's face. The suite brings no server to put a gateway in front of.

mod judge;
mod list;
mod report;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::cargo::cargo;
use crate::failure::Failure;
use crate::test_run::install;
use crate::tree;
use judge::Verdict;
use list::Requirements;
use report::Report;

/// What is required, by revision, with the number of scored client scenarios: the sets are frozen, so that another
/// number means that they were read wrongly.
const CLIENT: &[(&str, usize)] = &[("2025-11-25", 18), ("2026-07-28", 32)];

/// Judges the client, and says what came of it.
pub(crate) fn client() -> Result<(), Failure> {
    let suite = Suite::installed()?;
    let client = built_client()?;
    let mut failed = 0;
    for (revision, scored) in CLIENT {
        let required = suite.required(revision)?;
        if required.client.len() != *scored {
            let found = required.client.len();
            return Err(Failure::words(format!(
                "the suite requires {found} client scenarios for {revision}, not the {scored} that were frozen"
            )));
        }
        let begun = Instant::now();
        let folder = suite.run_client(revision, &client)?;
        let verdicts = |names: &[String]| -> Vec<(String, Verdict)> {
            names.iter().map(|it| (it.clone(), judge::read(&folder, it))).collect()
        };
        let report = Report {
            title: format!("client, {revision}"),
            scored: verdicts(&required.client),
            unscored: verdicts(&required.client_unscored),
            seconds: begun.elapsed().as_secs_f64(),
        };
        println!("{report}");
        failed += report.failed();
    }
    match failed {
        0 => Ok(()),
        1 => Err(Failure::words("1 conformance scenario failed")),
        _ => Err(Failure::words(format!("{failed} conformance scenarios failed"))),
    }
}

/// The same as a part of the tests: on a machine that cannot install the suite it is left out, loudly, unless that
/// machine is the one that decides.
pub(crate) fn client_where_possible() -> Result<(), Failure> {
    let must = env::var("CI").is_ok_and(|it| it == "true" || it == "1");
    match install::conformance_suite() {
        Err(failure) if !must => {
            eprintln!("WARNING: could not install the conformance suite: {failure}");
            eprintln!("WARNING: the official conformance scenarios are skipped");
            Ok(())
        }
        Err(failure) => Err(Failure::words(format!("could not install the conformance suite: {failure}"))),
        Ok(_) => client(),
    }
}

/// The installed suite.
struct Suite {
    node: PathBuf,
    script: PathBuf,
    results: PathBuf,
}

impl Suite {
    fn installed() -> Result<Suite, Failure> {
        let modules = install::conformance_suite()?;
        let node = modules.join(if cfg!(windows) { ".bin/node.cmd" } else { ".bin/node" });
        Ok(Suite {
            node,
            script: modules.join("@modelcontextprotocol/conformance/dist/index.js"),
            results: tree::root().join("target/conformance-results"),
        })
    }

    fn command(&self) -> Command {
        let mut res = Command::new(&self.node);
        res.arg(&self.script).stdin(Stdio::null());
        res
    }

    /// What a revision requires.
    fn required(&self, revision: &str) -> Result<Requirements, Failure> {
        let output = self.command().args(["list", "--requirements", revision]).output();
        let output = output.map_err(|it| Failure::words(format!("could not start the suite: {it}")))?;
        if !output.status.success() {
            return Err(Failure::words(format!("the suite has no requirements for {revision}")));
        }
        Ok(list::read(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Runs all client scenarios of a revision; the folder with what it found. Its own exit code says less than that.
    fn run_client(&self, revision: &str, client: &Path) -> Result<PathBuf, Failure> {
        let folder = self.results.join(format!("client-{revision}"));
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .map_err(|it| Failure::words(format!("{}: {it}", folder.display())))?;
        }
        fs::create_dir_all(&folder).map_err(|it| Failure::words(format!("{}: {it}", folder.display())))?;
        let log = |name: &str| {
            let path = folder.join(name);
            fs::File::create(&path).map_err(|it| Failure::words(format!("{}: {it}", path.display())))
        };
        let mut command = self.command();
        command.args(["client", "--requirements", revision, "--command"]).arg(client).arg("-o").arg(&folder);
        command.stdout(log("suite.stdout.txt")?).stderr(log("suite.stderr.txt")?);
        command.status().map_err(|it| Failure::words(format!("could not start the suite: {it}")))?;
        Ok(folder)
    }
}

/// The client that the suite starts, built as the tests are, so that nothing is built twice.
fn built_client() -> Result<PathBuf, Failure> {
    let failed = |it: std::io::Error| Failure::words(format!("could not run cargo: {it}"));
    let arguments = ["build", "--quiet", "--package", "mcp-tests", "--all-features"];
    let mut child = cargo()
        .args(arguments)
        .args(["--example", "conformance_client", "--message-format=json"])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut found = None;
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        let message: Value = serde_json::from_str(&line.map_err(failed)?).unwrap_or_default();
        if let Some(path) = message["executable"].as_str() {
            found = Some(PathBuf::from(path));
        }
    }
    match (child.wait().map_err(failed)?.success(), found) {
        (true, Some(path)) => Ok(path),
        (true, None) => Err(Failure::words("cargo does not say where it built the conformance client")),
        (false, _) => Err(Failure::words("the conformance client does not build")),
    }
}

#[cfg(test)]
mod tests;

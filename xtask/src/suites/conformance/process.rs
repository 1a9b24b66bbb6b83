//! Server processes of a conformance run.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cargo::cargo;
use crate::error::Error;

/// The time until a server has printed its URL.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running server, killed on drop.
pub(super) struct ServerProcess {
    child: Child,
    url: String,
}

impl ServerProcess {
    /// Starts the server with its output in `log`, and waits until that contains the URL of its endpoint.
    pub(super) fn start(command: &mut Command, log: &Path) -> Result<ServerProcess, Error> {
        let failed = |error: std::io::Error| Error::message(format!("{}: {error}", log.display()));
        let file = File::create(log).map_err(failed)?;
        command.stdin(Stdio::piped()).stdout(file.try_clone().map_err(failed)?).stderr(file);
        let program = command.get_program().to_string_lossy().into_owned();
        let child =
            command.spawn().map_err(|error| Error::message(format!("could not start {program}: {error}")))?;
        let mut res = ServerProcess { child, url: String::new() };
        let start = Instant::now();
        loop {
            let output = fs::read_to_string(log).map_err(failed)?;
            if let Some(url) = find_url(&output) {
                url.clone_into(&mut res.url);
                return Ok(res);
            }
            let has_exited = res.child.try_wait().map_err(failed)?.is_some();
            if has_exited || start.elapsed() > START_TIMEOUT {
                return Err(Error::message(format!("{program} did not print its URL: {output}")));
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// The URL of its endpoint.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The URL of an endpoint in the complete lines of the output.
pub(super) fn find_url(output: &str) -> Option<&str> {
    let lines = &output[..=output.rfind('\n')?];
    lines.split_whitespace().find(|word| word.starts_with("http://") && word.ends_with("/mcp"))
}

/// Builds a program with the profile of the tests, so that nothing is built twice, and returns its path.
pub(super) fn build(package: &str, target: &[&str]) -> Result<PathBuf, Error> {
    let failed = |error: std::io::Error| Error::message(format!("could not run cargo: {error}"));
    let mut child = cargo()
        .args(["build", "--quiet", "--package", package])
        .args(target)
        .arg("--message-format=json")
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
        (true, None) => Err(Error::message(format!("cargo did not print the path of {package}"))),
        (false, _) => Err(Error::message(format!("{package} does not build"))),
    }
}

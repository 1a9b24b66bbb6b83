//! Programs of ours that the suite judges, and what is behind them: built, started, and ended with the run.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cargo::cargo;
use crate::error::Error;

/// How long a program may take until it says where it listens.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that listens, and ends with this.
pub(super) struct Started {
    child: Child,
    url: String,
}

impl Started {
    /// Starts it, and waits until it has written the URL of its endpoint to this file, where all of its output goes.
    pub(super) fn start(command: &mut Command, log: &Path) -> Result<Started, Error> {
        let failed = |it: std::io::Error| Error::message(format!("{}: {it}", log.display()));
        let file = File::create(log).map_err(failed)?;
        command.stdin(Stdio::piped()).stdout(file.try_clone().map_err(failed)?).stderr(file);
        let program = command.get_program().to_string_lossy().into_owned();
        let child =
            command.spawn().map_err(|it| Error::message(format!("could not start {program}: {it}")))?;
        let mut res = Started { child, url: String::new() };
        let begun = Instant::now();
        loop {
            let said = fs::read_to_string(log).map_err(failed)?;
            if let Some(url) = url_in(&said) {
                url.clone_into(&mut res.url);
                return Ok(res);
            }
            let ended = res.child.try_wait().map_err(failed)?.is_some();
            if ended || begun.elapsed() > PATIENCE {
                return Err(Error::message(format!("{program} does not say where it listens: {said}")));
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// Where it listens.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The URL of an endpoint in what a program has written so far, once its line is whole.
pub(super) fn url_in(said: &str) -> Option<&str> {
    let whole = &said[..=said.rfind('\n')?];
    whole.split_whitespace().find(|it| it.starts_with("http://") && it.ends_with("/mcp"))
}

/// A program of a package, built as the tests build it, so that nothing is built twice.
pub(super) fn built(package: &str, what: &[&str]) -> Result<PathBuf, Error> {
    let failed = |it: std::io::Error| Error::message(format!("could not run cargo: {it}"));
    let mut child = cargo()
        .args(["build", "--quiet", "--package", package])
        .args(what)
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
        (true, None) => Err(Error::message(format!("cargo does not say where it built {package}"))),
        (false, _) => Err(Error::message(format!("{package} does not build"))),
    }
}

//! Server processes of a conformance run.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

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

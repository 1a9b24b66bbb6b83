//! A gateway with its configuration, and the programs that load it.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::error::Error;

/// How long the servers of a gateway may take to be ready.
const MAX_START: Duration = Duration::from_secs(120);

/// A running `mcp-host serve`, killed on drop.
pub(super) struct Gateway {
    child: Child,
    address: String,
    /// The folder with the programs.
    programs: PathBuf,
    /// The folder with the configuration, removed on drop.
    folder: PathBuf,
}

/// The servers of a configuration, by name: `s0`, `s1`, …
pub(super) type Servers = Map<String, Value>;

/// The server with this number over a pipe, with this many short tools besides its own four.
pub(super) fn stdio_server(programs: &Path, tools: usize) -> Value {
    let arguments = ["--definitions", "short", "--tools", &tools.to_string()];
    json!({ "command": programs.join("server"), "args": arguments })
}

/// Names servers `s0`, `s1`, …
pub(super) fn name_servers(servers: impl IntoIterator<Item = Value>) -> Servers {
    servers.into_iter().enumerate().map(|(at, server)| (format!("s{at}"), server)).collect()
}

impl Gateway {
    /// Starts a gateway with these lines of tokens, and waits until all servers are ready.
    pub(super) fn start(programs: &Path, servers: &Servers, tokens: &[String]) -> Result<Gateway, Error> {
        let folder = std::env::temp_dir().join(format!("mcp-host-growth-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut command = Command::new(programs.join("mcp-host"));
        command.arg("serve").arg(folder.join("mcp.json")).args(["--http", "127.0.0.1:0"]);
        command.args(["--max-connections", "12000", "--max-streams", "11000", "--max-sessions", "48000"]);
        command.args(["--max-servers", "100000"]);
        if !tokens.is_empty() {
            write(&folder.join("tokens"), &tokens.join("\n"))?;
            command.arg("--token-file").arg(folder.join("tokens"));
        }
        write_configuration(&folder, servers)?;
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().map_err(failed)?;
        let programs = programs.to_owned();
        let mut gateway = Gateway { child, address: String::new(), programs, folder };
        let stderr = gateway.child.stderr.take().expect("standard error is piped");
        let mut lines = BufReader::new(stderr).lines();
        let mut log = String::new();
        while gateway.address.is_empty() {
            let Some(Ok(line)) = lines.next() else {
                return Err(Error::message(format!("the gateway did not start: {log}")));
            };
            let url = line.split_once("serving MCP at http://").map(|(_, rest)| rest);
            gateway.address = url.and_then(|url| url.split('/').next()).unwrap_or_default().to_owned();
            let _ = writeln!(log, "{line}");
        }
        // The log must not block the gateway.
        std::thread::spawn(move || lines.for_each(drop));
        gateway.wait_until_ready()?;
        Ok(gateway)
    }

    /// Replaces the servers of the configuration, which the gateway reads again by itself.
    pub(super) fn reload(&self, servers: &Servers) -> Result<(), Error> {
        write_configuration(&self.folder, servers)
    }

    /// Waits until no server is starting.
    fn wait_until_ready(&self) -> Result<(), Error> {
        let end = Instant::now() + MAX_START;
        while Instant::now() < end {
            let mut response = String::new();
            let mut stream = TcpStream::connect(&self.address).map_err(failed)?;
            let request = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).map_err(failed)?;
            stream.read_to_string(&mut response).map_err(failed)?;
            if response.starts_with("HTTP/1.1 200") {
                return Ok(());
            }
            sleep(Duration::from_millis(2));
        }
        Err(Error::message(format!("the servers were not ready within {MAX_START:?}")))
    }

    /// The memory in use, in MiB.
    pub(super) fn memory(&self) -> Result<f64, Error> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).map_err(failed)?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kibibytes.ok_or_else(|| Error::message("the memory of the gateway is not readable"))? / 1024.0)
    }

    /// Starts a load; `arguments` are those of `load`.
    pub(super) fn start_load(&self, arguments: &[&str]) -> Result<Load, Error> {
        let mut command = Command::new(self.programs.join("load"));
        command.args(arguments).args(["--address", &self.address]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        Ok(Load { child, command: arguments.join(" ") })
    }

    /// Runs a load and returns its line.
    pub(super) fn load(&self, arguments: &[&str]) -> Result<Value, Error> {
        self.start_load(arguments)?.finish()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The process may have exited already; then a load has reported an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A running load.
pub(super) struct Load {
    child: Child,
    command: String,
}

impl Load {
    /// Waits until the first line, which says that the sessions are open.
    pub(super) fn wait_for_sessions(&mut self) -> Result<(), Error> {
        let stdout = self.child.stdout.as_mut().expect("standard output is piped");
        #[expect(clippy::unbuffered_bytes, reason = "a buffer would read the last line too")]
        let first = stdout.bytes().map_while(Result::ok).find(|byte| *byte == b'\n');
        first.map(drop).ok_or_else(|| Error::message(format!("load {} failed", self.command)))
    }

    /// Waits for the end and returns the last line.
    pub(super) fn finish(self) -> Result<Value, Error> {
        let output = self.child.wait_with_output().map_err(failed)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        line.ok_or_else(|| Error::message(format!("load {} failed", self.command)))
    }
}

/// A value of a line of `load`.
pub(super) fn value(line: &Value, name: &str) -> Result<f64, Error> {
    let value = line.get(name).and_then(Value::as_f64);
    value.ok_or_else(|| Error::message(format!("the load does not report {name}: {line}")))
}

fn write_configuration(folder: &Path, servers: &Servers) -> Result<(), Error> {
    write(&folder.join("mcp.json"), &json!({ "mcpServers": servers }).to_string())
}

/// Replaces a file at once, so that the gateway reads no half of it.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let new = path.with_extension("new");
    fs::write(&new, text).map_err(failed)?;
    fs::rename(&new, path).map_err(failed)
}

fn failed(error: std::io::Error) -> Error {
    Error::message(format!("the measured gateway: {error}"))
}

//! Clients of other projects, through `serve`: their lists and calls, tasks, change notifications, and cleanup
//! after them.

mod all_transports;
mod apps;
mod capabilities;
mod killed_clients;
mod logins;
mod odd_definitions;
mod operator;
mod reloads;
mod renamed_tool;
mod rmcp_tasks;
mod skills;
mod tasks;
mod token_exchange;
mod users;

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use mcp_testkit::program::{Run, installed_folder, root};
use mcp_testkit::wait::block_until;
use serde_json::Value;

/// The installed clients.
pub(super) struct Installed {
    pub(super) modules: PathBuf,
    pub(super) venv: PathBuf,
    venv_before: PathBuf,
    /// The home folder of the clients.
    home: tempfile::TempDir,
}

impl Installed {
    pub(super) fn ready() -> Option<Installed> {
        Some(Installed {
            modules: installed_folder("MCP_HOST_CONFORMANCE")?,
            venv: installed_folder("MCP_HOST_VENV")?,
            venv_before: installed_folder("MCP_HOST_VENV_MCP1")?,
            home: tempfile::tempdir().unwrap(),
        })
    }

    fn node(&self) -> OsString {
        self.modules.join(".bin/node").into_os_string()
    }

    /// A program with these arguments and its own home folder.
    fn program(&self, program: impl Into<OsString>, arguments: &[&str]) -> Client {
        let mut command = Command::new(program.into());
        command.args(arguments).current_dir(self.home.path());
        command.env("HOME", self.home.path()).env("XDG_STATE_HOME", self.home.path());
        command.env("MCP_HOST_CONFORMANCE", &self.modules);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it is installed");
        let output = BufReader::new(child.stdout.take().unwrap());
        let errors = Some(drained(child.stderr.take().unwrap()));
        Client { child, output, errors }
    }

    /// The client on the TypeScript SDK.
    pub(super) fn typescript(&self, scenario: &Value) -> Client {
        self.script("client.mjs", &[&scenario.to_string()])
    }

    /// A program on the TypeScript SDK.
    pub(super) fn script(&self, name: &str, arguments: &[&str]) -> Client {
        let script = root().join("tests/conformance").join(name).display().to_string();
        self.program(self.node(), &[&[script.as_str()], arguments].concat())
    }
}

/// Reads a stream to its end in a thread, so that the writer does not block.
fn drained(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = from.read_to_end(&mut all);
        String::from_utf8_lossy(&all).into_owned()
    })
}

/// A running client.
pub(super) struct Client {
    child: Child,
    output: BufReader<ChildStdout>,
    errors: Option<std::thread::JoinHandle<String>>,
}

impl Client {
    /// Waits until the client has printed that it is ready.
    #[track_caller]
    pub(super) fn until_ready(&mut self) {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if line.trim_end() == "ready" {
                return;
            }
            line.clear();
        }
        let (status, errors) = (self.child.wait(), std::mem::take(&mut self.errors));
        let errors = errors.map(|it| it.join().unwrap()).unwrap_or_default();
        panic!("it ended before it was ready: {status:?}\n{errors}");
    }

    /// Whether the client has not ended.
    pub(super) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Kills the client with SIGKILL.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The JSON document that the client prints; it must exit with 0.
    #[track_caller]
    pub(super) fn json(self) -> Value {
        self.ended(&[0])
    }

    /// The JSON document that the client prints; it must exit with one of these codes.
    #[track_caller]
    pub(super) fn ended(mut self, codes: &[i32]) -> Value {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        let status = self.child.wait().unwrap();
        let errors = self.errors.take().map(|it| it.join().unwrap()).unwrap_or_default();
        assert!(status.code().is_some_and(|it| codes.contains(&it)), "{status}: {text}\n{errors}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{errors}"))
    }
}

/// A server of tests/conformance that prints its URL, killed on drop.
pub(super) struct NodeServer {
    child: Child,
    pub(super) url: String,
    /// Stays open: oidc-provider prints warnings later, and Node ends a program that cannot print.
    _output: BufReader<ChildStdout>,
}

impl NodeServer {
    fn start(installed: &Installed, script: &str, arguments: &[&str]) -> NodeServer {
        let mut command = Command::new(installed.node());
        command.arg(root().join("tests/conformance").join(script)).args(arguments);
        command.env("MCP_HOST_CONFORMANCE", &installed.modules);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it is installed");
        let (mut url, mut output) = (String::new(), BufReader::new(child.stdout.take().unwrap()));
        output.read_line(&mut url).unwrap();
        NodeServer { child, url: url.trim_end().to_owned(), _output: output }
    }
}

impl Drop for NodeServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `serve` over HTTP, killed on drop.
pub(super) struct Gateway {
    child: Child,
    address: String,
}

impl Gateway {
    pub(super) fn start(folder: &Path, file: &str, more: &[&str]) -> Gateway {
        let arguments = [&["serve", file, "--http", "127.0.0.1:0"], more].concat();
        let mut child = Run::new(folder, folder, &arguments).start();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("serving MCP at ")).expect("it serves");
        std::thread::spawn(move || lines.count());
        let address = line.rsplit_once("http://").unwrap().1.trim_end_matches("/mcp").to_owned();
        Gateway { child, address }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Waits until all servers have started. A client that connects earlier may miss capabilities of a slow one.
    pub(super) fn wait_until_ready(&self) {
        block_until(|| get(&self.address, "/readyz").starts_with("HTTP/1.1 200"));
    }

    /// A value from `/metrics`.
    pub(super) fn metric(&self, name: &str) -> u64 {
        let text = get(&self.address, "/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).parse().unwrap()
    }

    /// The servers of the gateway.
    pub(super) fn servers(&self) -> usize {
        let id = self.child.id();
        let path = format!("/proc/{id}/task");
        let threads = std::fs::read_dir(path).unwrap().flatten();
        let children = threads.filter_map(|it| std::fs::read_to_string(it.path().join("children")).ok());
        children.map(|it| it.split_whitespace().count()).sum()
    }
}

/// The response to a GET request, as text.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

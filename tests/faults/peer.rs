//! The process of the faulty server, and the endpoints of its cells.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use mcp_host_model::{Endpoint, Secret, StdioEndpoint, UrlEndpoint};
use mcp_host_transport::Authorities;
use mcp_tests::faults::{At, Script, Step, Transport};
use serde_json::Value;

/// The variable in every process that a cell starts.
pub(crate) const MARK_VARIABLE: &str = "MCP_TEST_FAULT";

/// The program with the faulty servers.
const PROGRAM: &str = env!("CARGO_BIN_EXE_faulty");

/// The memory limit of a small process, in KiB.
const MEMORY_LIMIT_KIB: u32 = 400_000;

/// The running program, killed on drop.
pub(crate) struct Faulty {
    child: Child,
    ports: Value,
}

impl Faulty {
    /// Starts the program and reads its ports.
    pub(crate) fn start() -> Faulty {
        let mut child =
            Command::new(PROGRAM).arg("listen").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Faulty { child, ports: serde_json::from_str(&line).unwrap() }
    }

    /// The certificate authorities to trust.
    pub(crate) fn authorities(&self) -> Authorities {
        Authorities::from_pem(self.ports["authority"].as_str().unwrap().as_bytes()).unwrap()
    }

    /// The endpoint of the server `key` with this script.
    pub(crate) fn endpoint(&self, transport: Transport, key: &str, script: &str) -> Endpoint {
        let parsed = Script::parse(script).unwrap();
        if transport == Transport::Stdio {
            return Endpoint::Stdio(stdio_endpoint(key, script, &parsed));
        }
        let (port, is_secure) = self.port(&parsed);
        let (scheme, path_end) = match transport {
            Transport::WebSocket => ("ws", "ws"),
            Transport::Sse => ("http", "sse"),
            Transport::Events => ("http", "mcp"),
            Transport::Document => ("http", "json"),
            Transport::Stdio => unreachable!("it has returned"),
        };
        let secure = if is_secure { "s" } else { "" };
        let url = format!("{scheme}{secure}://127.0.0.1:{port}/{key}/{script}/{path_end}");
        let endpoint = UrlEndpoint::new(url.parse().unwrap());
        match transport {
            Transport::WebSocket => Endpoint::WebSocket(endpoint),
            Transport::Sse => Endpoint::Sse(endpoint),
            Transport::Events | Transport::Document | Transport::Stdio => Endpoint::Http(endpoint),
        }
    }

    /// The port for this script, and whether it uses TLS.
    fn port(&self, script: &Script) -> (u64, bool) {
        let port = |name: &str| self.ports[name].as_u64().unwrap();
        if script.at != At::Start {
            return (port("http"), false);
        }
        match script.steps[0] {
            // A port without a listener.
            Step::NoServer => (1, false),
            Step::Hush => (port("hush"), false),
            Step::Banner => (port("banner"), false),
            Step::Flood => (port("flood"), false),
            Step::Reset => (port("reset"), false),
            Step::End => (port("end"), false),
            Step::SelfSigned => (port("self-signed"), true),
            Step::WrongName => (port("wrong-name"), true),
            Step::Expired => (port("expired"), true),
            Step::Well => (port("http"), false),
            other => panic!("no port does {other:?}"),
        }
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The endpoint of a process with this script.
fn stdio_endpoint(key: &str, script: &str, parsed: &Script) -> StdioEndpoint {
    if parsed.does(Step::NoServer) {
        return StdioEndpoint::new("no-such-program-anywhere");
    }
    // A shell sets the memory limit, which would need `unsafe` here.
    let shell_prefix = match () {
        () if parsed.does(Step::Stubborn) => "trap '' TERM; ".to_owned(),
        () if parsed.does(Step::Allocate) => format!("ulimit -v {MEMORY_LIMIT_KIB}; "),
        () => String::new(),
    };
    let mut res = StdioEndpoint::new("sh");
    res.args = vec![
        Secret::new("-c"),
        Secret::new(format!("{shell_prefix}exec \"$0\" stdio \"$1\"")),
        Secret::new(PROGRAM),
        Secret::new(script),
    ];
    res.env.push((MARK_VARIABLE.to_owned(), Secret::new(mark(key))));
    res
}

/// The marker of a cell's processes.
pub(crate) fn mark(key: &str) -> String {
    format!("{}-{key}-", std::process::id())
}

/// The processes whose marker has this prefix, independent of their parents.
pub(crate) fn marked_processes(mark: &str) -> Vec<u32> {
    let prefix = format!("{MARK_VARIABLE}={mark}");
    let is_marked = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|it| *it == 0).any(|variable| variable.starts_with(prefix.as_bytes()))
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|it| it.file_name().to_str()?.parse().ok()).filter(is_marked).collect()
}

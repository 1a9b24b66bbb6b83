//! The process of the faulty server, and the endpoints of its cells.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use mcp_host_model::{Endpoint, Secret, StdioEndpoint, UrlEndpoint};
use mcp_host_transport::Authorities;
use mcp_tests::faults::{At, Script, Step, Transport};
use serde_json::Value;

/// The variable in every process that a cell starts.
pub(crate) const MARK: &str = "MCP_TEST_FAULT";

const PROGRAM: &str = env!("CARGO_BIN_EXE_faulty");

/// The memory limit of a small process, in KiB.
const LITTLE_MEMORY: u32 = 400_000;

/// The running program, killed on drop.
pub(crate) struct Faulty {
    child: Child,
    ports: Value,
}

impl Faulty {
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
            return Endpoint::Stdio(process(key, script, &parsed));
        }
        let (port, secure) = self.port(&parsed);
        let (scheme, leaf) = match transport {
            Transport::WebSocket => ("ws", "ws"),
            Transport::Sse => ("http", "sse"),
            Transport::Events => ("http", "mcp"),
            Transport::Document => ("http", "json"),
            Transport::Stdio => unreachable!("it has returned"),
        };
        let secure = if secure { "s" } else { "" };
        let url = format!("{scheme}{secure}://127.0.0.1:{port}/{key}/{script}/{leaf}");
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

/// A process with this script.
fn process(key: &str, script: &str, parsed: &Script) -> StdioEndpoint {
    if parsed.does(Step::NoServer) {
        return StdioEndpoint::new("no-such-program-anywhere");
    }
    // A shell sets the memory limit, which would need `unsafe` here.
    let before = match () {
        () if parsed.does(Step::Stubborn) => "trap '' TERM; ".to_owned(),
        () if parsed.does(Step::Allocate) => format!("ulimit -v {LITTLE_MEMORY}; "),
        () => String::new(),
    };
    let mut res = StdioEndpoint::new("sh");
    res.args = vec![
        Secret::new("-c"),
        Secret::new(format!("{before}exec \"$0\" stdio \"$1\"")),
        Secret::new(PROGRAM),
        Secret::new(script),
    ];
    res.env.push((MARK.to_owned(), Secret::new(mark(key))));
    res
}

/// The marker of a cell's processes.
pub(crate) fn mark(key: &str) -> String {
    format!("{}-{key}-", std::process::id())
}

/// The processes whose marker has this prefix, independent of their parents.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let mark = format!("{MARK}={mark}");
    let has = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|it| *it == 0).any(|variable| variable.starts_with(mark.as_bytes()))
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|it| it.file_name().to_str()?.parse().ok()).filter(has).collect()
}

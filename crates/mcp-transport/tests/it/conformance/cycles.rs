//! Repeated connecting, calling and closing: no process, descriptor or task remains, and memory does not grow.
//!
//! Resources are counted per process. Therefore the client runs in its own process: this test program, started
//! again with [`PEER`] in its environment. The peer runs in the first process, where its resources are not
//! counted.

#![expect(
    clippy::print_stdout,
    reason = "the figures are told from one process to the other, and to whoever asks"
)]

use std::process::Stdio;
use std::time::Duration;

use mcp_host_model::{Endpoint, Limits, RawJson, Secret};
use mcp_host_transport::testing::{ServerAction, json, scripted_server};
use mcp_host_transport::{CallOptions, Eras};
use mcp_testkit::servers::shell_server;
use mcp_testkit::wait::wait_until;
use tokio::runtime::Handle;

use super::peers::{PLAIN, Peer, TransportKind, connect};

/// The environment variable that passes the transport and the port to the counting process.
const PEER: &str = "MCP_TEST_CYCLES_PEER";

/// The environment variable that sets the number of cycles.
const CYCLES: &str = "MCP_TEST_CYCLES";
const FEW_CYCLES: usize = 100;

/// The number of cycles after which all caches are filled.
const WARM_UP: usize = 40;

/// The memory growth after the warm-up that is tolerated, in KiB, for pages that the allocator touches by chance.
const FLAT: u64 = 3 << 10;

const WIRES: [(&str, TransportKind); 4] = [
    ("stdio", TransportKind::Stdio),
    ("sse", TransportKind::Sse),
    ("websocket", TransportKind::WebSocket),
    ("http", TransportKind::Http),
];

#[test]
fn hd_117_cycles_leave_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match std::env::var(PEER) {
        Ok(peer) => {
            let (transport, port) = peer.split_once(' ').unwrap();
            let transport = WIRES.iter().find(|(name, _)| *name == transport).unwrap().1;
            runtime.block_on(count(transport, port.parse().unwrap()));
        }
        Err(_) => runtime.block_on(async {
            for (name, transport) in WIRES {
                watch(name, transport).await;
            }
        }),
    }
}

/// Runs the counting process on one transport.
async fn watch(name: &str, transport: TransportKind) {
    let script = scripted_server(Vec::new(), |message| match message["method"].as_str() {
        Some("tools/call") => {
            let result = json!({"content": [{"type": "text", "text": "hello"}]});
            vec![ServerAction::result(message, &result)]
        }
        _ => Vec::new(),
    });
    let peer = Peer::start(transport, PLAIN, script).await;
    let counting = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "conformance::cycles::hd_117_cycles_leave_nothing", "--nocapture"])
        .env(PEER, format!("{name} {}", peer.port))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&counting.stdout).into_owned();
    assert!(counting.status.success(), "{name}: {said}{}", String::from_utf8_lossy(&counting.stderr));
    let figures =
        said.lines().find(|it| it.contains(" cycles: ")).unwrap_or_else(|| panic!("{name}: {said}"));
    println!("{name}: {figures}");
}

/// The resources of this process.
#[derive(Debug, Clone, Copy)]
struct Counted {
    descriptors: usize,
    tasks: usize,
    processes: usize,
    memory: u64,
}

impl Counted {
    fn now(mark: &str) -> Counted {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let memory = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
        Counted {
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            tasks: Handle::current().metrics().num_alive_tasks(),
            processes: marked(mark),
            memory: memory.trim().trim_end_matches(" kB").parse().unwrap(),
        }
    }

    /// Whether no more resources are in use than before.
    fn settled(self, before: Counted) -> bool {
        self.descriptors <= before.descriptors
            && self.tasks <= before.tasks
            && self.processes <= before.processes
    }
}

/// The number of processes with this in their environment, including orphans.
fn marked(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let environments = processes.filter_map(|it| std::fs::read(it.path().join("environ")).ok());
    environments.filter(|it| memchr::memmem::find(it, mark.as_bytes()).is_some()).count()
}

async fn count(transport: TransportKind, port: u16) {
    let cycles = std::env::var(CYCLES).map_or(FEW_CYCLES, |it| it.parse().unwrap());
    let mark = format!("MCP_TEST_MARK=of-{}", std::process::id());
    let endpoint = match transport {
        TransportKind::Stdio => {
            let mut endpoint = shell_server(r#"text "$id" hello"#);
            let (name, value) = mark.split_once('=').unwrap();
            endpoint.env.push((name.to_owned(), Secret::new(value)));
            Endpoint::Stdio(endpoint)
        }
        TransportKind::Sse | TransportKind::WebSocket | TransportKind::Http | TransportKind::HttpJson => {
            transport.endpoint(port)
        }
    };
    let beginning = Counted::now(&mark);
    assert_eq!(beginning.processes, 0);
    for number in 0..WARM_UP {
        // Checks that the count detects a process at all.
        let seen = if transport == TransportKind::Stdio && number == 0 { 1 } else { 0 };
        cycle(&endpoint, || assert!(seen == 0 || marked(&mark) >= seen)).await;
    }
    wait_until(|| Counted::now(&mark).tasks == 0).await;
    let before = Counted::now(&mark);
    for _ in 0..cycles {
        cycle(&endpoint, || {}).await;
    }
    wait_until(|| Counted::now(&mark).settled(before)).await;
    let after = Counted::now(&mark);
    println!("{cycles} cycles: {beginning:?}, then {before:?}, then {after:?}");
    assert_eq!((after.tasks, after.processes), (0, 0));
    assert!(after.memory <= before.memory + FLAT, "{before:?}, then {after:?}");
}

async fn cycle(endpoint: &Endpoint, connected: impl Fn()) {
    let session = connect(endpoint, Eras::Legacy, &Limits::default()).await.unwrap();
    connected();
    let answer = session.call_tool("first", &RawJson::empty_object(), CallOptions::default()).await.unwrap();
    assert_eq!(answer.value.text(), "hello");
    session.close(Duration::from_secs(5)).await;
}

//! What a request costs at the gateway: `cargo bench -p mcp-gateway [-- SECONDS]` prints requests a second, one by one and
//! several at once, over sockets of this machine, before servers in this process that answer at once; and, where
//! valgrind is installed, instructions a request: the slope between a short and a long run, which does not depend on
//! what else the machine does. The client, written by hand, and the server are in these figures.
//!
//! `cargo bench -p mcp-gateway -- clients COUNT` has so many clients begin a session each, call, listen or call again, and
//! vanish; and prints what the process has before, with them, and when they were idle for too long.

#![expect(clippy::print_stdout, reason = "its few lines of output are what it is for")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use mcp_config::ResolvedServer;
use mcp_gateway::{Bounds, Gateway, GatewayOptions, HttpOptions, HttpServer};
use mcp_host::{DesiredServers, Dialer, Host, HostOptions};
use mcp_model::{
    Dialect, Discovery, Endpoint, Exposure, Limits, NameClass, NamePolicy, Origin, ServerId, ServerSpec,
    Sharing, StdioEndpoint, StdioSpec, TransportSpec, code,
};
use mcp_transport::{Dial, Disconnect, DisconnectReason, HandshakeMode, Link, Outbound, StreamId, Transport};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How many servers there are, and how many tools each has.
const SERVERS: usize = 10;
const TOOLS: usize = 23;

/// What is asked: a name for it, the revision that asks, and a request.
const KINDS: [&str; 5] = ["ping", "tools/list", "tools/call", "modern tools/list", "modern tools/call"];

const TEXT: &str =
    "The quick brown fox jumps over the lazy dog, and then it does so again, only a little bit slower.";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["count", kind, times] => count(kind, times.parse()?),
        ["clients", count] => clients(count.parse()?),
        [seconds] => measure(Duration::from_secs_f64(seconds.parse()?)),
        _ => measure(Duration::from_secs(1)),
    }
}

/// Prints the table.
fn measure(time: Duration) -> Outcome<()> {
    let served = Served::start()?;
    println!(
        "{:<20} {:>12} {:>12} {:>12} {:>14}",
        "requests a second", "1 client", "16", "64", "instructions"
    );
    for kind in KINDS {
        let rates: Vec<f64> =
            [1, 16, 64].iter().map(|it| rate(served.address, kind, *it, time)).collect::<Result<_, _>>()?;
        let instructions = instructions(kind)?.map_or_else(|| "-".to_owned(), |it| it.to_string());
        println!("{kind:<20} {:>12.0} {:>12.0} {:>12.0} {instructions:>14}", rates[0], rates[1], rates[2]);
    }
    Ok(())
}

/// How many requests a second so many clients have answered.
fn rate(address: SocketAddr, kind: &str, clients: usize, time: Duration) -> Outcome<f64> {
    let (answered, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut threads = Vec::new();
    for _ in 0..clients {
        let mut client = Client::open(address, kind)?;
        let (answered, over) = (Arc::clone(&answered), Arc::clone(&over));
        threads.push(std::thread::spawn(move || -> std::io::Result<()> {
            while !over.load(Ordering::Relaxed) {
                client.ask()?;
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        }));
    }
    std::thread::sleep(time / 10);
    let (begun, before) = (Instant::now(), answered.load(Ordering::Relaxed));
    std::thread::sleep(time);
    let many = answered.load(Ordering::Relaxed) - before;
    let elapsed = begun.elapsed();
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("no client panics")?;
    }
    Ok(many as f64 / elapsed.as_secs_f64())
}

/// Instructions a request, where they can be counted.
fn instructions(kind: &str) -> Outcome<Option<u64>> {
    let (few, many) = (200, 1200);
    let (Some(few_cost), Some(many_cost)) = (counted(kind, few)?, counted(kind, many)?) else {
        return Ok(None);
    };
    Ok(Some(many_cost.saturating_sub(few_cost) / (many - few)))
}

/// Runs so many requests in a process of its own under valgrind, and gives the instructions of all of it.
fn counted(kind: &str, times: u64) -> Outcome<Option<u64>> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(std::env::current_exe()?).args(["count", kind, &times.to_string()]);
    let Ok(output) = command.stdin(Stdio::null()).output() else { return Ok(None) };
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let total = said.lines().find_map(|it| it.split_once("Collected : ")?.1.trim().parse().ok());
    Ok(Some(total.ok_or("valgrind does not say how many instructions there were")?))
}

/// So many requests, one after another.
fn count(kind: &str, times: u64) -> Outcome<()> {
    let served = Served::start()?;
    let mut client = Client::open(served.address, kind)?;
    for _ in 0..times {
        client.ask()?;
    }
    Ok(())
}

/// How long sessions may lie unused before clients who vanished count as gone.
const IDLE: Duration = Duration::from_secs(2);

/// Clients that come and vanish.
fn clients(count: usize) -> Outcome<()> {
    let bounds = Bounds {
        sessions: 2 * count,
        sessions_per_client: 2 * count,
        connections: 4 * count,
        idle: IDLE,
        ..Bounds::default()
    };
    let served = Served::bounded(bounds)?;
    println!("{:<28} {:>8} {:>8} {:>10} {:>10}", "", "sessions", "tasks", "open files", "memory/KiB");
    served.line("before")?;
    for round in 1..=3 {
        let begun = Instant::now();
        let mut clients = Vec::new();
        for number in 0..count {
            let mut client = Client::open(served.address, "tools/call")?;
            if number % 2 == 0 {
                // Half of them listen, and a stream counts as use for as long as it is open.
                let listen = String::from_utf8(client.request.clone())?;
                let head = listen.split("\r\n\r\n").next().unwrap_or_default().replacen("POST", "GET", 1);
                let head: Vec<&str> = head.lines().filter(|it| !it.starts_with("content-")).collect();
                client.stream.write_all(format!("{}\r\n\r\n", head.join("\r\n")).as_bytes())?;
                let mut first = [0; 12];
                client.stream.read_exact(&mut first)?;
                if first != *b"HTTP/1.1 200" {
                    return Err("a client could not listen".into());
                }
            } else {
                client.stream.write_all(&client.request)?;
            }
            clients.push(client);
        }
        served.line(&format!("{count} clients, {:.1} s", begun.elapsed().as_secs_f64()))?;
        drop(clients);
        let gone = Instant::now();
        while served.gateway.clients().0 > 0 && gone.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(Duration::from_millis(500));
        served.line(&format!("round {round}: gone, {:.1} s", gone.elapsed().as_secs_f64()))?;
    }
    Ok(())
}

/// A gateway that serves.
struct Served {
    address: SocketAddr,
    gateway: Gateway,
    runtime: tokio::runtime::Runtime,
}

impl Served {
    fn start() -> Outcome<Served> {
        Served::bounded(Bounds::default())
    }

    /// Prints what there is now.
    fn line(&self, what: &str) -> Outcome<()> {
        let tasks = self.runtime.metrics().num_alive_tasks();
        let files = std::fs::read_dir("/proc/self/fd")?.count();
        let status = std::fs::read_to_string("/proc/self/status")?;
        let memory = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap_or("-");
        let memory = memory.trim().trim_end_matches(" kB");
        println!("{what:<28} {:>8} {tasks:>8} {files:>10} {memory:>10}", self.gateway.clients().0);
        Ok(())
    }

    fn bounded(bounds: Bounds) -> Outcome<Served> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (address, gateway) = runtime.block_on(async {
            let dialer: Dialer = Arc::new(|_, _| Ok(Arc::new(Echo) as Arc<dyn Dial>));
            let host = Host::with_dialer(HostOptions::default(), dialer);
            let servers = (0..SERVERS).map(server).collect();
            host.apply(DesiredServers { servers, failed: Vec::new() }).await;
            host.ready().await;
            let gateway =
                Gateway::new(Arc::new(host), GatewayOptions { bounds, ..GatewayOptions::default() });
            let server =
                HttpServer::bind("127.0.0.1:0".parse()?, gateway.clone(), HttpOptions::default()).await?;
            let address = server.address();
            tokio::spawn(server.serve(std::future::pending()));
            Ok::<_, Box<dyn Error>>((address, gateway))
        })?;
        Ok(Served { address, gateway, runtime })
    }
}

/// One connection, which asks the same again and again.
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    /// What is read at once. Kept, for clearing it anew each time would cost as much as the gateway does.
    part: Box<[u8]>,
}

impl Client {
    fn open(address: SocketAddr, kind: &str) -> Outcome<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut res =
            Client { stream, request: Vec::new(), answer: Vec::new(), part: vec![0; 64 * 1024].into() };
        let (method, is_modern) = match kind.strip_prefix("modern ") {
            Some(method) => (method, true),
            None => (kind, false),
        };
        let own = match method {
            "tools/call" => format!(r#""name":"s3__t0","arguments":{{"text":"{TEXT}"}}"#),
            _ => String::new(),
        };
        let (headers, params) = match is_modern {
            true => {
                let meta = concat!(
                    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"0"},"#,
                    r#""io.modelcontextprotocol/clientCapabilities":{}}"#
                );
                let name = if method == "tools/call" { "mcp-name: s3__t0\r\n" } else { "" };
                let headers = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}");
                (headers, format!("{meta}{}{own}", if own.is_empty() { "" } else { "," }))
            }
            false => {
                let params = concat!(
                    r#""protocolVersion":"2025-06-18","capabilities":{},"#,
                    r#""clientInfo":{"name":"bench","version":"0"}"#
                );
                res.request = request(address, "", "initialize", params);
                res.ask()?;
                let head = std::str::from_utf8(&res.answer)?.to_lowercase();
                let session = head.lines().find_map(|it| it.strip_prefix("mcp-session-id: "));
                let session = session.ok_or_else(|| format!("there is no session in {head}"))?;
                (format!("mcp-protocol-version: 2025-06-18\r\nmcp-session-id: {session}\r\n"), own)
            }
        };
        res.request = request(address, &headers, method, &params);
        res.ask()?;
        let answer = std::str::from_utf8(&res.answer)?;
        if !answer.starts_with("HTTP/1.1 200")
            || !answer.contains(r#""result":{"#)
            || answer.contains("isError")
        {
            return Err(answer.into());
        }
        Ok(res)
    }

    /// Asks, and reads the answer to its end.
    fn ask(&mut self) -> std::io::Result<()> {
        self.stream.write_all(&self.request)?;
        self.answer.clear();
        let mut whole = None;
        while whole.is_none_or(|it| self.answer.len() < it) {
            let read = self.stream.read(&mut self.part)?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.answer.extend_from_slice(&self.part[..read]);
            if whole.is_none() {
                whole = length(&self.answer);
            }
        }
        Ok(())
    }
}

fn request(address: SocketAddr, headers: &str, method: &str, params: &str) -> Vec<u8> {
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    format!("{head}{body}").into_bytes()
}

/// How long a response is whose head is there.
fn length(response: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(response).ok()?;
    let head = text.find("\r\n\r\n")? + 4;
    let body = text[..head].lines().find_map(|it| it.strip_prefix("content-length: "))?;
    Some(head + body.parse::<usize>().ok()?)
}

/// A server in this process.
struct Echo;

impl Dial for Echo {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(Echo)
    }

    fn label(&self) -> String {
        "echo".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

#[async_trait]
impl Transport for Echo {
    async fn run(self: Box<Self>, mut link: Link) -> Disconnect {
        let schema = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
        let tools: Vec<String> = (0..TOOLS)
            .map(|it| {
                format!(r#"{{"name":"t{it}","description":"Says what it is told.","inputSchema":{schema}}}"#)
            })
            .collect();
        let tools = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
        loop {
            let message = tokio::select! {
                out = link.outbound.next() => match out {
                    Some(Outbound::Send(message)) => message,
                    Some(Outbound::Cancel { .. }) => continue,
                    None => break,
                },
                _ = link.shutdown.requested() => break,
            };
            let Some(id) = message.head.id else { continue };
            let answer = match &*message.head.method {
                "initialize" => concat!(
                    r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#,
                    r#""serverInfo":{"name":"e","version":"0"}}"#
                )
                .to_owned(),
                "tools/list" => format!(r#""result":{tools}"#),
                "tools/call" => format!(r#""result":{{"content":[{{"type":"text","text":"{TEXT}"}}]}}"#),
                _ => format!(r#""error":{{"code":{},"message":"unknown"}}"#, code::METHOD_NOT_FOUND),
            };
            let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#);
            link.inbound.deliver(StreamId::Shared, Bytes::from(frame));
        }
        Disconnect::new(DisconnectReason::Stopped)
    }
}

fn server(number: usize) -> ResolvedServer {
    let endpoint = StdioEndpoint::new("echo");
    let spec = ServerSpec {
        id: ServerId::parse(&format!("s{number}")).expect("it is a name"),
        description: None,
        origin: Origin { dialect: Dialect::HoloDeck, file: "f".into(), pointer: String::new(), span: 0..0 },
        transport: TransportSpec::Stdio(StdioSpec {
            command: "echo".into(),
            args: Vec::new(),
            env: Vec::new(),
            env_file: None,
            inherit: endpoint.inherit,
            cwd: None,
            encoding: "utf-8".into(),
        }),
        limits: Limits::default(),
        discovery: Discovery::default(),
        exposure: Exposure::all(NamePolicy::Qualify { class: NameClass::Strict }),
        sharing: Sharing::Shared,
        config: None,
        metadata: Default::default(),
    };
    ResolvedServer { spec, endpoint: Endpoint::Stdio(endpoint), config: None }
}

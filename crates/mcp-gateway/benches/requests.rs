//! Costs of requests at the gateway.
//!
//! `cargo bench -p mcp-host-gateway [-- SECONDS]` prints requests per second with one and with several
//! clients, over local sockets and in front of in-process servers. With valgrind it also prints instructions
//! per request: the difference between a short and a long run, which does not depend on the load of the
//! machine. The figures include the client and the server.
//!
//! `cargo bench -p mcp-host-gateway -- clients COUNT` lets clients start a session each, call or listen, and vanish. It
//! prints the resources of the process before, with the clients, and after their sessions ended.

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
use mcp_host_config::ResolvedServer;
use mcp_host_gateway::{Bounds, Gateway, GatewayOptions, HttpOptions, HttpServer};
use mcp_host_model::{
    Endpoint, Profile, ServerId, ServerSpec, Sharing, SpecOrigin, StdioEndpoint, StdioSpec, TransportSpec,
    code,
};
use mcp_host_runtime::{DesiredServers, Dialer, Host, HostOptions};
use mcp_host_transport::{
    Dial, Disconnect, DisconnectReason, HandshakeMode, Link, Outbound, StreamId, Transport,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The number of servers behind the gateway.
const SERVERS: usize = 10;

/// The number of tools of each server.
const TOOLS: usize = 23;

/// The measured requests: the method, after `modern` for a client without a session.
const REQUESTS: [&str; 5] = ["ping", "tools/list", "tools/call", "modern tools/list", "modern tools/call"];

/// The argument and the result of each call.
const TEXT: &str =
    "The quick brown fox jumps over the lazy dog, and then it does so again, only a little bit slower.";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["count", kind, times] => send_requests(kind, times.parse()?),
        ["clients", count] => print_vanishing_clients(count.parse()?),
        [seconds] => print_request_costs(Duration::from_secs_f64(seconds.parse()?)),
        _ => print_request_costs(Duration::from_secs(1)),
    }
}

/// Prints the table of rates and instructions. Each rate is measured for `time`.
fn print_request_costs(time: Duration) -> Outcome<()> {
    let gateway = BenchGateway::start()?;
    println!(
        "{:<20} {:>12} {:>12} {:>12} {:>14}",
        "requests a second", "1 client", "16", "64", "instructions"
    );
    for kind in REQUESTS {
        let rates: Vec<f64> = [1, 16, 64]
            .iter()
            .map(|clients| measure_rate(gateway.address, kind, *clients, time))
            .collect::<Result<_, _>>()?;
        let instructions = measure_instructions(kind)?.map_or_else(|| "-".to_owned(), |it| it.to_string());
        println!("{kind:<20} {:>12.0} {:>12.0} {:>12.0} {instructions:>14}", rates[0], rates[1], rates[2]);
    }
    Ok(())
}

/// Measures the requests per second with this number of clients.
fn measure_rate(address: SocketAddr, kind: &str, clients: usize, time: Duration) -> Outcome<f64> {
    let (answered, has_ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut threads = Vec::new();
    for _ in 0..clients {
        let mut client = Client::open(address, kind)?;
        let (answered, has_ended) = (Arc::clone(&answered), Arc::clone(&has_ended));
        threads.push(std::thread::spawn(move || -> std::io::Result<()> {
            while !has_ended.load(Ordering::Relaxed) {
                client.exchange()?;
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        }));
    }
    std::thread::sleep(time / 10);
    let (begun, before) = (Instant::now(), answered.load(Ordering::Relaxed));
    std::thread::sleep(time);
    let requests = answered.load(Ordering::Relaxed) - before;
    let elapsed = begun.elapsed();
    has_ended.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("no client panics")?;
    }
    Ok(requests as f64 / elapsed.as_secs_f64())
}

/// Measures the instructions per request, if valgrind is installed.
fn measure_instructions(kind: &str) -> Outcome<Option<u64>> {
    let (few, many) = (200, 1200);
    let (Some(few_cost), Some(many_cost)) = (count_instructions(kind, few)?, count_instructions(kind, many)?)
    else {
        return Ok(None);
    };
    Ok(Some(many_cost.saturating_sub(few_cost) / (many - few)))
}

/// Counts the instructions of a process that sends this number of requests. `None` without valgrind.
fn count_instructions(kind: &str, times: u64) -> Outcome<Option<u64>> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(std::env::current_exe()?).args(["count", kind, &times.to_string()]);
    let Ok(output) = command.stdin(Stdio::null()).output() else { return Ok(None) };
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let report = String::from_utf8_lossy(&output.stderr);
    let total = report.lines().find_map(|it| it.split_once("Collected : ")?.1.trim().parse().ok());
    Ok(Some(total.ok_or("valgrind does not say how many instructions there were")?))
}

/// Sends requests one after another.
fn send_requests(kind: &str, times: u64) -> Outcome<()> {
    let gateway = BenchGateway::start()?;
    let mut client = Client::open(gateway.address, kind)?;
    for _ in 0..times {
        client.exchange()?;
    }
    Ok(())
}

/// How long a session may be unused before it ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// Prints the resources with this number of clients, and after they vanished.
fn print_vanishing_clients(count: usize) -> Outcome<()> {
    let mut bounds = Bounds::default();
    bounds.sessions = 2 * count;
    bounds.sessions_per_client = 2 * count;
    bounds.connections = 4 * count;
    bounds.idle_timeout = IDLE_TIMEOUT;
    let gateway = BenchGateway::with_bounds(bounds)?;
    println!("{:<28} {:>8} {:>8} {:>10} {:>10}", "", "sessions", "tasks", "open files", "memory/KiB");
    gateway.print_resources("before")?;
    for round in 1..=3 {
        let begun = Instant::now();
        let mut clients = Vec::new();
        for number in 0..count {
            let mut client = Client::open(gateway.address, "tools/call")?;
            if number % 2 == 0 {
                // An open stream counts as use.
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
        gateway.print_resources(&format!("{count} clients, {:.1} s", begun.elapsed().as_secs_f64()))?;
        drop(clients);
        let gone = Instant::now();
        while gateway.gateway.client_counts().sessions > 0 && gone.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(Duration::from_millis(500));
        gateway.print_resources(&format!("round {round}: gone, {:.1} s", gone.elapsed().as_secs_f64()))?;
    }
    Ok(())
}

/// A running gateway in front of in-process servers.
struct BenchGateway {
    address: SocketAddr,
    gateway: Gateway,
    runtime: tokio::runtime::Runtime,
}

impl BenchGateway {
    fn start() -> Outcome<BenchGateway> {
        BenchGateway::with_bounds(Bounds::default())
    }

    /// Prints a line with the current resources of the process.
    fn print_resources(&self, label: &str) -> Outcome<()> {
        let tasks = self.runtime.metrics().num_alive_tasks();
        let files = std::fs::read_dir("/proc/self/fd")?.count();
        let status = std::fs::read_to_string("/proc/self/status")?;
        let memory = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap_or("-");
        let memory = memory.trim().trim_end_matches(" kB");
        println!(
            "{label:<28} {:>8} {tasks:>8} {files:>10} {memory:>10}",
            self.gateway.client_counts().sessions
        );
        Ok(())
    }

    fn with_bounds(bounds: Bounds) -> Outcome<BenchGateway> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (address, gateway) = runtime.block_on(async {
            let dialer: Dialer = Arc::new(|_, _| Ok(Arc::new(Echo) as Arc<dyn Dial>));
            let host = Host::with_dialer(HostOptions::default(), dialer);
            let servers = (0..SERVERS).map(server).collect();
            host.apply(DesiredServers::new(servers)).await;
            host.wait_until_ready().await;
            let gateway = Gateway::new(Arc::new(host), {
                let mut options = GatewayOptions::default();
                options.bounds = bounds;
                options
            });
            let server =
                HttpServer::bind("127.0.0.1:0".parse()?, gateway.clone(), HttpOptions::default()).await?;
            let address = server.address();
            tokio::spawn(server.serve(std::future::pending()));
            Ok::<_, Box<dyn Error>>((address, gateway))
        })?;
        Ok(BenchGateway { address, gateway, runtime })
    }
}

/// A connection that sends the same request repeatedly.
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    response: Vec<u8>,
    /// What one read returned. Kept, because clearing a new buffer would cost as much as the gateway.
    read_buffer: Box<[u8]>,
}

impl Client {
    /// Connects, starts a session unless the request is modern, and sends the request once.
    fn open(address: SocketAddr, kind: &str) -> Outcome<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let read_buffer = vec![0; 64 * 1024].into();
        let mut client = Client { stream, request: Vec::new(), response: Vec::new(), read_buffer };
        let (method, is_modern) = match kind.strip_prefix("modern ") {
            Some(method) => (method, true),
            None => (kind, false),
        };
        let call_params = match method {
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
                let comma = if call_params.is_empty() { "" } else { "," };
                (headers, format!("{meta}{comma}{call_params}"))
            }
            false => {
                let params = concat!(
                    r#""protocolVersion":"2025-06-18","capabilities":{},"#,
                    r#""clientInfo":{"name":"bench","version":"0"}"#
                );
                client.request = http_request(address, "", "initialize", params);
                client.exchange()?;
                let head = std::str::from_utf8(&client.response)?.to_lowercase();
                let session = head.lines().find_map(|it| it.strip_prefix("mcp-session-id: "));
                let session = session.ok_or_else(|| format!("there is no session in {head}"))?;
                (format!("mcp-protocol-version: 2025-06-18\r\nmcp-session-id: {session}\r\n"), call_params)
            }
        };
        client.request = http_request(address, &headers, method, &params);
        client.exchange()?;
        let response = std::str::from_utf8(&client.response)?;
        if !response.starts_with("HTTP/1.1 200")
            || !response.contains(r#""result":{"#)
            || response.contains("isError")
        {
            return Err(response.into());
        }
        Ok(client)
    }

    /// Sends the request and reads the whole response.
    fn exchange(&mut self) -> std::io::Result<()> {
        self.stream.write_all(&self.request)?;
        self.response.clear();
        let mut length = None;
        while length.is_none_or(|it| self.response.len() < it) {
            let read = self.stream.read(&mut self.read_buffer)?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.response.extend_from_slice(&self.read_buffer[..read]);
            if length.is_none() {
                length = response_length(&self.response);
            }
        }
        Ok(())
    }
}

/// The bytes of a POST. `params` are members of a JSON object.
fn http_request(address: SocketAddr, headers: &str, method: &str, params: &str) -> Vec<u8> {
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    format!("{head}{body}").into_bytes()
}

/// The length of a response with its head, if the head is complete.
fn response_length(response: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(response).ok()?;
    let head = text.find("\r\n\r\n")? + 4;
    let body = text[..head].lines().find_map(|it| it.strip_prefix("content-length: "))?;
    Some(head + body.parse::<usize>().ok()?)
}

/// An in-process server.
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
            let answer = match message.head.method_name().unwrap_or_default() {
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
    let id = ServerId::parse(&format!("s{number}")).expect("it is a name");
    let origin = SpecOrigin::new(Profile::HoloDeck, "f");
    let mut spec = ServerSpec::new(id, origin, TransportSpec::Stdio(StdioSpec::new("echo")));
    spec.sharing = Sharing::Shared;
    ResolvedServer::new(spec, Endpoint::Stdio(endpoint))
}

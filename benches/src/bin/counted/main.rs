//! Cases for callgrind: `counted CASE TIMES` repeats one operation.
//!
//! The difference of two runs is the cost of the operation without start and end. `counted list` prints the cases with
//! the two lengths. A server runs in its own process, which is not counted.

#![expect(clippy::print_stdout, reason = "the list of cases is the output")]

mod gateway;
mod growth;
mod names;

use std::fmt::Write;
use std::hint::black_box;
use std::io::BufRead;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mcp_benches::minimal_client::{Hyper, INITIALIZE, INITIALIZED, call_message, payload, text_of};
use mcp_benches::options::Options;
use mcp_benches::scenario::Ask;
use mcp_benches::{
    Failure, TEXT,
    bench_server::{BenchServer, Definitions},
};
use mcp_host_config::{Document, Profile};
use mcp_host_model::{Content, Endpoint, RawJson, Secret, StdioEndpoint, UrlEndpoint, read_tools};
use mcp_host_registry::ValidatorCache;
use mcp_host_runtime::{DesiredServers, Host, HostOptions, LoadRequest, ServerState, ToolCall, load};
use mcp_host_transport::{CallOptions, DialOptions, Session, SessionOptions, dialer};
use serde_json::json;
use tokio::runtime::Runtime;

use gateway::{GatewayRequest, run_requests};

/// A case with the lengths of its two runs. If the short one is 0, only the long one is needed, of which only
/// [`run_counted`] counts: its start would vary more than the repetitions cost.
struct Case {
    name: &'static str,
    few: usize,
    many: usize,
    run: fn(usize) -> Result<(), Failure>,
}

const CASES: [Case; 23] = [
    Case { name: "stdio-session", few: 1000, many: 3000, run: |it| wait(session(CaseTransport::Stdio, it)) },
    Case { name: "stdio-host", few: 1000, many: 3000, run: |it| wait(host(it)) },
    Case { name: "stdio-session-16", few: 1600, many: 4800, run: |it| wait(concurrent_calls(it)) },
    Case { name: "stdio-session-1mib", few: 2, many: 8, run: |it| wait(big(it)) },
    Case { name: "stdio-session-1000-tools", few: 2, many: 6, run: |it| wait(list(it)) },
    Case {
        name: "http-session-json",
        few: 500,
        many: 1500,
        run: |it| wait(session(CaseTransport::HttpJson, it)),
    },
    Case {
        name: "http-session-sse",
        few: 500,
        many: 1500,
        run: |it| wait(session(CaseTransport::HttpEvents, it)),
    },
    Case {
        name: "http-hyper-json",
        few: 500,
        many: 1500,
        run: |it| wait(hyper_calls(CaseTransport::HttpJson, it)),
    },
    Case {
        name: "http-hyper-sse",
        few: 500,
        many: 1500,
        run: |it| wait(hyper_calls(CaseTransport::HttpEvents, it)),
    },
    Case {
        name: "gateway-call",
        few: 500,
        many: 1500,
        run: |it| wait(run_requests(GatewayRequest::Call, it)),
    },
    Case {
        name: "gateway-call-2026",
        few: 500,
        many: 1500,
        run: |it| wait(run_requests(GatewayRequest::ModernCall, it)),
    },
    Case {
        name: "gateway-list-230",
        few: 100,
        many: 300,
        run: |it| wait(run_requests(GatewayRequest::List, it)),
    },
    Case { name: "reload-one-of-100", few: 0, many: 10, run: |it| growth::reload(100, it) },
    Case { name: "reload-one-of-1000", few: 0, many: 10, run: |it| growth::reload(1000, it) },
    Case {
        name: "hit-100000-tools",
        few: 0,
        many: 500,
        run: |it| growth::calls(GatewayRequest::HitAmongMany, it),
    },
    Case {
        name: "miss-100000-tools",
        few: 0,
        many: 500,
        run: |it| growth::calls(GatewayRequest::MissAmongMany, it),
    },
    Case { name: "list-changed-1000-tools", few: 0, many: 12, run: |it| growth::list_changes(1, 990, it) },
    Case {
        name: "list-changed-100000-tools",
        few: 0,
        many: 12,
        run: |it| growth::list_changes(10, 10_000, it),
    },
    Case { name: "match-10000-names", few: 2, many: 6, run: names::matching },
    Case { name: "decide-10000-names", few: 2, many: 6, run: names::deciding },
    Case { name: "config-1000-servers-json", few: 1, many: 3, run: |it| reading(it, &json_file()) },
    Case { name: "config-1000-servers-yaml", few: 1, many: 3, run: |it| reading(it, &yaml_file()) },
    Case { name: "validate-cached", few: 1000, many: 3000, run: validating },
];

/// The transport of a session.
#[derive(Clone, Copy)]
enum CaseTransport {
    Stdio,
    HttpJson,
    HttpEvents,
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => {
            for Case { name, few, many, run: _ } in &CASES {
                println!("{name} {few} {many}");
            }
            Ok(())
        }
        ["idle", servers, seconds] => wait(idle(servers.parse()?, seconds.parse()?)),
        ["swapping", servers, times] => swapping_together(servers.parse()?, times.parse()?),
        [name, times] => {
            let case = CASES.iter().find(|it| it.name == *name).ok_or("there is no such case")?;
            (case.run)(times.parse()?)
        }
        _ => Err(
            "counted list | counted CASE TIMES | counted idle SERVERS SECONDS | counted swapping SERVERS \
            TIMES"
                .into(),
        ),
    }
}

/// Runs on one thread, because only the work is counted.
fn wait(what: impl Future<Output = Result<(), Failure>> + Send + 'static) -> Result<(), Failure> {
    runtime()?.block_on(async { tokio::spawn(what).await })?
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Runs the repetitions of a case whose start is not counted. xtask knows this function by its name.
#[inline(never)]
fn run_counted<T: Send + 'static>(
    runtime: &Runtime,
    repetitions: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    runtime.block_on(async { tokio::spawn(repetitions).await })?
}

/// Runs on two threads, like a host with several users.
fn swapping_together(servers: usize, times: usize) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async move { tokio::spawn(swapping(servers, times)).await })?
}

/// The server binary next to this program.
fn server() -> Result<String, Failure> {
    let path = std::env::current_exe()?.with_file_name("server");
    Ok(path.to_str().ok_or("its path is no text")?.to_owned())
}

/// An HTTP server, killed on drop.
struct HttpServer {
    child: Child,
    url: String,
}

impl HttpServer {
    fn start(reply: &str) -> Result<HttpServer, Failure> {
        let mut child = Command::new(server()?)
            .args(["--mode", "http", "--reply", reply])
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("it was asked for")?;
        let mut url = String::new();
        std::io::BufReader::new(stdout).read_line(&mut url)?;
        Ok(HttpServer { child, url: url.trim().to_owned() })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn over_stdio(arguments: &[&str]) -> Result<Session, Failure> {
    let mut endpoint = StdioEndpoint::new(server()?);
    endpoint.args = arguments.iter().map(|it| Secret::new(*it)).collect();
    connected(&Endpoint::Stdio(endpoint)).await
}

async fn connected(endpoint: &Endpoint) -> Result<Session, Failure> {
    let dial = dialer(endpoint, &DialOptions::default())?;
    let session = Session::connect(dial, SessionOptions::default()).await?;
    session.list_tools().await?;
    Ok(session)
}

async fn session(transport: CaseTransport, times: usize) -> Result<(), Failure> {
    let (session, _server_process) = match transport {
        CaseTransport::Stdio => (over_stdio(&[]).await?, None),
        CaseTransport::HttpJson | CaseTransport::HttpEvents => {
            let server_process =
                HttpServer::start(if matches!(transport, CaseTransport::HttpJson) { "json" } else { "sse" })?;
            (
                connected(&Endpoint::Http(UrlEndpoint::new(server_process.url.parse()?))).await?,
                Some(server_process),
            )
        }
    };
    for _ in 0..times {
        echo(&session).await?;
    }
    session.close(Duration::from_secs(1)).await;
    Ok(())
}

/// The same calls on hyper alone, for comparison.
async fn hyper_calls(transport: CaseTransport, times: usize) -> Result<(), Failure> {
    let server_process =
        HttpServer::start(if matches!(transport, CaseTransport::HttpJson) { "json" } else { "sse" })?;
    let authority = server_process.url.strip_prefix("http://").and_then(|it| it.split('/').next());
    let authority = authority.ok_or("the URL is not of HTTP")?;
    let mut hyper = Hyper::connect(authority).await?;
    hyper.post(authority, INITIALIZE.to_owned()).await?;
    hyper.post(authority, INITIALIZED.to_owned()).await?;
    for _ in 0..times {
        let body = hyper.post(authority, call_message(7, Ask::Echo)).await?;
        same(text_of(&payload(&body)?)?.1)?;
    }
    Ok(())
}

async fn echo(session: &Session) -> Result<(), Failure> {
    let arguments = RawJson::from_value(&json!({ "text": TEXT }))?;
    let answer = session.call_tool("echo", &arguments, CallOptions::default()).await?;
    same(answer.value.content.iter().map(Content::len).sum())
}

fn same(bytes: usize) -> Result<(), Failure> {
    if bytes == TEXT.len() { Ok(()) } else { Err(format!("the echo has {bytes} bytes").into()) }
}

async fn concurrent_calls(times: usize) -> Result<(), Failure> {
    const CALLERS: usize = 16;
    let session = std::sync::Arc::new(over_stdio(&[]).await?);
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let session = std::sync::Arc::clone(&session);
        callers.spawn(async move {
            for _ in 0..times / CALLERS {
                echo(&session).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    session.close(Duration::from_secs(1)).await;
    Ok(())
}

async fn big(times: usize) -> Result<(), Failure> {
    let session = over_stdio(&[]).await?;
    let arguments = RawJson::from_value(&json!({ "kib": 1024 }))?;
    for _ in 0..times {
        let answer = session.call_tool("big", &arguments, CallOptions::default()).await?;
        black_box(answer.value.into_text());
    }
    session.close(Duration::from_secs(1)).await;
    Ok(())
}

async fn list(times: usize) -> Result<(), Failure> {
    let session = over_stdio(&["--tools", "1000"]).await?;
    for _ in 0..times {
        black_box(session.list_tools().await?.items.len());
    }
    session.close(Duration::from_secs(1)).await;
    Ok(())
}

/// This many servers with this many additional tools; the first one has `first` as its prefix.
fn desired_servers(servers: usize, tools: usize, first: &str) -> Result<DesiredServers, Failure> {
    let prefix = |at: usize| if at == 0 { first.to_owned() } else { format!("s{at}_") };
    let arguments = ["--tools".to_owned(), tools.to_string()];
    let entries: Result<Vec<_>, Failure> =
        (0..servers).map(|at| stdio_entry(&prefix(at), &arguments)).collect();
    desired_entries(&entries?)
}

/// The entry of a server over stdio.
fn stdio_entry(prefix: &str, arguments: &[String]) -> Result<String, Failure> {
    let (command, arguments) = (json!(server()?), json!(arguments));
    Ok(format!(
        "{{truely-stateless: true, transport: stdio, command: {command}, args: {arguments}, \
        transform: [{{prefix: {prefix}}}]}}"
    ))
}

/// Servers with these entries, named `s0`, `s1`, …
fn desired_entries(entries: &[String]) -> Result<DesiredServers, Failure> {
    let mut text = "version: 1\nservers:\n".to_owned();
    for (at, entry) in entries.iter().enumerate() {
        writeln!(text, "  s{at}: {entry}")?;
    }
    let path = std::env::temp_dir().join(format!("mcp-benches-counted-{}.yaml", std::process::id()));
    std::fs::write(&path, text)?;
    let mut request = LoadRequest::new(&path);
    request.max_servers = usize::MAX;
    let loaded = load(&request);
    std::fs::remove_file(&path)?;
    Ok(loaded?.into_desired()?)
}

async fn started(servers: usize, tools: usize) -> Result<Host, Failure> {
    started_with(desired_servers(servers, tools, "s0_")?).await
}

async fn started_with(desired: DesiredServers) -> Result<Host, Failure> {
    let host = Host::start(HostOptions::default());
    host.apply(desired).await;
    host.wait_until_ready().await;
    match host.snapshot().servers.iter().all(|it| it.state == ServerState::Ready) {
        true => Ok(host),
        false => Err("a server is not ready".into()),
    }
}

async fn host(times: usize) -> Result<(), Failure> {
    let host = started(1, 0).await?;
    for _ in 0..times {
        let arguments = RawJson::from_value(&json!({ "text": TEXT }))?;
        let result = host.call(ToolCall::new("s0_echo", arguments)).await;
        same(result.content.iter().map(Content::len).sum())?;
    }
    host.shutdown().await;
    Ok(())
}

/// Prints the time of reloads of one server and of concurrent calls of another one.
async fn swapping(servers: usize, times: usize) -> Result<(), Failure> {
    let host = std::sync::Arc::new(started(servers, 20).await?);
    let both = [desired_servers(servers, 20, "t0_")?, desired_servers(servers, 20, "s0_")?];
    for reloads in [0, times] {
        let (over, mut is_over) = tokio::sync::oneshot::channel::<()>();
        let calling = {
            let host = std::sync::Arc::clone(&host);
            tokio::spawn(async move {
                let mut calls = Vec::new();
                let begun = Instant::now();
                // The same time with and without reloads.
                while is_over.try_recv().is_err() || calls.is_empty() {
                    let arguments = RawJson::from_value(&json!({ "text": TEXT }))?;
                    let begun = Instant::now();
                    let result = host.call(ToolCall::new("s1_echo", arguments)).await;
                    calls.push(begun.elapsed());
                    same(result.content.iter().map(Content::len).sum())?;
                }
                calls.sort();
                let at = |part: f64| calls[((calls.len() - 1) as f64 * part) as usize];
                println!(
                    "{} calls in {:.1?}: median {:.1?}, p99 {:.1?}, p99.9 {:.1?}, longest {:.1?}",
                    calls.len(),
                    begun.elapsed(),
                    at(0.5),
                    at(0.99),
                    at(0.999),
                    at(1.0)
                );
                Ok::<_, Failure>(())
            })
        };
        let mut applied = Vec::new();
        for at in 0..times {
            let begun = Instant::now();
            if at < reloads {
                host.apply(both[at % 2].clone()).await;
                applied.push(begun.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let _ = over.send(());
        calling.await??;
        applied.sort();
        if let (Some(median), Some(longest)) = (applied.get(applied.len() / 2), applied.last()) {
            println!("{reloads} reloads meanwhile: median {median:.1?}, longest {longest:.1?}");
        }
    }
    host.shutdown().await;
    Ok(())
}

/// Prints the wake-ups of this process while its servers are idle.
async fn idle(servers: usize, seconds: u64) -> Result<(), Failure> {
    let host = started(servers, 0).await?;
    let words = ["--n", &servers.to_string(), "--idle-ms", &(seconds * 1000).to_string()].map(str::to_owned);
    let options = Options::of(words.into_iter());
    let line = mcp_benches::scenario::fleet_line(&options, (Duration::ZERO, Duration::ZERO)).await;
    host.shutdown().await;
    println!("{}", line["wakeups_per_s"]);
    Ok(())
}

fn reading(times: usize, (name, text, profile): &(&str, String, Profile)) -> Result<(), Failure> {
    for _ in 0..times {
        let reading = mcp_host_config::read(&Document::new(name, text, *profile));
        if reading.refused || reading.entries.len() != 1000 {
            return Err("it was not read whole".into());
        }
        black_box(reading);
    }
    Ok(())
}

fn json_file() -> (&'static str, String, Profile) {
    let entry = |at: usize| {
        format!(
            r#""server-{at}":{{"command":"npx","args":["-y","@acme/server-{at}@1.2.3","--root","/srv/data/{at}"],"env":{{"API_KEY":"${{KEY_{at}}}","LOG_LEVEL":"info"}}}}"#
        )
    };
    let entries: Vec<String> = (0..1000).map(entry).collect();
    let text = format!(r#"{{"mcpServers":{{{}}}}}"#, entries.join(","));
    ("mcp.json", text, Profile::default_for(mcp_host_model::Dialect::McpJson))
}

fn yaml_file() -> (&'static str, String, Profile) {
    let mut text = "version: 1\nservers:\n".to_owned();
    for at in 0..1000 {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "  server-{at}:\n    transport: stdio\n    command: npx\n    args: ['-y', '@acme/server-{at}@1.2.3', \
            --root, /srv/data/{at}]\n    env:\n      LOG_LEVEL: info\n    tools:\n      whitelist: ['get_*', \
            'list_*']\n      blacklist:\n        - '*_admin_*'\n    transform:\n      - prefix: s{at}_"
        );
    }
    ("mcp.yaml", text, Profile::default_for(mcp_host_model::Dialect::Dominds))
}

fn validating(times: usize) -> Result<(), Failure> {
    let mut list = String::new();
    BenchServer::new(100, 0, Definitions::Full).answer(br#"{"id":1,"method":"tools/list"}"#, &mut list);
    let list: serde_json::Value = serde_json::from_str(&list)?;
    let tools = read_tools(&RawJson::from_value(&list["result"])?)?.items;
    let schema = &tools[10].input_schema;
    let validators = ValidatorCache::new();
    let arguments = RawJson::from_value(&json!({ "field0": 7, "field1": ["a", "b"], "field2": "text" }))?;
    for _ in 0..times {
        if validators.check_arguments(schema, black_box(&arguments)).is_err() {
            return Err("these arguments are right".into());
        }
    }
    Ok(())
}

//! Our clients: `ours [--api session|host] …` on the public interfaces.
//!
//! Deadlines, cancellation, callbacks and state snapshots are enabled. `session` is `Session` of mcp-transport; `host`
//! is the whole path from a configuration file through `Host` with names, filters, validation and records. The `fleet`
//! scenario always uses the host.

#![expect(clippy::print_stdout, reason = "its one line of output is what it is for")]

use std::fmt::Write;
use std::time::{Duration, Instant};

use mcp_benches::options::{self, Options};
use mcp_benches::scenario::{self, Ask, Client};
use mcp_benches::{Failure, meter};
use mcp_host_model::{Content, Dialect, Endpoint, RawJson, Secret, StdioEndpoint, Tool, UrlEndpoint};
use mcp_host_runtime::{DesiredServers, Host, HostOptions, LoadRequest, ServerState, ToolCall, load};
use mcp_host_transport::{CallOptions, DialOptions, ListResult, Session, SessionOptions, dialer};
use serde_json::{Value, json};

fn main() -> Result<(), Failure> {
    let options = Options::read();
    let runtime = options::runtime(&options)?;
    // In a task, as in a server, and not on the blocking thread.
    let line = runtime.block_on(async { tokio::spawn(async move { row(&options).await }).await })??;
    println!("{line}");
    Ok(())
}

async fn row(options: &Options) -> Result<Value, Failure> {
    match (options.scenario(), options.text("--api", "session")) {
        ("fleet", _) => fleet(options).await,
        (_, "host") => scenario::run::<OneServer>(options).await,
        _ => scenario::run::<Connection>(options).await,
    }
}

struct Connection(Session);

impl Client for Connection {
    type List = ListResult<Tool>;

    async fn connect(options: &Options) -> Result<Self, Failure> {
        let endpoint = endpoint(options)?;
        let dial = dialer(&endpoint, &DialOptions::default())?;
        Ok(Connection(Session::connect(dial, SessionOptions::default()).await?))
    }

    async fn call(&self, ask: Ask) -> Result<usize, Failure> {
        let arguments = RawJson::from_value(&ask.arguments())?;
        let answer = self.0.call_tool(ask.tool(), &arguments, CallOptions::default()).await?;
        match ask {
            Ask::Echo | Ask::Sleep(_) => Ok(answer.value.content.iter().map(Content::len).sum()),
            // As a string, as an application would keep it.
            Ask::Big(_) => Ok(answer.value.into_text().len()),
        }
    }

    async fn list(&self) -> Result<ListResult<Tool>, Failure> {
        Ok(self.0.list_tools().await?)
    }

    fn count(list: &ListResult<Tool>) -> usize {
        list.items.len()
    }

    async fn close(self) {
        self.0.close(Duration::from_secs(1)).await;
    }
}

fn endpoint(options: &Options) -> Result<Endpoint, Failure> {
    let url = || Ok::<_, Failure>(UrlEndpoint::new(options.url().parse()?));
    match options.transport() {
        "stdio" => {
            let (command, arguments) = options.server.split_first().ok_or("no server is given")?;
            let mut endpoint = StdioEndpoint::new(command);
            endpoint.args = arguments.iter().map(|it| Secret::new(it.as_str())).collect();
            Ok(Endpoint::Stdio(endpoint))
        }
        "http" => Ok(Endpoint::Http(url()?)),
        "sse" => Ok(Endpoint::Sse(url()?)),
        "ws" => Ok(Endpoint::WebSocket(url()?)),
        other => Err(format!("there is no transport {other:?}").into()),
    }
}

/// A host with one server.
struct OneServer(Host);

impl Client for OneServer {
    type List = std::sync::Arc<mcp_host_runtime::HostSnapshot>;

    async fn connect(options: &Options) -> Result<Self, Failure> {
        let host = Host::start(HostOptions::default());
        host.apply(desired_servers(options, 1)?).await;
        ready(&host).await?;
        Ok(OneServer(host))
    }

    async fn call(&self, ask: Ask) -> Result<usize, Failure> {
        let arguments = RawJson::from_value(&ask.arguments())?;
        let result = self.0.call(ToolCall::new(format!("s0_{}", ask.tool()), arguments)).await;
        match (ask, &result.error) {
            (_, Some(error)) => Err(error.message.clone().into()),
            (Ask::Echo | Ask::Sleep(_), None) => Ok(result.content.iter().map(Content::len).sum()),
            (Ask::Big(_), None) => Ok(result.into_text().len()),
        }
    }

    async fn list(&self) -> Result<Self::List, Failure> {
        Ok(self.0.snapshot())
    }

    fn count(list: &Self::List) -> usize {
        list.catalog.tools().len()
    }

    async fn close(self) {
        self.0.shutdown().await;
    }
}

/// The servers of a configuration file with this many entries.
fn desired_servers(options: &Options, count: usize) -> Result<DesiredServers, Failure> {
    let mut text = "version: 1\nservers:\n".to_owned();
    for at in 0..count {
        let reach = match options.transport() {
            "stdio" => {
                let (command, arguments) = options.server.split_first().ok_or("no server is given")?;
                format!("transport: stdio, command: {}, args: {}", json!(command), json!(arguments))
            }
            "http" => format!("transport: streamable_http, url: {}", json!(options.url())),
            other => return Err(format!("there are no servers over {other:?} here").into()),
        };
        // Writing to a string does not fail.
        let _ =
            writeln!(text, "  s{at}: {{truely-stateless: true, {reach}, transform: [{{prefix: s{at}_}}]}}");
    }
    let path = std::env::temp_dir().join(format!("mcp-benches-{}.yaml", std::process::id()));
    std::fs::write(&path, text)?;
    let loaded = load(&{
        let mut request = LoadRequest::new(&path);
        request.dialect = Some(Dialect::Dominds);
        request
    });
    std::fs::remove_file(&path)?;
    Ok(loaded?.into_desired()?)
}

async fn ready(host: &Host) -> Result<(), Failure> {
    host.wait_until_ready().await;
    let published = host.snapshot();
    match published.servers.iter().find(|it| it.state != ServerState::Ready) {
        None => Ok(()),
        Some(it) => Err(format!("{} is not ready: {:?}", it.id, it.state).into()),
    }
}

/// Servers in one host: at once, in sequence, or at once with known server information.
async fn fleet(options: &Options) -> Result<Value, Failure> {
    let mut begun = Instant::now();
    let host = Host::start(HostOptions::default());
    let mut published = host.subscribe();
    let count = options.count();
    if options.text("--mode", "par") == "again" {
        host.apply(desired_servers(options, count)?).await;
        ready(&host).await?;
        host.apply(DesiredServers::default()).await;
        published.wait_for(|it| it.catalog.tools().is_empty()).await?;
        scenario::pause().await;
        begun = Instant::now();
    }
    let mut first = None;
    match options.text("--mode", "par") {
        "seq" => {
            for so_far in 1..=count {
                host.apply(desired_servers(options, so_far)?).await;
                ready(&host).await?;
                first.get_or_insert_with(|| begun.elapsed());
            }
        }
        _ => {
            host.apply(desired_servers(options, count)?).await;
            published.wait_for(|it| !it.catalog.tools().is_empty()).await?;
            first = Some(begun.elapsed());
            ready(&host).await?;
        }
    }
    let ready = begun.elapsed();
    let mut line = scenario::fleet_line(options, (first.unwrap_or_default(), ready)).await;
    line["tools"] = json!(host.snapshot().catalog.tools().len());
    drop(published);
    let begun = Instant::now();
    host.shutdown().await;
    line["close_all_ms"] = json!(begun.elapsed().as_secs_f64() * 1e3);
    line["hwm_kb"] = json!(meter::status("VmHWM"));
    Ok(line)
}

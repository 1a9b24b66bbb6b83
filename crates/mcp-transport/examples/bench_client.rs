//! A client for measuring: `bench_client --scenario S --n N … -- SERVER ARGV…` prints one line of JSON.
//!
//! It is an ordinary user of the public interface: deadlines, cancellation, callbacks and the state are all on.

#![expect(clippy::print_stdout, reason = "its one line of output is what it is for")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use mcp_model::{Endpoint, RawJson, Secret, StdioEndpoint};
use mcp_transport::{CallOptions, DialOptions, Session, SessionOptions, dialer};
use serde_json::{Value, json};

const TEXT: &str = "The quick brown fox jumps over the lazy dog. \
                    The quick brown fox jumps over the lazy dog 0123456789.";

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct Options {
    named: BTreeMap<String, String>,
    server: Vec<String>,
}

impl Options {
    fn read() -> Options {
        let mut arguments = std::env::args().skip(1);
        let mut named = BTreeMap::new();
        while let Some(name) = arguments.next() {
            if name == "--" {
                break;
            }
            named.insert(name, arguments.next().unwrap_or_default());
        }
        Options { named, server: arguments.collect() }
    }

    fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.named.get(name).map_or(default, String::as_str)
    }

    fn number(&self, name: &str, default: usize) -> usize {
        self.named.get(name).and_then(|it| it.parse().ok()).unwrap_or(default)
    }
}

fn main() -> Result<(), Failure> {
    let options = Options::read();
    let runtime = match options.text("--rt", "mt") {
        "ct" => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        _ => tokio::runtime::Builder::new_multi_thread().enable_all().build()?,
    };
    // In a task of its own, as a server of calls would be, not on the thread that blocks.
    let mut line =
        runtime.block_on(async { tokio::spawn(async move { scenario(&options).await }).await })??;
    line["hwm_kb"] = json!(status("VmHWM"));
    line["rss_kb"] = json!(status("VmRSS"));
    println!("{line}");
    Ok(())
}

async fn scenario(options: &Options) -> Result<Value, Failure> {
    let count = options.number("--n", 1000);
    match options.text("--scenario", "seq") {
        "connect" => {
            let mut times = Vec::new();
            for _ in 0..count {
                let begun = Instant::now();
                let session = connect(options).await?;
                session.list_tools().await?;
                times.push(begun.elapsed());
                session.close(Duration::from_secs(1)).await;
            }
            let first = times[0];
            let mut line = summary(times);
            line["first_ms"] = json!(first.as_secs_f64() * 1e3);
            Ok(line)
        }
        "seq" => calls(options, 1).await,
        "conc" => calls(options, options.number("--conc", 1)).await,
        "big" => {
            let session = connect(options).await?;
            let arguments = RawJson::of(&json!({ "kib": options.number("--kib", 1024) }))?;
            session.call_tool("big", &arguments, CallOptions::default()).await?;
            let (cpu, mut times) = (cpu(), Vec::new());
            for _ in 0..count {
                let begun = Instant::now();
                let text = session.call_tool("big", &arguments, CallOptions::default()).await?.value.text();
                times.push(begun.elapsed());
                drop(text);
            }
            Ok(with_cpu(summary(times), cpu, count))
        }
        "list" => {
            let session = connect(options).await?;
            let before = status("VmRSS");
            let (mut times, mut kept) = (Vec::new(), None);
            for _ in 0..count {
                let begun = Instant::now();
                let list = session.list_tools().await?;
                times.push(begun.elapsed());
                kept.get_or_insert(list);
            }
            let first = times[0];
            let mut line = summary(times);
            line["first_ms"] = json!(first.as_secs_f64() * 1e3);
            line["tools"] = json!(kept.map_or(0, |it| it.items.len()));
            line["rss_delta_kb"] = json!(status("VmRSS").saturating_sub(before));
            Ok(line)
        }
        "sleep" => {
            let session = Arc::new(connect(options).await?);
            let arguments = RawJson::of(&json!({ "ms": options.number("--ms", 50) }))?;
            let begun = Instant::now();
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..options.number("--conc", 1) {
                let (session, arguments) = (Arc::clone(&session), arguments.clone());
                tasks.spawn(async move {
                    session.call_tool("sleep", &arguments, CallOptions::default()).await.map(drop)
                });
            }
            while let Some(done) = tasks.join_next().await {
                done??;
            }
            Ok(json!({ "makespan_ms": begun.elapsed().as_secs_f64() * 1e3 }))
        }
        "hol" => {
            let session = Arc::new(connect(options).await?);
            let arguments = RawJson::of(&json!({ "kib": options.number("--kib", 4096) }))?;
            let begun = Instant::now();
            let beside = Arc::clone(&session);
            let big = tokio::spawn(async move {
                for _ in 0..count {
                    beside.call_tool("big", &arguments, CallOptions::default()).await?;
                }
                Ok::<_, mcp_transport::CallError>(())
            });
            let mut times = Vec::new();
            while !big.is_finished() {
                let begun = Instant::now();
                echo(&session).await?;
                times.push(begun.elapsed());
            }
            big.await??;
            let mut line = summary(times);
            line["big_ms"] = json!(begun.elapsed().as_secs_f64() * 1e3 / count as f64);
            Ok(line)
        }
        other => Err(format!("no scenario {other:?}").into()),
    }
}

async fn calls(options: &Options, callers: usize) -> Result<Value, Failure> {
    let session = Arc::new(connect(options).await?);
    session.list_tools().await?;
    many(&session, callers, options.number("--warmup", 200)).await?;
    let (begun, cpu) = (Instant::now(), cpu());
    let count = options.number("--n", 1000);
    let times = many(&session, callers, count).await?;
    let elapsed = begun.elapsed();
    let mut line = with_cpu(summary(times), cpu, count);
    line["calls_per_s"] = json!(count as f64 / elapsed.as_secs_f64());
    Ok(line)
}

async fn many(session: &Arc<Session>, callers: usize, count: usize) -> Result<Vec<Duration>, Failure> {
    let left = Arc::new(AtomicI64::new(i64::try_from(count)?));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..callers {
        let (session, left) = (Arc::clone(session), Arc::clone(&left));
        tasks.spawn(async move {
            let mut times = Vec::with_capacity(1024);
            while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                let begun = Instant::now();
                echo(&session).await?;
                times.push(begun.elapsed());
            }
            Ok::<_, Failure>(times)
        });
    }
    let mut res = Vec::with_capacity(count);
    while let Some(times) = tasks.join_next().await {
        res.extend(times??);
    }
    Ok(res)
}

async fn echo(session: &Session) -> Result<(), Failure> {
    let arguments = RawJson::of(&json!({ "text": TEXT }))?;
    let answer = session.call_tool("echo", &arguments, CallOptions::default()).await?;
    let got: usize = answer.value.content.iter().map(mcp_model::Content::len).sum();
    if got == TEXT.len() { Ok(()) } else { Err(format!("the echo has {got} bytes").into()) }
}

async fn connect(options: &Options) -> Result<Session, Failure> {
    let endpoint = match options.text("--transport", "stdio") {
        "stdio" => {
            let (command, arguments) = options.server.split_first().ok_or("no server is given")?;
            let mut endpoint = StdioEndpoint::new(command);
            endpoint.args = arguments.iter().map(|it| Secret::new(it.as_str())).collect();
            Endpoint::Stdio(endpoint)
        }
        #[cfg(feature = "websocket")]
        "websocket" => Endpoint::WebSocket(mcp_model::UrlEndpoint::new(options.text("--url", "").parse()?)),
        #[cfg(feature = "sse")]
        "sse" => Endpoint::Sse(mcp_model::UrlEndpoint::new(options.text("--url", "").parse()?)),
        #[cfg(feature = "http")]
        "http" => Endpoint::Http(mcp_model::UrlEndpoint::new(options.text("--url", "").parse()?)),
        other => return Err(format!("no transport {other:?}").into()),
    };
    let dial = dialer(&endpoint, &DialOptions::default())?;
    Ok(Session::connect(dial, SessionOptions::default()).await?)
}

fn summary(mut times: Vec<Duration>) -> Value {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
    json!({ "p50_us": at(0.5), "p99_us": at(0.99), "n": times.len() })
}

fn with_cpu(mut line: Value, before: f64, count: usize) -> Value {
    line["cpu_us_per_call"] = json!((cpu() - before) / count as f64);
    line
}

/// Processor time of this process so far, in microseconds.
fn cpu() -> f64 {
    let read = || -> Option<f64> {
        let total: u64 = std::fs::read_dir("/proc/self/task")
            .ok()?
            .filter_map(|it| {
                let path = it.ok()?.path().join("schedstat");
                std::fs::read_to_string(path).ok()?.split(' ').next()?.parse::<u64>().ok()
            })
            .sum();
        Some(total as f64 / 1e3)
    };
    read().unwrap_or(f64::NAN)
}

/// A line of `/proc/self/status`, in KiB.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

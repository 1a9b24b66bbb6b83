//! The scenarios, the same for every client.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::meter::{self, Meter, summary};
use crate::options::Options;
use crate::{Failure, TEXT};

/// A tool call.
#[derive(Debug, Clone, Copy)]
pub enum Ask {
    /// Returns [`TEXT`].
    Echo,
    /// Returns this many KiB of text.
    Big(usize),
    /// Responds after this many milliseconds.
    Sleep(usize),
}

impl Ask {
    /// The name of the tool.
    pub fn tool(self) -> &'static str {
        match self {
            Ask::Echo => "echo",
            Ask::Big(_) => "big",
            Ask::Sleep(_) => "sleep",
        }
    }

    /// The arguments.
    pub fn arguments(self) -> Value {
        match self {
            Ask::Echo => json!({ "text": TEXT }),
            Ask::Big(kib) => json!({ "kib": kib }),
            Ask::Sleep(milliseconds) => json!({ "ms": milliseconds }),
        }
    }
}

/// A connection to a server, usable by many callers.
pub trait Client: Send + Sync + Sized + 'static {
    /// The kept form of a list of tools.
    type List: Send + 'static;

    /// Connects.
    fn connect(options: &Options) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// Calls a tool and returns the length of the result text.
    fn call(&self, ask: Ask) -> impl Future<Output = Result<usize, Failure>> + Send;

    /// Lists all tools.
    fn list(&self) -> impl Future<Output = Result<Self::List, Failure>> + Send;

    /// The number of tools in a list.
    fn count(list: &Self::List) -> usize;

    /// Closes the connection.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// Runs the scenario and returns its JSON line.
pub async fn run<C: Client>(options: &Options) -> Result<Value, Failure> {
    let mut line = match options.scenario() {
        "connect" => connect::<C>(options).await,
        "seq" => calls::<C>(options, 1).await,
        "conc" => calls::<C>(options, options.number("--conc", 1)).await,
        "big" => big::<C>(options).await,
        "list" => list::<C>(options).await,
        "fleet" => fleet::<C>(options).await,
        "sleep" => sleep::<C>(options).await,
        "hol" => beside::<C>(options).await,
        other => Err(format!("there is no scenario {other:?}").into()),
    }?;
    finish(&mut line);
    Ok(line)
}

/// Adds the common fields.
pub fn finish(line: &mut Value) {
    line["hwm_kb"] = json!(meter::status("VmHWM"));
    if line.get("rss_kb").is_none() {
        line["rss_kb"] = json!(meter::status("VmRSS"));
    }
}

async fn connect<C: Client>(options: &Options) -> Result<Value, Failure> {
    let (mut times, mut closing) = (Vec::new(), Vec::new());
    for _ in 0..options.count() {
        let begun = Instant::now();
        let client = C::connect(options).await?;
        client.list().await?;
        times.push(begun.elapsed());
        let begun = Instant::now();
        client.close().await;
        closing.push(begun.elapsed());
    }
    let mut line = summary(times);
    line["close_p50_us"] = summary(closing)["p50_us"].clone();
    Ok(line)
}

async fn calls<C: Client>(options: &Options, callers: usize) -> Result<Value, Failure> {
    let client = Arc::new(C::connect(options).await?);
    client.list().await?;
    many(&client, callers, options.number("--warmup", 200)).await?;
    let meter = Meter::begin();
    let times = many(&client, callers, options.count()).await?;
    let mut line = json!({});
    meter.end(options.count(), &mut line);
    for (name, value) in summary(times).as_object().into_iter().flatten() {
        line[name.as_str()] = value.clone();
    }
    Ok(line)
}

async fn many<C: Client>(client: &Arc<C>, callers: usize, count: usize) -> Result<Vec<Duration>, Failure> {
    let left = Arc::new(AtomicI64::new(i64::try_from(count)?));
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (client, left) = (Arc::clone(client), Arc::clone(&left));
        tasks.spawn(async move {
            let mut times = Vec::with_capacity(1024);
            while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                let begun = Instant::now();
                echo(&*client).await?;
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

/// One echo with a check of its result.
pub async fn echo<C: Client>(client: &C) -> Result<(), Failure> {
    let got = client.call(Ask::Echo).await?;
    if got == TEXT.len() { Ok(()) } else { Err(format!("the echo has {got} bytes").into()) }
}

async fn big<C: Client>(options: &Options) -> Result<Value, Failure> {
    let client = C::connect(options).await?;
    let kib = options.number("--kib", 1024);
    let idle = meter::status("VmRSS");
    client.call(Ask::Big(kib)).await?;
    let (meter, mut times) = (Meter::begin(), Vec::new());
    for _ in 0..options.count() {
        let begun = Instant::now();
        let got = client.call(Ask::Big(kib)).await?;
        times.push(begun.elapsed());
        if got < kib * 1000 {
            return Err(format!("the result has {got} bytes").into());
        }
    }
    let mut line = summary(times);
    meter.end(options.count(), &mut line);
    line["grown_kb"] = json!(meter::status("VmHWM").saturating_sub(idle));
    Ok(line)
}

async fn list<C: Client>(options: &Options) -> Result<Value, Failure> {
    let client = C::connect(options).await?;
    let before = meter::status("VmRSS");
    let (mut times, mut kept) = (Vec::new(), None);
    for _ in 0..options.count() {
        let begun = Instant::now();
        let list = client.list().await?;
        times.push(begun.elapsed());
        kept.get_or_insert(list);
    }
    // After the pause, unused memory may be returned.
    tokio::time::sleep(Duration::from_millis(options.number("--rest-ms", 0) as u64)).await;
    let after = meter::status("VmRSS");
    let mut line = summary(times);
    line["tools"] = json!(kept.as_ref().map_or(0, C::count));
    line["rss_kb"] = json!(after);
    line["rss_delta_kb"] = json!(after.saturating_sub(before));
    Ok(line)
}

/// Servers at once, in sequence (`--mode seq`), or at once in a process that knows them (`again`).
async fn fleet<C: Client>(options: &Options) -> Result<Value, Failure> {
    if options.text("--mode", "par") == "again" {
        close(begin::<C>(options).await?).await;
        pause().await;
    }
    let begun = Instant::now();
    let all = begin::<C>(options).await?;
    let ready = begun.elapsed();
    let first = all.iter().map(|it| it.at - begun).min();
    let mut line = fleet_line(options, (first.unwrap_or_default(), ready)).await;
    let begun = Instant::now();
    close(all).await;
    line["close_all_ms"] = json!(begun.elapsed().as_secs_f64() * 1e3);
    Ok(line)
}

/// A server of a fleet with its list.
struct StartedServer<C: Client> {
    client: C,
    _list: C::List,
    at: Instant,
}

async fn begin<C: Client>(options: &Options) -> Result<Vec<StartedServer<C>>, Failure> {
    let one = |options: Options| async move {
        let client = C::connect(&options).await?;
        let list = client.list().await?;
        Ok::<_, Failure>(StartedServer { client, _list: list, at: Instant::now() })
    };
    let mut all = Vec::new();
    if options.text("--mode", "par") == "seq" {
        for _ in 0..options.count() {
            all.push(one(options.clone()).await?);
        }
        return Ok(all);
    }
    let mut tasks: JoinSet<_> = (0..options.count()).map(|_| one(options.clone())).collect();
    while let Some(done) = tasks.join_next().await {
        all.push(done??);
    }
    Ok(all)
}

async fn close<C: Client>(all: Vec<StartedServer<C>>) {
    all.into_iter().map(|it| it.client.close()).collect::<JoinSet<_>>().join_all().await;
}

/// Waits until the processes of the previous run have ended.
pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// The fields of a fleet; with `--idle-ms`, the wake-ups per second while idle.
pub async fn fleet_line(options: &Options, (first, ready): (Duration, Duration)) -> Value {
    let mut line = json!({
        "first_tool_ms": first.as_secs_f64() * 1e3,
        "all_ready_ms": ready.as_secs_f64() * 1e3,
        "servers": options.count(),
        "rss_kb": meter::status("VmRSS"),
        "threads": meter::status("Threads"),
        "fds": meter::open_files(),
    });
    let idle = Duration::from_millis(options.number("--idle-ms", 0) as u64);
    if !idle.is_zero() {
        // Work after the start is over by then.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let before = meter::wakeups();
        tokio::time::sleep(idle).await;
        line["wakeups_per_s"] = json!((meter::wakeups() - before) as f64 / idle.as_secs_f64());
    }
    line
}

async fn sleep<C: Client>(options: &Options) -> Result<Value, Failure> {
    let client = Arc::new(C::connect(options).await?);
    let milliseconds = options.number("--ms", 50);
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..options.number("--conc", 1) {
        let client = Arc::clone(&client);
        tasks.spawn(async move { client.call(Ask::Sleep(milliseconds)).await.map(drop) });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(json!({ "makespan_ms": begun.elapsed().as_secs_f64() * 1e3 }))
}

async fn beside<C: Client>(options: &Options) -> Result<Value, Failure> {
    let client = Arc::new(C::connect(options).await?);
    let (count, kib) = (options.count(), options.number("--kib", 4096));
    let begun = Instant::now();
    let other = Arc::clone(&client);
    let big = tokio::spawn(async move {
        for _ in 0..count {
            other.call(Ask::Big(kib)).await?;
        }
        Ok::<_, Failure>(())
    });
    let mut times = Vec::new();
    while !big.is_finished() {
        let begun = Instant::now();
        echo(&*client).await?;
        times.push(begun.elapsed());
    }
    big.await??;
    let mut line = summary(times);
    line["big_ms"] = json!(begun.elapsed().as_secs_f64() * 1e3 / count as f64);
    Ok(line)
}

//! Load on a gateway: `load calls|hold|list --address HOST:PORT …` prints one line of JSON.
//!
//! | command | what is done |
//! |---|---|
//! | `calls` | `--conc` connections call `--tool` for `--seconds`, each again when its call has ended (with `--pause-ms` after it), or all together `--rate` times a second, measured from the planned time |
//! | `hold` | opens `--n` sessions, with `--streams 1` each with its event stream, and keeps them until standard input ends; prints `held` first |
//! | `list` | requests the list of tools `--n` times |
//!
//! Connections use the tokens `token-0`, `token-1`, … up to `--tokens`, from `--first-token` on; without it no token.

#![expect(clippy::print_stdout, reason = "its lines of output are what it is for")]

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_benches::Failure;
use mcp_benches::gateway_client::{GatewayClient, LIST_MESSAGE, call_message};
use mcp_benches::meter::summary;
use mcp_benches::options::Options;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

fn main() -> Result<(), Failure> {
    let command = std::env::args().nth(1).unwrap_or_default();
    let options = Options::of(std::env::args().skip(2));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let line = runtime.block_on(async {
        match command.as_str() {
            "calls" => calls(&options).await,
            "hold" => hold(&options).await,
            "list" => list(&options).await,
            _ => Err("load calls|hold|list --address HOST:PORT …".into()),
        }
    })?;
    println!("{line}");
    Ok(())
}

/// The connection with this number.
async fn connect(options: &Options, number: usize) -> Result<GatewayClient, Failure> {
    let token = match options.number("--tokens", 0) {
        0 => None,
        tokens => Some(format!("token-{:020}", options.number("--first-token", 0) + number % tokens)),
    };
    let mut client = GatewayClient::connect(options.text("--address", ""), token.as_deref()).await?;
    client.open_session().await?;
    Ok(client)
}

/// When to call.
#[derive(Clone)]
enum Schedule {
    /// Again when the last call has ended, and this pause is over, until the end.
    Closed { pause: Duration, end: Instant },
    /// At these times, whether or not other calls have ended.
    Open(Arc<Mutex<UnboundedReceiver<Instant>>>),
}

impl Schedule {
    fn start(options: &Options) -> Result<Schedule, Failure> {
        let seconds = Duration::from_secs_f64(options.text("--seconds", "1").parse()?);
        let rate: f64 = options.text("--rate", "0").parse()?;
        let begun = Instant::now();
        if rate == 0.0 {
            let pause = Duration::from_millis(options.number("--pause-ms", 0) as u64);
            return Ok(Schedule::Closed { pause, end: begun + seconds });
        }
        let (sender, times) = tokio::sync::mpsc::unbounded_channel();
        // A thread, because timers of Tokio have a resolution of 1 ms.
        std::thread::spawn(move || {
            for number in 0.. {
                let time = begun + Duration::from_secs_f64(f64::from(number) / rate);
                std::thread::sleep(time.saturating_duration_since(Instant::now()));
                if time > begun + seconds || sender.send(time).is_err() {
                    return;
                }
            }
        });
        Ok(Schedule::Open(Arc::new(Mutex::new(times))))
    }

    /// Waits for the next call and returns its planned time; `None` at the end.
    async fn next(&self, calls: usize) -> Option<Instant> {
        match self {
            Schedule::Open(times) => times.lock().await.recv().await,
            Schedule::Closed { pause, end } => {
                if !pause.is_zero() && calls > 0 {
                    tokio::time::sleep(*pause).await;
                }
                Some(Instant::now()).filter(|now| now < end)
            }
        }
    }
}

async fn calls(options: &Options) -> Result<Value, Failure> {
    let mut clients = Vec::new();
    for number in 0..options.number("--conc", 1) {
        let mut client = connect(options, number).await?;
        let request = client.request("", &call_message("", options.text("--tool", "s0__echo")));
        // The first call of a token may build its lists.
        client.send(&request).await?;
        clients.push((client, request));
    }
    let begun = Instant::now();
    let schedule = Schedule::start(options)?;
    let mut tasks = JoinSet::new();
    for (mut client, request) in clients {
        let schedule = schedule.clone();
        tasks.spawn(async move {
            let mut times = Vec::new();
            while let Some(planned) = schedule.next(times.len()).await {
                client.send(&request).await?;
                times.push(planned.elapsed());
            }
            Ok::<_, Failure>(times)
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    let calls = times.len() as f64;
    let mut line = summary(times);
    line["calls_per_s"] = json!(calls / begun.elapsed().as_secs_f64());
    Ok(line)
}

async fn hold(options: &Options) -> Result<Value, Failure> {
    let begun = Instant::now();
    let mut clients = Vec::new();
    for number in 0..options.count() {
        let mut client = connect(options, number).await?;
        if options.number("--streams", 0) > 0 {
            client.open_stream().await?;
        }
        clients.push(client);
    }
    println!("held");
    let elapsed = begun.elapsed();
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(json!({ "open_us": elapsed.as_secs_f64() * 1e6 / options.count() as f64 }))
}

async fn list(options: &Options) -> Result<Value, Failure> {
    let mut client = connect(options, 0).await?;
    let mut times = Vec::new();
    for _ in 0..options.count() {
        let begun = Instant::now();
        client.send(&client.request("", LIST_MESSAGE)).await?;
        times.push(begun.elapsed());
    }
    Ok(summary(times))
}

//! Measures how much a misbehaving server slows down another server of the same host, the neighbour: `cargo bench
//! -p mcp-host --bench neighbours [-- ROUNDS]` prints, for each kind of misbehaviour, the neighbour's calls per
//! second compared with those that it answers alone.
//!
//! Rounds with and without the misbehaving server alternate in one run; the neighbour keeps running. A server that
//! floods also uses CPU time, which is not the host's fault. Therefore there is a third kind of round, in which
//! the same program runs without the host. At the end the neighbour's process is killed during a call.

#![expect(clippy::print_stdout, reason = "its few lines of output are what it is for")]

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_host::{Host, HostOptions, LoadRequest, ProcessOptions, RestartPolicy, Supervision, ToolCall, load};
use mcp_model::{RawJson, ServerId};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The duration of a round, in which calls are counted.
const ROUND: Duration = Duration::from_secs(1);

/// The number of concurrent callers.
const CALLERS: usize = 4;

/// The kinds of misbehaviour, which are arguments of this program.
const BAD: [&str; 4] = ["mute", "hang", "stderr", "list_changed"];

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["demo-server", pid] => {
            std::fs::write(pid, std::process::id().to_string())?;
            Ok(runtime()?.block_on(mcp_demo::serve_stdio())?)
        }
        ["bad-server", kind] => serve(kind),
        [rounds] => runtime()?.block_on(measure(rounds.parse()?)),
        _ => runtime()?.block_on(measure(5)),
    }
}

/// Runs a server that misbehaves in one way.
fn serve(kind: &str) -> Outcome<()> {
    match kind {
        "stderr" => drop(std::thread::spawn(|| {
            let line = format!("{}\n", "the sky is falling ".repeat(5));
            while std::io::stderr().write_all(line.as_bytes()).is_ok() {}
        })),
        "list_changed" => drop(std::thread::spawn(|| {
            let line = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";
            while std::io::stdout().write_all(line.as_bytes()).is_ok() {}
        })),
        _ => {}
    }
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let (id, method) = (request["id"].clone(), request["method"].as_str().unwrap_or_default());
        if id.is_null() || kind == "mute" || kind == "hang" && method == "tools/call" {
            continue;
        }
        let answer = match method {
            "initialize" => json!({"result": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "bad", "version": "1"},
            }}),
            "tools/list" => {
                json!({"result": {"tools": [{"name": "hang", "inputSchema": {"type": "object"}}]}})
            }
            "ping" => json!({"result": {}}),
            _ => json!({"error": {"code": -1, "message": "what?"}}),
        };
        let mut answer = answer;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = id;
        std::io::stdout().write_all(format!("{answer}\n").as_bytes())?;
    }
    Ok(())
}

/// Starts the same program without a host that reads its output.
fn beside(kind: &str) -> Outcome<Child> {
    let null = Stdio::null;
    let command = &mut Command::new(std::env::current_exe()?);
    command.args(["bad-server", kind]).stdin(Stdio::piped()).stdout(null()).stderr(null());
    Ok(command.spawn()?)
}

async fn measure(rounds: usize) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("mcp.yaml");
    let pid = folder.path().join("pid");
    // The restarts of the killed neighbour must not be suspended.
    let pause = Duration::from_millis(50);
    let policy = RestartPolicy {
        initial_backoff: pause,
        max_backoff: pause,
        max_failures: u32::MAX,
        ..RestartPolicy::default()
    };
    let host = Arc::new(Host::start(HostOptions {
        processes: ProcessOptions {
            own_executable: Some(std::env::current_exe()?),
            ..ProcessOptions::default()
        },
        supervision: Supervision::Restart(policy),
        ..HostOptions::default()
    }));
    apply(&host, &path, &pid, None).await?;
    for kind in BAD {
        let (mut alone, mut bad, mut unheard) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            alone.push(count(&host).await?);
            let mut child = beside(kind)?;
            unheard.push(count(&host).await?);
            child.kill()?;
            child.wait()?;
            apply(&host, &path, &pid, Some(kind)).await?;
            let mut pending = JoinSet::new();
            if kind == "hang" {
                for _ in 0..32 {
                    let host = Arc::clone(&host);
                    pending.spawn(async move { Some(host.call(call("b_hang", "{}")?).await) });
                }
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            bad.push(count(&host).await?);
            drop(pending);
            apply(&host, &path, &pid, None).await?;
        }
        let share = |of: &[f64]| median(bad.iter().zip(of).map(|(bad, of)| bad / of).collect());
        println!(
            "{kind}: {:.0} calls/s beside it, {:.0} alone, {:.0} beside one that nobody hears; the ratios' medians {:.2} \
             and {:.2}",
            median(bad.clone()),
            median(alone.clone()),
            median(unheard.clone()),
            share(&alone),
            share(&unheard)
        );
    }
    let mut ends = Vec::new();
    while ends.len() < rounds * 2 {
        ends.extend(kill(&host, &pid).await?.map(|it| it.as_secs_f64() * 1000.0));
    }
    let longest = ends.iter().copied().fold(0.0, f64::max);
    println!(
        "killed in mid-call: the call ends after {:.1} ms, at the longest {longest:.1} ms",
        median(ends)
    );
    host.shutdown().await;
    Ok(())
}

/// Applies a configuration with the neighbour and optionally a misbehaving server.
async fn apply(host: &Host, path: &Path, pid: &Path, bad: Option<&str>) -> Outcome<()> {
    let entry = |name: &str, arguments: &str| {
        format!(
            "  {name}: {{truely-stateless: true, transport: stdio, command: mcp-host, args: [{arguments}], transform: \
             [{{prefix: {name}_}}]}}\n"
        )
    };
    let mut text =
        format!("version: 1\nservers:\n{}", entry("a", &format!("demo-server, '{}'", pid.display())));
    text.extend(bad.map(|kind| entry("b", &format!("bad-server, {kind}"))));
    std::fs::write(path, text)?;
    host.apply(load(&LoadRequest::new(path))?.desired).await;
    host.wait_for(&[ServerId::parse("a")?]).await;
    Ok(())
}

/// Measures the neighbour's calls per second.
async fn count(host: &Arc<Host>) -> Outcome<f64> {
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let host = Arc::clone(host);
        callers.spawn(async move {
            let mut res = 0_u32;
            while begun.elapsed() < ROUND {
                let result = host.call(call("a_echo", r#"{"text":"hello"}"#)?).await;
                res += u32::from(result.success);
            }
            Some(res)
        });
    }
    let made = callers.join_all().await.into_iter().flatten().sum::<u32>();
    Ok(f64::from(made) / begun.elapsed().as_secs_f64())
}

/// Measures the time from the kill to the end of the running call, whose error must contain the reason. `None` if
/// the call had ended before.
async fn kill(host: &Host, pid: &Path) -> Outcome<Option<Duration>> {
    let mut published = host.subscribe();
    published.wait_for(|it| it.catalog.tool("a_sleep").is_some()).await?;
    let under_way = Arc::new(Notify::new());
    let tell = Arc::clone(&under_way);
    let arguments = RawJson::parse(r#"{"ms": 60000, "steps": 600}"#.into())?;
    let call = host.call(ToolCall {
        progress: Some(Arc::new(move |_| tell.notify_one())),
        ..ToolCall::new("a_sleep", arguments)
    });
    let mut call = std::pin::pin!(call);
    tokio::select! {
        // The call was sent to the process that was killed before, whose end was not noticed yet.
        _ = &mut call => return Ok(None),
        () = under_way.notified() => {}
    }
    let id = std::fs::read_to_string(pid)?;
    let begun = Instant::now();
    // The duration of the `kill` command is included.
    let sent = Command::new("kill").args(["-KILL", &id]).status()?.success();
    let result = call.await;
    let end = begun.elapsed();
    let message = result.error.map(|it| it.message).unwrap_or_default();
    if !sent || !message.contains("SIGKILL") {
        return Err(format!("it was not killed, or nobody knows: {message}").into());
    }
    Ok(Some(end))
}

fn call(name: &str, arguments: &'static str) -> Option<ToolCall> {
    Some(ToolCall::new(name, RawJson::parse(arguments.into()).ok()?))
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

//! Isolation of servers: how much a misbehaving server slows down a healthy one of the same host. `cargo bench -p
//! mcp-host-runtime --bench isolation [-- ROUNDS]` prints the calls per second of the healthy server, for each kind of
//! misbehaviour and for the healthy server alone.
//!
//! Rounds with and without the misbehaving server alternate; the healthy server keeps running. A server that floods
//! also uses CPU time, which the host cannot avoid. Therefore a third kind of round runs the same program without the
//! host. At the end the healthy server is killed during a call, and the time until the call fails is measured.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_host_model::{RawJson, ServerId};
use mcp_host_runtime::{Host, HostOptions, LoadRequest, RestartPolicy, Supervision, ToolCall, load};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The duration of a round, in which calls are counted.
const ROUND: Duration = Duration::from_secs(1);

/// The number of concurrent callers.
const CALLERS: usize = 4;

/// The kinds of misbehaviour, which are arguments of this program.
const MISBEHAVIOURS: [&str; 4] = ["mute", "hang", "stderr", "list_changed"];

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["demo-server", pid] => {
            std::fs::write(pid, std::process::id().to_string())?;
            Ok(runtime()?.block_on(mcp_host_demo::serve_stdio())?)
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
fn run_without_host(kind: &str) -> Outcome<Child> {
    let null = Stdio::null;
    let command = &mut Command::new(std::env::current_exe()?);
    command.args(["bad-server", kind]).stdin(Stdio::piped()).stdout(null()).stderr(null());
    Ok(command.spawn()?)
}

async fn measure(rounds: usize) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("mcp.yaml");
    let pid = folder.path().join("pid");
    // The restarts of the killed server must not be suspended.
    let pause = Duration::from_millis(50);
    let mut policy = RestartPolicy::default();
    policy.initial_backoff = pause;
    policy.max_backoff = pause;
    policy.max_failures = u32::MAX;
    let host = Arc::new(Host::start({
        let mut res = HostOptions::default();
        res.processes.own_executable = Some(std::env::current_exe()?);
        res.supervision = Supervision::Restart(policy);
        res
    }));
    apply(&host, &path, &pid, None).await?;
    for kind in MISBEHAVIOURS {
        let (mut alone, mut in_host, mut outside) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            alone.push(count(&host).await?);
            let mut child = run_without_host(kind)?;
            outside.push(count(&host).await?);
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
            in_host.push(count(&host).await?);
            drop(pending);
            apply(&host, &path, &pid, None).await?;
        }
        let ratio = |base: &[f64]| median(in_host.iter().zip(base).map(|(rate, base)| rate / base).collect());
        println!(
            "{kind}: {:.0} calls/s in the same host, {:.0} alone, {:.0} with the program outside of the host; median \
             ratios {:.2} and {:.2}",
            median(in_host.clone()),
            median(alone.clone()),
            median(outside.clone()),
            ratio(&alone),
            ratio(&outside)
        );
    }
    let mut ends = Vec::new();
    while ends.len() < rounds * 2 {
        ends.extend(kill(&host, &pid).await?.map(|it| it.as_secs_f64() * 1000.0));
    }
    let longest = ends.iter().copied().fold(0.0, f64::max);
    println!(
        "killed during a call: the call fails after {:.1} ms (median), {longest:.1} ms (maximum)",
        median(ends)
    );
    host.shutdown().await;
    Ok(())
}

/// Applies a configuration with the healthy server and optionally a misbehaving server.
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
    host.wait_for_servers(&[ServerId::parse("a")?]).await;
    Ok(())
}

/// Measures the calls per second of the healthy server.
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
    let begun = Arc::new(Notify::new());
    let notify = Arc::clone(&begun);
    let arguments = RawJson::parse(r#"{"ms": 60000, "steps": 600}"#.into())?;
    let call = host.call({
        let mut call = ToolCall::new("a_sleep", arguments);
        call.options.context.progress = Some(Arc::new(move |_| notify.notify_one()));
        call
    });
    let mut call = std::pin::pin!(call);
    tokio::select! {
        // The call was sent to the process that was killed before, whose end was not noticed yet.
        _ = &mut call => return Ok(None),
        () = begun.notified() => {}
    }
    let id = std::fs::read_to_string(pid)?;
    let killed = Instant::now();
    // The duration of the `kill` command is included.
    let sent = Command::new("kill").args(["-KILL", &id]).status()?.success();
    let result = call.await;
    let end = killed.elapsed();
    let message = result.error.map(|it| it.message).unwrap_or_default();
    if !sent || !message.contains("SIGKILL") {
        return Err(format!("the process was not killed, or the error does not say so: {message}").into());
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

//! Measures how long it takes until an edit takes effect: `cargo bench -p mcp-host-runtime --bench reload [-- ROUNDS]`
//! prints a line for each kind of edit of a file with 20 servers, and the time until slow servers are ready.
//!
//! The servers are this program, run as the bundled demo server in its own processes. The time is measured from
//! the write of the file until a generation contains the edit. The debounce is subtracted, because it is
//! configurable. An edit that requires a new process is compared with the start of a single server.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use mcp_host_runtime::{FollowRequest, Host, HostOptions, HostSnapshot, LoadRequest, ServerState, load};

const SERVERS: usize = 20;

const DEBOUNCE: Duration = Duration::from_millis(100);

/// The delay before a slow server starts.
const SLOW: Duration = Duration::from_millis(250);

/// An edit of the first server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    /// An edit of its names.
    Names,
    /// An edit of its names and arguments, which requires a new process.
    Process,
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Cargo passes `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|it| it != "--bench");
    match arguments.next().as_deref() {
        Some("demo-server") => Ok(runtime.block_on(mcp_host_demo::serve_stdio())?),
        Some("slow-server") => {
            std::thread::sleep(SLOW);
            Ok(runtime.block_on(mcp_host_demo::serve_stdio())?)
        }
        Some(rounds) => runtime.block_on(measure(rounds.parse()?)),
        None => runtime.block_on(measure(20)),
    }
}

fn host() -> Result<Host, Box<dyn Error>> {
    Ok(Host::start({
        let mut res = HostOptions::default();
        res.processes.own_executable = Some(std::env::current_exe()?);
        res
    }))
}

async fn measure(rounds: usize) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("mcp.yaml");
    print("start one server alone", measure_one_start(&path, rounds).await?);
    print("start 8 servers that take 250 ms each", measure_slow_starts(&path, rounds).await?);

    std::fs::write(&path, text(SERVERS, 0, 0))?;
    let host = host()?;
    let mut request = FollowRequest::new(vec![LoadRequest::new(&path)]);
    request.debounce = DEBOUNCE;
    let begun = Instant::now();
    let following = host.follow(request).await;
    host.wait_until_ready().await;
    print("start 20 servers at once", vec![begun.elapsed()]);

    let mut process = 0;
    for edit in [Edit::Names, Edit::Process] {
        let mut all = Vec::new();
        for round in 0..rounds {
            process += usize::from(edit == Edit::Process);
            let names = round + 1 + if edit == Edit::Process { rounds } else { 0 };
            all.push(measure_edit(&host, &path, &text(SERVERS, process, names), names).await?);
        }
        print(&format!("1 of 20 servers, {edit:?} edited"), all);
    }
    following.stop().await;
    host.shutdown().await;
    Ok(())
}

/// Measures the start of a single server.
async fn measure_one_start(path: &Path, rounds: usize) -> Result<Vec<Duration>, Box<dyn Error>> {
    let mut res = Vec::new();
    for round in 0..rounds {
        std::fs::write(path, text(1, round, 0))?;
        let wanted = load(&LoadRequest::new(path))?.desired;
        let host = host()?;
        let begun = Instant::now();
        host.apply(wanted).await;
        host.wait_until_ready().await;
        res.push(begun.elapsed());
        host.shutdown().await;
    }
    Ok(res)
}

/// Measures eight concurrent starts.
async fn measure_slow_starts(path: &Path, rounds: usize) -> Result<Vec<Duration>, Box<dyn Error>> {
    let text = text(8, 0, 0).replace("demo-server", "slow-server");
    std::fs::write(path, text)?;
    let mut res = Vec::new();
    for _ in 0..rounds.min(10) {
        let wanted = load(&LoadRequest::new(path))?.desired;
        let host = host()?;
        let begun = Instant::now();
        host.apply(wanted).await;
        host.wait_until_ready().await;
        res.push(begun.elapsed());
        if host.snapshot().servers.iter().any(|it| it.state != ServerState::Ready) {
            return Err("a slow server has failed".into());
        }
        host.shutdown().await;
    }
    Ok(res)
}

/// Measures the time from the save to the generation that contains the edit, without the debounce.
async fn measure_edit(
    host: &Host,
    path: &Path,
    text: &str,
    names: usize,
) -> Result<Duration, Box<dyn Error>> {
    let mut published = host.subscribe();
    std::fs::write(path, text)?;
    let begun = Instant::now();
    let tool = format!("s0_{names}_echo");
    let shows = |it: &HostSnapshot| {
        it.catalog.tool(&tool).is_some() && it.servers.iter().all(|it| it.state == ServerState::Ready)
    };
    published.wait_for(|it| shows(it)).await?;
    Ok(begun.elapsed().saturating_sub(DEBOUNCE))
}

fn text(servers: usize, process: usize, names: usize) -> String {
    let mut res = "version: 1\nservers:\n".to_owned();
    for at in 0..servers {
        let (process, names) = if at == 0 { (process, names) } else { (0, 0) };
        // Writing to a `String` does not fail.
        let _ = writeln!(
            res,
            "  s{at}: {{truely-stateless: true, transport: stdio, command: mcp-host, args: [demo-server, \
             r{process}], transform: [{{prefix: s{at}_{names}_}}]}}"
        );
    }
    res
}

fn print(what: &str, mut all: Vec<Duration>) {
    all.sort();
    let at = |share: f64| all[((all.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1000.0;
    println!("{what}: median {:.1} ms, p95 {:.1} ms, longest {:.1} ms", at(0.5), at(0.95), at(1.0));
}

//! The rows: what is measured at which sizes.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use super::gateway::{Gateway, Servers, name_servers, stdio_server, value};
use crate::error::Error;
use crate::measurements::server::Server;

/// A row: its lines have one value each for each size.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// The sizes; empty: the length of the mixed load.
    pub(super) sizes: &'static [usize],
    /// The titles and units of the values.
    pub(super) lines: &'static [(&'static str, &'static str)],
    pub(super) measure: fn(&Path, usize) -> Result<Vec<f64>, Error>,
}

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "pipes",
        sizes: &[1, 10, 100, 1000],
        lines: &[("servers over pipes: until all are ready", "ms"), ("their gateway's memory", "MiB")],
        measure: |programs, size| servers(programs, &pipes(programs, size)),
    },
    Row {
        name: "http",
        sizes: &[1, 10, 100, 1000],
        lines: &[("servers over HTTP: until all are ready", "ms"), ("their gateway's memory", "MiB")],
        measure: |programs, size| {
            let server = Server::start(programs, "json", false)?;
            servers(programs, &http(&server, size))
        },
    },
    Row {
        name: "tools",
        sizes: &[10, 100, 1000, 10_000, 100_000],
        lines: &[
            ("tools: a call", "µs"),
            ("a call of a tool that does not exist", "µs"),
            ("the first page of the list", "ms"),
            ("memory", "MiB"),
        ],
        measure: tools,
    },
    Row {
        name: "changes",
        sizes: &[1000, 10_000, 100_000],
        lines: &[("tools beside `list_changed` of a server with ten: the longest call", "ms")],
        measure: list_changes,
    },
    Row {
        name: "reload-pipes",
        sizes: &[1, 10, 100, 500],
        lines: &[("servers over pipes that a reload adds: the longest call beside it", "ms")],
        measure: |programs, size| reload(programs, pipes(programs, size + 1)),
    },
    Row {
        name: "reload-http",
        sizes: &[1, 10, 100, 500],
        lines: &[("servers over HTTP that a reload adds: the longest call beside it", "ms")],
        measure: |programs, size| {
            let server = Server::start(programs, "json", false)?;
            reload(programs, http(&server, size + 1))
        },
    },
    Row {
        name: "sessions",
        sizes: &[10, 100, 1000, 10_000],
        lines: &[("idle sessions: a call beside them", "µs"), ("memory", "MiB")],
        measure: |programs, size| held(programs, size, "0"),
    },
    Row {
        name: "streams",
        sizes: &[10, 100, 1000, 5000],
        lines: &[("open streams: a call beside them", "µs"), ("memory", "MiB")],
        measure: |programs, size| held(programs, size, "1"),
    },
    Row {
        name: "tokens",
        sizes: &[1, 10, 100, 1000],
        lines: &[("tokens with a scope of their own in turns, 1,000 tools: a call", "µs"), ("memory", "MiB")],
        measure: scopes,
    },
    Row {
        name: "fairness",
        sizes: &[1, 16, 64, 256],
        lines: &[
            ("calls of another token in flight: a call beside them", "µs"),
            ("that divided by the same call alone", "×"),
            ("calls of the other token", "/s"),
        ],
        measure: fairness,
    },
    Row {
        name: "throughput",
        sizes: &[16, 64, 256],
        lines: &[
            ("connections that call without pause: all calls", "/s"),
            ("at half of that, from the planned time: p50", "µs"),
            ("p99", "µs"),
            ("p99.9", "µs"),
        ],
        measure: throughput,
    },
    Row {
        name: "mixed",
        sizes: &[],
        lines: &[
            ("seconds of mixed load: p50 of its first tenth", "µs"),
            ("p50 of its last tenth", "µs"),
            ("p99 of its first tenth", "µs"),
            ("p99 of its last tenth", "µs"),
            ("memory at its beginning", "MiB"),
            ("memory at its end", "MiB"),
        ],
        measure: mixed,
    },
];

/// Lines of a token file for the tokens of `load`; each shows what `scope` returns for its number.
fn tokens(count: usize, scope: impl Fn(usize) -> String) -> Vec<String> {
    (0..count).map(|number| format!("token-{number:020} name=t{number} {}", scope(number))).collect()
}

fn pipes(programs: &Path, count: usize) -> Servers {
    name_servers((0..count).map(|_| stdio_server(programs, 6)))
}

fn http(server: &Server, count: usize) -> Servers {
    name_servers((0..count).map(|_| json!({ "type": "http", "url": server.url() })))
}

/// The time of one call after the other, in microseconds.
fn call_time(gateway: &Gateway, arguments: &[&str]) -> Result<f64, Error> {
    value(&gateway.load(&[&["calls", "--seconds", "1"], arguments].concat())?, "p50_us")
}

fn servers(programs: &Path, servers: &Servers) -> Result<Vec<f64>, Error> {
    let begun = Instant::now();
    let gateway = Gateway::start(programs, servers, &[])?;
    Ok(vec![begun.elapsed().as_secs_f64() * 1e3, gateway.memory()?])
}

/// A first server with ten tools, and others with this many together.
fn servers_with_tools(programs: &Path, tools: usize) -> Servers {
    let others =
        std::iter::repeat_n(stdio_server(programs, tools.div_ceil(10)), if tools > 10 { 10 } else { 0 });
    name_servers(std::iter::once(stdio_server(programs, 6)).chain(others))
}

fn tools(programs: &Path, size: usize) -> Result<Vec<f64>, Error> {
    let gateway = Gateway::start(programs, &servers_with_tools(programs, size), &[])?;
    let list = value(&gateway.load(&["list", "--n", "1"])?, "first_ms")?;
    let hit = call_time(&gateway, &[])?;
    let miss = call_time(&gateway, &["--tool", "s0__ecco_x"])?;
    Ok(vec![hit, miss, list, gateway.memory()?])
}

fn list_changes(programs: &Path, size: usize) -> Result<Vec<f64>, Error> {
    let gateway = Gateway::start(programs, &servers_with_tools(programs, size), &[])?;
    let calls = gateway.start_load(&["calls", "--tool", "s1__echo", "--seconds", "3"])?;
    // The first changes are published at once, later ones after a delay.
    gateway.load(&["calls", "--tool", "s0__change", "--pause-ms", "200", "--seconds", "2"])?;
    Ok(vec![value(&calls.finish()?, "max_us")? / 1e3])
}

/// The longest call beside a reload that adds all servers but the first.
fn reload(programs: &Path, servers: Servers) -> Result<Vec<f64>, Error> {
    let mut first = servers.clone();
    first.retain(|name, _| name == "s0");
    let gateway = Gateway::start(programs, &first, &[])?;
    let calls = gateway.start_load(&["calls", "--seconds", "6"])?;
    sleep(Duration::from_millis(500));
    gateway.reload(&servers)?;
    Ok(vec![value(&calls.finish()?, "max_us")? / 1e3])
}

/// A call beside sessions that are open. A token may have a quarter of all sessions.
fn held(programs: &Path, size: usize, streams: &str) -> Result<Vec<f64>, Error> {
    let gateway = Gateway::start(programs, &pipes(programs, 1), &tokens(9, |_| String::new()))?;
    let count = size.to_string();
    let mut held = gateway.start_load(&["hold", "--n", &count, "--streams", streams, "--tokens", "8"])?;
    held.wait_for_sessions()?;
    let res = vec![call_time(&gateway, &["--tokens", "1", "--first-token", "8"])?, gateway.memory()?];
    held.finish()?;
    Ok(res)
}

fn scopes(programs: &Path, size: usize) -> Result<Vec<f64>, Error> {
    let scope = |number: usize| format!("tools=s0__*,s1__tool_{number}*");
    let gateway = Gateway::start(programs, &servers_with_tools(programs, 1000), &tokens(size, scope))?;
    let count = size.to_string();
    // Planned calls take one connection after the other.
    let time = call_time(&gateway, &["--tokens", &count, "--conc", &count, "--rate", "1000"])?;
    Ok(vec![time, gateway.memory()?])
}

fn fairness(programs: &Path, size: usize) -> Result<Vec<f64>, Error> {
    let gateway = Gateway::start(programs, &pipes(programs, 1), &tokens(2, |_| String::new()))?;
    let own = ["--tokens", "1", "--first-token", "1"];
    let alone = call_time(&gateway, &own)?;
    let count = size.to_string();
    let other = gateway.start_load(&["calls", "--tokens", "1", "--conc", &count, "--seconds", "3"])?;
    sleep(Duration::from_millis(800));
    let beside = call_time(&gateway, &own)?;
    Ok(vec![beside, beside / alone, value(&other.finish()?, "calls_per_s")?])
}

fn throughput(programs: &Path, size: usize) -> Result<Vec<f64>, Error> {
    let gateway = Gateway::start(programs, &pipes(programs, 1), &[])?;
    let count = size.to_string();
    let all = value(&gateway.load(&["calls", "--conc", &count, "--seconds", "3"])?, "calls_per_s")?;
    let rate = (all / 2.0).to_string();
    let half = gateway.load(&["calls", "--conc", &count, "--seconds", "3", "--rate", &rate])?;
    Ok(vec![all, value(&half, "p50_us")?, value(&half, "p99_us")?, value(&half, "p999_us")?])
}

/// Calls of four tokens, lists, idle sessions and changes of a list beside 1,000 tools.
fn mixed(programs: &Path, seconds: usize) -> Result<Vec<f64>, Error> {
    let gateway =
        Gateway::start(programs, &servers_with_tools(programs, 1000), &tokens(6, |_| String::new()))?;
    let (all, tenth) = (seconds.to_string(), (seconds as f64 / 10.0).to_string());
    let mut held = gateway.start_load(&["hold", "--n", "100", "--tokens", "4"])?;
    held.wait_for_sessions()?;
    let calling = ["calls", "--tokens", "4", "--conc", "16", "--rate", "2000"];
    let call = |seconds: &str| gateway.start_load(&[&calling[..], &["--seconds", seconds]].concat());
    let changes =
        ["calls", "--tokens", "1", "--first-token", "4", "--tool", "s0__change", "--pause-ms", "500"];
    let changes = gateway.start_load(&[&changes[..], &["--seconds", &all]].concat())?;
    let first = call(&tenth)?.finish()?;
    let memory = gateway.memory()?;
    call(&(seconds as f64 * 0.8).to_string())?.finish()?;
    let last = call(&tenth)?.finish()?;
    let memory_after = gateway.memory()?;
    changes.finish()?;
    held.finish()?;
    let mut res = Vec::new();
    for name in ["p50_us", "p99_us"] {
        res.extend([value(&first, name)?, value(&last, name)?]);
    }
    Ok([res, vec![memory, memory_after]].concat())
}

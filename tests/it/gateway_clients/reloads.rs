//! Reloads while 16 clients of the official SDKs make long calls: no call ends early.
//!
//! `cargo xtask reloads` runs it in full size.

use std::path::Path;
use std::time::Duration;

use mcp_testkit::program::binary;
use mcp_testkit::wait::block_until;
use serde_json::json;

use super::{Client, Gateway, Installed};

/// The numbers of clients with each SDK, and their modes.
const CLIENTS: [(u8, Option<&str>, usize); 3] = [(1, None, 8), (2, None, 4), (2, Some("auto"), 4)];

/// The size of a run.
struct Size {
    reloads: usize,
    /// The shortest and the longest call in milliseconds.
    call: [u64; 2],
    /// The calls of each client.
    calls: usize,
    /// The time between two reloads.
    pause: Duration,
}

impl Size {
    /// The size from `MCP_TEST_RELOADS`. More reloads than by default have calls of up to half a minute.
    fn of_this_run() -> Size {
        let reloads = std::env::var("MCP_TEST_RELOADS").ok().and_then(|it| it.parse().ok());
        match reloads {
            None => Size { reloads: 3, call: [1000, 3000], calls: 4, pause: Duration::from_millis(500) },
            Some(reloads) => {
                // A call takes 15 s on average, so they last longer than the reloads.
                Size { reloads, call: [1000, 30_000], calls: reloads / 3 + 4, pause: Duration::from_secs(4) }
            }
        }
    }
}

/// Saves two servers whose command lines have this number. Each writes its number to a file when it starts.
fn save(folder: &Path, number: usize) -> String {
    let path = folder.join(".minds/mcp.yaml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let server = |name: &str, more: &str| {
        let script =
            format!("echo {number} >> {}; exec {} demo-server", started(folder, name), binary().display());
        format!(
            "  {name}:\n    {{{more}transport: stdio, command: sh, args: [-c, '{script}'], transform: [{{prefix: \
            {name}_}}]}}\n"
        )
    };
    let text =
        format!("version: 1\nservers:\n{}{}", server("all", "truely-stateless: true, "), server("own", ""));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The file with the numbers that have started.
fn started(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn reloads_end_no_call_of_a_client_early() {
    let Some(installed) = Installed::ready() else { return };
    let size = Size::of_this_run();
    let folder = tempfile::tempdir().unwrap();
    let file = save(folder.path(), 0);
    let gateway = Gateway::start(folder.path(), &file, &[]);
    // Half of the clients call the shared server, the others have instances of their own.
    let clients = CLIENTS.iter().flat_map(|(sdk, mode, clients)| {
        ["all_sleep", "own_sleep"].map(|tool| {
            let load = json!({"clients": clients / 2, "each": size.calls, "ms": size.call});
            json!({"sdk": sdk, "mode": mode, "url": gateway.url(), "calls": [[tool]], "load": load})
        })
    });
    let mut clients: Vec<Client> = clients.map(|scenario| installed.typescript(&scenario)).collect();
    clients.iter_mut().for_each(Client::until_ready);
    for number in 1..=size.reloads {
        std::thread::sleep(size.pause);
        save(folder.path(), number);
        for name in ["all", "own"] {
            let has_started = || {
                let text = std::fs::read_to_string(started(folder.path(), name)).unwrap_or_default();
                text.lines().any(|line| line == number.to_string())
            };
            block_until(has_started);
        }
        assert!(clients.iter_mut().all(Client::is_running), "the calls ended before reload {number}");
    }
    let mut calls = 0;
    for client in clients {
        let result = client.json();
        assert_eq!(result["failures"], json!([]), "{result:#}");
        calls += result["calls"].as_u64().unwrap();
    }
    eprintln!("{} reloads, {calls} calls of {:?} ms", size.reloads, size.call);
}

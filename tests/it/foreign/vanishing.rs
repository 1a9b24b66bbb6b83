//! Two hundred clients of the official SDK that are killed in the middle of it.

use mcp_tests::{binary, eventually};
use serde_json::json;

use super::{Gateway, Installed};

const CLIENTS: u64 = 200;
/// How many of them have a server of their own.
const OWN: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_that_vanish_leave_nothing_after_the_idle_time() {
    let Some(installed) = Installed::ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".minds/mcp.yaml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let server = |name: &str, more: &str| {
        let command = binary().display();
        format!(
            "  {name}:\n    {{{more}transport: stdio, command: '{command}', args: [demo-server], transform: [{{prefix: \
             {name}_}}]}}\n"
        )
    };
    let text =
        format!("version: 1\nservers:\n{}{}", server("all", "truely-stateless: true, "), server("own", ""));
    std::fs::write(&path, text).unwrap();
    let gateway = Gateway::start(folder.path(), &path.display().to_string(), &["--idle", "2"]);
    let before = gateway.servers();

    let calls =
        json!([["all_echo", {"text": "a"}], ["own_echo", {"text": "a"}], ["all_sleep", {"ms": 3000}]]);
    let crowd = json!({"clients": CLIENTS, "own": OWN});
    let mut clients =
        installed.typescript(&json!({"sdk": 1, "url": gateway.url(), "calls": calls, "crowd": crowd}));
    clients.until_ready();
    assert_eq!(gateway.metric("mcp_gateway_sessions").await, CLIENTS);
    assert!(gateway.servers() >= before + OWN - 1, "{before}, then {}", gateway.servers());
    clients.kill();

    let handle = tokio::runtime::Handle::current();
    let left = |name: &str| tokio::task::block_in_place(|| handle.block_on(gateway.metric(name)));
    for name in ["mcp_gateway_sessions", "mcp_gateway_dialogs", "mcp_gateway_requests", "mcp_gateway_parked"]
    {
        eventually(name, || left(name) == 0);
    }
    eventually("what was leased has ended", || gateway.servers() == before);
    let one = json!({"sdk": 1, "url": gateway.url(), "calls": [["all_echo", {"text": "b"}]]});
    let said = installed.typescript(&one).json();
    assert_eq!(said["answers"][0]["content"][0]["text"], "b", "{said:#}");
}

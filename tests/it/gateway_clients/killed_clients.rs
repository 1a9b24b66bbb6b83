//! Cleanup after 200 clients of the official SDK that are killed.

use mcp_testkit::program::binary;
use mcp_testkit::wait::block_until;
use serde_json::json;

use super::{Gateway, Installed};

const CLIENTS: u64 = 200;
/// The number of clients with their own instance.
const OWN: usize = 10;
/// The idle time of a session in seconds. A session with an open stream is not idle.
const IDLE: &str = "10";

#[test]
fn sessions_of_killed_clients_end_after_the_idle_time() {
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
    let gateway = Gateway::start(folder.path(), &path.display().to_string(), &["--idle", IDLE]);
    // The shared server is one process; the other one runs for each session, and once for its lists.
    let known = || gateway.metric(r#"mcp_host_server_state{server="own",state="ready"}"#) == 1;
    block_until(|| known() && gateway.servers() == 1);

    let calls =
        json!([["all_echo", {"text": "a"}], ["own_echo", {"text": "a"}], ["all_sleep", {"ms": 3000}]]);
    let crowd = json!({"clients": CLIENTS, "own": OWN});
    let mut clients =
        installed.typescript(&json!({"sdk": 1, "url": gateway.url(), "calls": calls, "crowd": crowd}));
    clients.until_ready();
    assert_eq!(gateway.metric("mcp_gateway_sessions"), CLIENTS);
    assert_eq!(gateway.servers(), 1 + OWN);
    clients.kill();

    for name in ["mcp_gateway_sessions", "mcp_gateway_dialogs", "mcp_gateway_requests", "mcp_gateway_parked"]
    {
        block_until(|| gateway.metric(name) == 0);
    }
    block_until(|| gateway.servers() == 1);
    let one = json!({"sdk": 1, "url": gateway.url(), "calls": [["all_echo", {"text": "b"}]]});
    let said = installed.typescript(&one).json();
    assert_eq!(said["answers"][0]["content"][0]["text"], "b", "{said:#}");
}

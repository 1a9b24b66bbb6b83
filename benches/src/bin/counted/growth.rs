//! What a change costs beside many servers or tools.

use mcp_benches::Failure;
use mcp_benches::gateway_client::{GatewayClient, call_message};
use mcp_host_runtime::DesiredServers;

use crate::gateway::ServingGateway;
use crate::{HttpServer, desired_entries, started_with, stdio_entry};

/// This many servers with this many short tools, besides the four that each server has.
pub(crate) fn large_servers(servers: usize, tools: usize) -> Result<DesiredServers, Failure> {
    let entries: Result<Vec<_>, Failure> = (0..servers).map(|at| large_server(at, tools)).collect();
    desired_entries(&entries?)
}

fn large_server(at: usize, tools: usize) -> Result<String, Failure> {
    let arguments = ["--definitions", "short", "--tools", &tools.to_string()].map(str::to_owned);
    stdio_entry(&format!("s{at}_"), &arguments)
}

/// Reloads that add a server beside `servers` others over HTTP, and remove it in turns.
pub(crate) async fn reload(servers: usize, times: usize) -> Result<(), Failure> {
    let server = HttpServer::start("json")?;
    let entry = |at: usize| {
        let url = &server.url;
        format!(
            "{{truely-stateless: true, transport: streamable_http, url: '{url}', transform: [{{prefix: s{at}_}}]}}"
        )
    };
    let entries: Vec<String> = (0..=servers).map(entry).collect();
    let (fewer, more) = (desired_entries(&entries[..servers])?, desired_entries(&entries)?);
    let host = started_with(fewer.clone()).await?;
    for at in 0..times {
        host.apply(if at % 2 == 0 { more.clone() } else { fewer.clone() }).await;
        host.wait_until_ready().await;
    }
    host.shutdown().await;
    Ok(())
}

/// The number of servers with ten tools, each of which changes its list once: the host delays further changes.
const CHANGING_SERVERS: usize = 12;

/// Changes of the lists of servers with ten tools beside others with `tools` tools each. After each change, a client of
/// the gateway calls another tool, which needs the new lists.
pub(crate) async fn list_changes(servers: usize, tools: usize, times: usize) -> Result<(), Failure> {
    let sizes = std::iter::repeat_n(6, CHANGING_SERVERS).chain(std::iter::repeat_n(tools, servers));
    let entries: Result<Vec<_>, Failure> =
        sizes.enumerate().map(|(at, tools)| large_server(at, tools)).collect();
    let serving = ServingGateway::start(started_with(desired_entries(&entries?)?).await?).await?;
    let mut client = GatewayClient::connect(&serving.address, None).await?;
    client.open_session().await?;
    let echo = client.request("", &call_message("", &format!("s{CHANGING_SERVERS}_echo")));
    client.send(&echo).await?;
    let mut snapshots = serving.host.subscribe();
    for at in 0..times.min(CHANGING_SERVERS) {
        let before = serving.host.snapshot().catalog.hash();
        client.send(&client.request("", &call_message("", &format!("s{at}_change")))).await?;
        snapshots.wait_for(|snapshot| snapshot.catalog.hash() != before).await?;
        client.send(&echo).await?;
    }
    drop(client);
    serving.end().await
}

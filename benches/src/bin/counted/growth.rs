//! What a change or a call costs beside many servers or tools. Only the repetitions are counted.

use std::sync::Arc;

use mcp_benches::Failure;
use mcp_benches::gateway_client::{GatewayClient, call_message};
use mcp_host_runtime::DesiredServers;

use crate::gateway::{GatewayRequest, PreparedRequest, ServingGateway};
use crate::{HttpServer, desired_entries, run_counted, runtime, started_with, stdio_entry};

/// This many servers with this many short tools, besides the four that each server has.
pub(crate) fn large_servers(servers: usize, tools: usize) -> Result<DesiredServers, Failure> {
    let entries: Result<Vec<_>, Failure> = (0..servers).map(|at| large_server(at, tools)).collect();
    desired_entries(&entries?)
}

fn large_server(at: usize, tools: usize) -> Result<String, Failure> {
    let arguments = ["--definitions", "short", "--tools", &tools.to_string()].map(str::to_owned);
    stdio_entry(&format!("s{at}_"), &arguments)
}

/// Calls in a session.
pub(crate) fn calls(what: GatewayRequest, times: usize) -> Result<(), Failure> {
    let runtime = runtime()?;
    let prepared = runtime.block_on(PreparedRequest::new(what))?;
    let serving = run_counted(&runtime, prepared.send(times))?;
    runtime.block_on(serving.end())
}

/// Reloads that add a server beside `servers` others over HTTP, and remove it in turns.
pub(crate) fn reload(servers: usize, times: usize) -> Result<(), Failure> {
    let server = HttpServer::start("json")?;
    let entry = |at: usize| {
        let url = &server.url;
        format!(
            "{{truely-stateless: true, transport: streamable_http, url: '{url}', transform: [{{prefix: s{at}_}}]}}"
        )
    };
    let entries: Vec<String> = (0..=servers).map(entry).collect();
    let (fewer, more) = (desired_entries(&entries[..servers])?, desired_entries(&entries)?);
    let runtime = runtime()?;
    let host = Arc::new(runtime.block_on(started_with(fewer.clone()))?);
    let reloaded = Arc::clone(&host);
    run_counted(&runtime, async move {
        for at in 0..times {
            reloaded.apply(if at % 2 == 0 { more.clone() } else { fewer.clone() }).await;
            reloaded.wait_until_ready().await;
        }
        Ok(())
    })?;
    runtime.block_on(host.shutdown());
    Ok(())
}

/// The number of servers with ten tools, each of which changes its list once: the host delays further changes.
const CHANGING_SERVERS: usize = 12;

/// Changes of the lists of servers with ten tools beside others with `tools` tools each. After each change, a client of
/// the gateway calls another tool, which needs the new lists.
pub(crate) fn list_changes(servers: usize, tools: usize, times: usize) -> Result<(), Failure> {
    let sizes = std::iter::repeat_n(6, CHANGING_SERVERS).chain(std::iter::repeat_n(tools, servers));
    let entries: Result<Vec<_>, Failure> =
        sizes.enumerate().map(|(at, tools)| large_server(at, tools)).collect();
    let desired = desired_entries(&entries?)?;
    let runtime = runtime()?;
    let (serving, mut client, echo) = runtime.block_on(async {
        let serving = ServingGateway::start(started_with(desired).await?).await?;
        let mut client = GatewayClient::connect(&serving.address, None).await?;
        client.open_session().await?;
        let echo = client.request("", &call_message("", &format!("s{CHANGING_SERVERS}_echo")));
        client.send(&echo).await?;
        Ok::<_, Failure>((serving, client, echo))
    })?;
    let host = Arc::clone(&serving.host);
    run_counted(&runtime, async move {
        let mut snapshots = host.subscribe();
        for at in 0..times.min(CHANGING_SERVERS) {
            let before = host.snapshot().catalog.hash();
            client.send(&client.request("", &call_message("", &format!("s{at}_change")))).await?;
            snapshots.wait_for(|snapshot| snapshot.catalog.hash() != before).await?;
            client.send(&echo).await?;
        }
        Ok(())
    })?;
    runtime.block_on(serving.end())
}

//! The client of the official SDK (rmcp) over our transports. Its features still work, and it gets an error where
//! it would otherwise wait forever.

#[cfg(all(feature = "stdio", feature = "http", feature = "sse", feature = "websocket"))]
mod all_transports;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "sse")]
mod sse;
#[cfg(feature = "stdio")]
mod stdio;
#[cfg(feature = "websocket")]
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{Endpoint, Limits};
use mcp_host_rmcp::{RmcpOptions, RmcpTransport};
use mcp_host_transport::{Dial, DialOptions, dialer};
use rmcp::model::CallToolRequestParams;
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::{RoleClient, ServiceError, ServiceExt};

type Client = RunningService<RoleClient, ()>;

fn dial(endpoint: &Endpoint) -> Arc<dyn Dial> {
    let mut limits = Limits::default();
    limits.message_bytes = 1 << 20;
    dialer(endpoint, &{
        let mut options = DialOptions::default();
        options.limits = limits;
        options
    })
    .unwrap()
}

async fn serve(endpoint: &Endpoint) -> Result<Client, ClientInitializeError> {
    // Long enough for slow machines, short enough for tests of a silent server.
    let mut options = RmcpOptions::default();
    options.handshake = Duration::from_secs(20);
    options.grace = Duration::from_secs(1);
    ().serve(RmcpTransport::new(&*dial(endpoint), options)).await
}

async fn call(client: &Client) -> Result<String, ServiceError> {
    let result = client.call_tool(CallToolRequestParams::new("t")).await?;
    let text = result.content.iter().filter_map(|it| it.as_text().map(|it| it.text.clone()));
    Ok(text.collect::<Vec<_>>().join("\n"))
}

//! rmcp's client over WebSocket, which it lacks: `cargo run -p mcp-host-rmcp --example websocket_client`.
//!
//! The server ends during a call, which then fails with an error.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use mcp_host_demo::HttpServer;
use mcp_host_model::{Endpoint, UrlEndpoint};
use mcp_host_rmcp::{RmcpOptions, RmcpTransport};
use mcp_host_transport::{DialOptions, dialer};
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, object};
use serde_json::json;
use tokio::sync::oneshot;

/// The result of a call, the error of another one, and why the connection ended.
pub(crate) async fn run() -> Result<[String; 3], Box<dyn Error>> {
    let server = HttpServer::bind("127.0.0.1:0".parse()?).await?;
    let endpoint = Endpoint::WebSocket(UrlEndpoint::new(server.websocket_url().parse()?));
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(server.serve(async { drop(stopped.await) }));

    let dial = dialer(&endpoint, &DialOptions::default())?;
    let transport = RmcpTransport::new(&*dial, RmcpOptions::default());
    let disconnected = transport.disconnected();
    // Everything from here on is rmcp's.
    let client = ().serve(transport).await?;
    let add = CallToolRequestParams::new("add").with_arguments(object(json!({"a": 2, "b": 3})));
    let sum = client.call_tool(add).await?.structured_content.unwrap_or_default();

    let sleep = CallToolRequestParams::new("sleep").with_arguments(object(json!({"ms": 600_000})));
    let (error, _) = tokio::join!(client.call_tool(sleep), async { drop(stop) });
    let error = error.err().ok_or("the server has ended")?;
    Ok([sum.to_string(), error.to_string(), disconnected.await.to_string()])
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{:#?}", run().await?);
    Ok(())
}

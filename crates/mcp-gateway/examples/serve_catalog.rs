//! A program that serves the servers of a configuration as one MCP server:
//! `MCP_TOKEN=… cargo run -p mcp-host-gateway --example serve_catalog CONFIGURATION`.
//!
//! It serves the client that started it over stdio and, as long as that is connected, clients with the token over HTTP.

#![expect(clippy::print_stderr, reason = "standard output has the messages")]

use std::error::Error;
use std::sync::Arc;

use mcp_host_gateway::{Gateway, GatewayOptions, HttpOptions, HttpServer, Tokens, serve_stdio};
use mcp_host_model::Secret;
use mcp_host_runtime::{Host, HostOptions, LoadRequest, load};
use tokio::io::{AsyncRead, AsyncWrite};

/// Serves the catalog of `host` on `input` and `output`, and over HTTP at the URL that `announce` gets, until the input
/// ends. `tokens` has one token per line, each with what it shows.
pub(crate) async fn serve(
    host: Arc<Host>,
    tokens: &Secret,
    (input, output): (impl AsyncRead + Unpin + Send + 'static, impl AsyncWrite + Unpin + Send + 'static),
    announce: impl FnOnce(String),
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut options = GatewayOptions::default();
    options.name = "example".to_owned();
    let gateway = Gateway::new(host, options);

    let mut http = HttpOptions::default();
    // Without tokens, each program on this machine could connect.
    http.tokens = Tokens::read(tokens)?;
    let server = HttpServer::bind("127.0.0.1:0".parse()?, gateway.clone(), http).await?;
    announce(server.url());
    server.serve(serve_stdio(&gateway, input, output)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let file = std::env::args().nth(1).ok_or("usage: serve_catalog CONFIGURATION")?;
    let token = Secret::new(std::env::var("MCP_TOKEN")?);
    let host = Arc::new(Host::start(HostOptions::default()));
    host.apply(load(&LoadRequest::new(file))?.into_desired()?).await;
    let stdio = (tokio::io::stdin(), tokio::io::stdout());
    let served = serve(Arc::clone(&host), &token, stdio, |url| eprintln!("{url}")).await;
    host.shutdown().await;
    served
}

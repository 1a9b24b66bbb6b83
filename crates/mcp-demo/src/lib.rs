//! The demo MCP server that comes with the host, so that a first run needs nothing but Rust.
//!
//! It offers tools that answer, add, sleep, fail, log, grow, ask, tell what the host gave them, change the list and end
//! the server, two prompts, and a few resources, in both eras of the protocol (2025-11-25 with `initialize`, 2026-07-28
//! without), over standard input and output ([`serve_stdio`]), any pair of streams ([`serve_stream`]), and Streamable
//! HTTP, HTTP with server-sent events and WebSocket ([`HttpServer`]).
//! It stands on rmcp's server and on none of our crates: what it says on the wire is another implementation's word.
//!
//! It keeps nothing on disk, opens no connection, and listens on loopback only.
//!
//! ```
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (here, there) = tokio::io::duplex(64 * 1024);
//! let (read, write) = tokio::io::split(there);
//! let server = tokio::spawn(mcp_demo::serve_stream(read, write));
//!
//! let (answers, mut requests) = tokio::io::split(here);
//! requests.write_all(concat!(
//!     r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"#,
//!     r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
//!     r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#, "\n",
//! ).as_bytes()).await?;
//! let answer = BufReader::new(answers).lines().next_line().await?.unwrap_or_default();
//! assert!(answer.contains(r#""text":"hello""#), "{answer}");
//! # server.abort();
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod connection;
mod http;
mod life;
mod media;
mod neighbour;
mod prompts;
mod resources;
mod serve;
mod server;
mod sse;
mod state;
mod tools;
mod websocket;

pub use http::HttpServer;
pub use serve::{DemoError, Ended, serve_offering, serve_stdio, serve_stream};
pub use state::Offer;

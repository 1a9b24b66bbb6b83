//! The bundled demo MCP server, for first runs and tests.
//!
//! It has twelve tools, two prompts and a few resources, in both eras of the protocol (2025-11-25 with `initialize`,
//! 2026-07-28 stateless). It serves over standard input and output ([`serve_stdio`]), any pair of streams
//! ([`serve_stream`]), and Streamable HTTP, HTTP with server-sent events and WebSocket ([`HttpServer`]).
//!
//! It is built on rmcp's server and on none of our crates, so that tests have an independent peer. It writes nothing to
//! disk, opens no connections, and listens only on loopback addresses.
//!
//! ```
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (here, there) = tokio::io::duplex(64 * 1024);
//! let (read, write) = tokio::io::split(there);
//! let server = tokio::spawn(mcp_host_demo::serve_stream(read, write));
//!
//! let (responses, mut requests) = tokio::io::split(here);
//! requests.write_all(concat!(
//!     r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"#,
//!     r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
//!     r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#, "\n",
//! ).as_bytes()).await?;
//! let response = BufReader::new(responses).lines().next_line().await?.unwrap_or_default();
//! assert!(response.contains(r#""text":"hello""#), "{response}");
//! # server.abort();
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
// A type that is exhaustive states the reason for it.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod connection;
mod content;
mod http;
mod lifetime;
mod serve;
mod server;
mod state;
mod tools;

pub use http::HttpServer;
/// For [`DemoError::Initialize`].
#[doc(no_inline)]
pub use rmcp;
pub use serve::{DemoError, ServeOutcome, serve_custom_tools, serve_stdio, serve_stream};
pub use state::CustomTools;
/// For [`serve_stream`] and [`DemoError::Panicked`].
#[doc(no_inline)]
pub use tokio;

/// Compiles the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

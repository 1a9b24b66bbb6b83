//! The catalog of a host, served again as one MCP server.
//!
//! A [`Gateway`] stands before a [`mcp_host::Host`] and speaks MCP with whoever connects: by [`serve_stdio`] with the
//! client that started this process, by [`HttpServer`] with many at once. Clients of every revision are served beside
//! each other, those with sessions (2024-11-05 to 2025-11-25) and those without (2026-07-28), whatever the servers
//! behind it speak.
//!
//! What a server defines and answers passes through as the bytes it came in; names are those of the catalog. A client
//! sees what its [`Scope`] shows: all, one server, or a part of the names. Servers that are not shared are leased: each
//! session is a dialog of the host, and a client without sessions names its dialog ([`DIALOG_HEADER`], [`DIALOG_KEY`]).
//!
//! What a client begins is his alone, by the name of his token. Where there are no tokens, which only loopback allows, all
//! clients are one: dialogs of one name are one dialog, and their bounds are shared. What a server gives as
//! `requestState` goes out sealed for its client, with a key of this process alone: a call that waits for input does not
//! outlive the gateway, nor does it go on at another one.
//!
//! No client's token is ever sent on to a server.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use mcp_gateway::{Gateway, GatewayOptions, HttpOptions, HttpServer};
//! use mcp_host::{Host, HostOptions, LoadRequest, load};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Arc::new(Host::start(HostOptions::default()));
//! host.apply(load(&LoadRequest::new("agent.yaml"))?.accepted()?).await;
//! let gateway = Gateway::new(Arc::clone(&host), GatewayOptions::default());
//! // Off this machine it serves nobody without a token: `HttpOptions::tokens`.
//! let server = HttpServer::bind("127.0.0.1:8807".parse()?, gateway, HttpOptions::default()).await?;
//! println!("{}", server.url());
//! server.serve(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod access;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
mod http;
mod limits;
mod lists;
mod methods;
mod notifications;
mod protocol;
mod session;
mod stdio;

pub use access::scope::{InvalidSelection, Leased, Names, Scope};
pub use access::tokens::{InvalidTokens, Tokens};
pub use gateway::{Gateway, GatewayOptions};
pub use http::{DIALOG_HEADER, HttpOptions, HttpServer, MoreMetrics, ServeError, TlsFiles};
pub use limits::bounds::Bounds;
pub use lists::gateway_resources::OwnResource;
pub use protocol::meta::DIALOG_KEY;
pub use stdio::serve_stdio;

//! Serves the catalog of a host as one MCP server.
//!
//! A [`Gateway`] serves the catalog of a [`mcp_host_runtime::Host`]: with [`serve_stdio`] to the client that
//! started this process, with [`HttpServer`] to many clients. Clients of all protocol versions are served at
//! once, with sessions (2024-11-05 to 2025-11-25) and without (2026-07-28), independent of the versions of
//! the servers.
//!
//! Definitions and results of servers are forwarded as bytes; names are those of the catalog. A [`Scope`] determines
//! which part of the catalog a client sees. Servers that are not shared are leased: each session is a dialog of the
//! host, and a client without sessions names its dialog ([`DIALOG_HEADER`], [`DIALOG_KEY`]).
//!
//! Sessions, dialogs and pending calls belong to one client, which is identified by the name of its token. Without
//! tokens, which only loopback allows, all clients count as one: they share dialogs and limits. A server's
//! `requestState` is sealed for its client with a key of this process, so a call that waits for input ends with the
//! gateway.
//!
//! A client's token is never sent to a server.
//!
//! Ids such as `RPT-200` name rules, the promised behaviour; `docs/rules.md` in the repository lists them.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use mcp_host_gateway::{Gateway, GatewayOptions, HttpOptions, HttpServer};
//! use mcp_host_runtime::{Host, HostOptions, LoadRequest, load};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Arc::new(Host::start(HostOptions::default()));
//! host.apply(load(&LoadRequest::new("agent.yaml"))?.into_desired()?).await;
//! let gateway = Gateway::new(Arc::clone(&host), GatewayOptions::default());
//! // Other addresses than loopback require tokens: `HttpOptions::tokens`.
//! let server = HttpServer::bind("127.0.0.1:8807".parse()?, gateway, HttpOptions::default()).await?;
//! println!("{}", server.url());
//! server.serve(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
// A type that is exhaustive states the reason for it.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod access;
mod audit;
mod gateway;
mod http;
mod limits;
mod lists;
mod methods;
pub mod metrics;
mod notifications;
mod protocol;
mod session;
mod stdio;

/// For mcp-cli, and parsers for the properties of the fuzz targets in mcp-testkit. Not part of the public API.
#[doc(hidden)]
pub mod internal {
    pub use crate::access::is_admitted;
    pub use crate::access::scope;
    pub use crate::audit::line_writer::{LineTarget, LineWriter};
    pub use crate::http::authorization::guard;
    pub use crate::http::request::headers;
    pub use crate::protocol::{frame, json_splice, meta, params};
}

pub use access::oauth::{InvalidAuthUrl, InvalidScopes, ResourceServer, ScopeMap};
pub use access::scope::{InvalidSelection, NameStyle, Scope};
pub use access::tokens::{InvalidTokens, Tokens};
pub use audit::record::AuditLog;
pub use gateway::{ClientCounts, Gateway, GatewayOptions};
pub use http::{
    HttpOptions, HttpServer, InvalidNetwork, RecorderPage, ServeError, TlsFiles, TokenUpdater, TrustedProxies,
};
pub use limits::bounds::{Bounds, ProcessResources};
pub use limits::rate_limits::{InvalidRate, Rate, RateLimits};
pub use lists::gateway_resources::GatewayResource;
pub use protocol::meta::{DIALOG_HEADER, DIALOG_KEY};
pub use protocol::task_ids::TaskKey;
/// The source of [`ServeError::Tls`].
#[doc(no_inline)]
pub use rustls::Error as TlsError;
pub use stdio::serve_stdio;
/// For the streams of [`serve_stdio`].
#[doc(no_inline)]
pub use tokio;

/// Compiles the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Streamable HTTP for many clients, with and without sessions, at `/mcp` and `/mcp/SERVER`.
//!
//! hyper implements HTTP. Everything that a client can use is bounded: the time for a head and a body, their sizes,
//! connections, requests, and the time without reading. Pages of other sites are refused by their `Host` and `Origin`.
//! On an address that is not loopback, a token is required.

#![expect(clippy::result_large_err, reason = "the error of a refused request is its HTTP response")]

mod app_state;
pub(crate) mod authorization;
mod connection;
mod endpoints;
mod options;
mod permits;
mod reply;
pub(crate) mod request;
mod server;

pub use options::{HttpOptions, RecorderPage, ServeError, TlsFiles};
pub use request::client_address::{InvalidNetwork, TrustedProxies};
pub use server::{HttpServer, TokenUpdater};

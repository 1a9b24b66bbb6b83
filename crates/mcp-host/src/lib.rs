//! Configuration files in, a live catalog of MCP tools out.
//!
//! [`load()`] reads a file and resolves its servers. A [`Host`] starts them beside each other, lists what they offer,
//! publishes one catalog under names that can be trusted ([`Published`]), keeps it current, and makes calls that end.
//! One bad server never hides the others: it becomes a status and a problem, and the rest stand.
//!
//! Inside, one task owns the desired state. It is a pure state machine with a thin shell: starts, lists and ends come
//! to it as events, each batch of them makes one new [`Published`], and whoever holds an older one holds all of it.
//!
//! ```no_run
//! use mcp_host::{Host, HostOptions, LoadRequest, ToolCall, load};
//! use mcp_model::RawJson;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let loaded = load(&LoadRequest::new("agent.yaml"))?;
//! // What is refused is never applied: it wants nothing, and would stop whatever runs.
//! if loaded.refused {
//!     return Err(format!("nothing of {} may be started: {:?}", loaded.path, loaded.diagnostics).into());
//! }
//! let host = Host::start(HostOptions::default());
//! host.apply(loaded.wanted).await;
//! host.ready().await;
//! for tool in host.published().catalog.tools() {
//!     println!("{} of {}", tool.name, tool.server);
//! }
//! let result = host.call(ToolCall::new("files__list", RawJson::empty_object())).await;
//! println!("{}", result.text());
//! host.shutdown().await;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod call;
mod committer;
mod connector;
mod excerpt;
mod failure;
#[cfg(test)]
mod fixture;
mod follow;
mod gate;
mod host;
mod instance;
mod known_eras;
mod listed;
mod load;
mod machine;
mod outlets;
mod pace;
mod published;
mod wanted;
mod wires;

pub use call::ToolCall;
pub use connector::Dialer;
pub use failure::Failure;
pub use host::{Host, HostOptions};
pub use load::{FileError, LoadError, LoadRequest, Loaded, load};
pub use mcp_registry::ActiveProblem;
pub use published::{Published, ServerState, ServerStatus};
pub use wanted::{FailedServer, Wanted};

//! May this ACP session ask for that MCP server?
//!
//! A client hands an agent the MCP servers of a session. [`validate`] holds such a request against the one value that
//! the agent has also advertised ([`Capabilities`]), before anything connects (ACP-039): out come the servers, ready to
//! be resolved, or everything that is wrong as the JSON-RPC error of ACP ([`Refusal`]). What the world then does to a
//! server is a [`Failure`]. Nothing here starts a server, looks at a disk, or repeats a secret.
//!
//! ```
//! use mcp_acp::{Agent, Capabilities, SetUp, Version, validate};
//! use mcp_model::{RawJson, RpcError};
//!
//! let request = RawJson::parse(br#"{"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {
//!     "cwd": "/home/ada/desk",
//!     "mcpServers": [
//!         {"name": "files", "command": "/opt/files-server", "args": [], "env": []},
//!         {"type": "sse", "name": "events", "url": "https://events.example/sse", "headers": []}
//!     ]}}"#.as_slice().into())?;
//! let set_up = SetUp::read(&request).unwrap();
//!
//! let all = Capabilities { http: true, sse: true, ..Capabilities::STDIO };
//! let validated = validate(&set_up, &Agent::new(Version::V1, &all)).unwrap();
//! assert_eq!(validated.names().collect::<Vec<_>>(), ["files", "events"]);
//!
//! let refusal = validate(&set_up, &Agent::new(Version::V1, &Capabilities::STDIO)).unwrap_err();
//! assert_eq!(
//!     refusal.to_string(),
//!     "SSE transport not supported: agent did not declare mcpCapabilities.sse"
//! );
//! assert_eq!(RpcError::from(&refusal).code, mcp_acp::code::INVALID_PARAMS);
//! # Ok::<(), serde_json::Error>(())
//! ```

#![forbid(unsafe_code)]

mod capabilities;
pub mod code;
mod failure;
mod finding;
mod parameters;
mod policy;
mod refusal;
mod request;
#[cfg(feature = "schema")]
mod schema;
mod validate;
mod version;

pub use mcp_config::acp::{Leniency, Tolerance};

pub use capabilities::Capabilities;
pub use failure::{Failure, FailureKind};
pub use finding::{Effect, Finding, Report};
pub use policy::{Agent, BadEntries, Folder, Policy};
pub use refusal::{InvalidParams, Refusal};
pub use request::{SetUp, answer_id};
#[cfg(feature = "schema")]
pub use schema::NoWord;
pub use validate::{Server, Validated, validate};
pub use version::{Method, SetEffect, Transport, Version};

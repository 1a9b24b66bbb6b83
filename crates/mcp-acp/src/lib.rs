//! Validation of the MCP servers that an ACP session requests.
//!
//! A client sends an agent the MCP servers of a session. [`validate`] checks such a request against the
//! [`Capabilities`] that the agent has advertised, before anything connects (ACP-039). It returns the servers, ready
//! to be resolved, or all violations as the JSON-RPC error of ACP ([`SessionRequestError`]). A server that fails
//! later is a [`ServerStartError`]. Pure: starts no server, does not access the disk, and repeats no secret.
//!
//! ```
//! use mcp_host_acp::{AcpVersion, AgentProfile, Capabilities, SessionRequest, validate};
//! use mcp_host_model::{RawJson, RpcError};
//!
//! let request = RawJson::parse(br#"{"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {
//!     "cwd": "/home/ada/desk",
//!     "mcpServers": [
//!         {"name": "files", "command": "/opt/files-server", "args": [], "env": []},
//!         {"type": "sse", "name": "events", "url": "https://events.example/sse", "headers": []}
//!     ]}}"#.as_slice().into())?;
//! let request = SessionRequest::read(&request).unwrap();
//!
//! let mut all = Capabilities::STDIO;
//! (all.http, all.sse) = (true, true);
//! let validated = validate(&request, &AgentProfile::new(AcpVersion::V1, &all)).unwrap();
//! assert_eq!(validated.server_names().collect::<Vec<_>>(), ["files", "events"]);
//!
//! let refusal = validate(&request, &AgentProfile::new(AcpVersion::V1, &Capabilities::STDIO)).unwrap_err();
//! assert_eq!(
//!     refusal.to_string(),
//!     "SSE transport not supported: agent did not declare mcpCapabilities.sse"
//! );
//! assert_eq!(RpcError::from(&refusal).code, mcp_host_acp::code::INVALID_PARAMS);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! Ids such as `ACPX-03` name rules, the promised behaviour; `docs/rules.md` in the repository lists them.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// A type that is exhaustive states the reason for it.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod capabilities;
pub mod code;
mod diagnostic;
mod params;
mod policy;
mod request;
mod request_error;
#[cfg(feature = "schema")]
mod schema;
mod start_error;
mod timeouts;
mod validate;
mod version;

pub use mcp_host_config::acp::{Leniency, Tolerance};

/// The version of the protocol types that are converted.
#[cfg(feature = "schema")]
#[doc(no_inline)]
pub use agent_client_protocol_schema;
pub use capabilities::Capabilities;
pub use diagnostic::{RequestDiagnostic, RequestWarning, WarningEffect};
pub use policy::{AgentProfile, FolderStatus, InvalidEntryPolicy, Policy};
pub use request::{SessionRequest, response_id};
pub use request_error::{InvalidParams, SessionRequestError};
#[cfg(feature = "schema")]
pub use schema::SchemaConversionError;
pub use start_error::{ServerStartError, ServerStartErrorKind};
pub use timeouts::ServerTimeouts;
pub use validate::{SessionServer, ValidatedRequest, validate};
pub use version::{AcpTransport, AcpVersion, ServerSetEffect, SessionMethod};

/// Compiles the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! May this ACP session ask for that MCP server?
//!
//! An ACP client may hand an agent MCP servers only over transports that the agent has declared. This crate decides
//! that, as a function of the declared [`Capabilities`] and the list that was asked for, before anything connects
//! (ACP-039), and words the refusal as ACP carries it ([`InvalidParams`]). It reads no request and starts no server.
//!
//! ```
//! use mcp_acp::{Capabilities, Requested};
//! use mcp_model::{RawJson, TransportKind};
//!
//! let declared = RawJson::parse(br#"{"http": true}"#.as_slice().into())?;
//! let capabilities = Capabilities::read(&declared);
//! let files = Requested { server_name: "files", transport: TransportKind::Stdio };
//! let events = Requested { server_name: "events", transport: TransportKind::Sse };
//!
//! assert_eq!(capabilities.check(&[files]), Ok(()));
//! let refusal = capabilities.check(&[files, events]).unwrap_err();
//! assert_eq!(
//!     refusal.to_string(),
//!     "SSE transport not supported: agent did not declare mcpCapabilities.sse"
//! );
//! let error = mcp_model::RpcError::from(&refusal);
//! assert_eq!(error.code, mcp_acp::code::INVALID_PARAMS);
//! # Ok::<(), serde_json::Error>(())
//! ```

#![forbid(unsafe_code)]

mod capabilities;
pub mod code;
mod refusal;

pub use capabilities::{Capabilities, Requested};
pub use refusal::{InvalidParams, Refusal};

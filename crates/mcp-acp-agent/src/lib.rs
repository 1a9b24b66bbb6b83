//! The MCP servers of an ACP session: connected beside each other, scoped to it, and cleaned up after it.
#![forbid(unsafe_code)]

mod error;
mod evidence;
mod folder;
mod options;
#[cfg(feature = "sdk")]
mod request;
mod session;
mod sessions;
mod status;
mod wanted;

pub use mcp_host::ToolCall;
pub use mcp_registry::ExposedTool;

pub use error::SetUpError;
pub use folder::folder;
pub use options::{ConnectOptions, Required};
#[cfg(all(feature = "sdk", feature = "session-fork"))]
pub use request::ForkSession;
#[cfg(all(feature = "protocol-v2", feature = "session-fork"))]
pub use request::ForkSessionV2;
#[cfg(feature = "sdk")]
pub use request::{LoadSession, NewSession, ResumeSession, SetUpRequest};
#[cfg(feature = "protocol-v2")]
pub use request::{NewSessionV2, ResumeSessionV2};
pub use session::{Connecting, SessionMcp};
pub use sessions::Sessions;
pub use status::{ServerStatus, State, Statuses};

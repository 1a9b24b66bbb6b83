//! The servers of sessions, as an agent and its client see them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod asked;
mod connecting;
mod evidence;
mod processes;
mod scopes;
#[cfg(feature = "sdk")]
mod secrets;
#[cfg(feature = "sdk")]
mod wire;
mod world;

#[cfg(all(feature = "sdk", feature = "protocol-v2", feature = "session-fork"))]
mod matrix;
#[cfg(feature = "mcp-over-acp")]
mod over_acp;

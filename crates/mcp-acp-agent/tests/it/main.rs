//! Tests of the servers of ACP sessions.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod call_rules;
mod evidence;
#[cfg(feature = "sdk")]
mod example;
mod own_servers;
mod processes;
#[cfg(feature = "sdk")]
mod raw_client;
mod scopes;
#[cfg(feature = "sdk")]
mod secrets;
mod server_requests;
mod sessions;
mod shared_servers;
mod startup;

#[cfg(all(feature = "sdk", feature = "protocol-v2", feature = "session-fork"))]
mod matrix;
#[cfg(feature = "mcp-over-acp")]
mod over_acp;

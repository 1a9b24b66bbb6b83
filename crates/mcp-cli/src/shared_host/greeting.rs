//! What a shim and its host say to each other before and after the messages of the client. Each is a line of JSON.
//!
//! Both are the same build of the program, because its build is a part of the identity.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The maximum size of a greeting, in bytes.
pub(crate) const MAX_GREETING_BYTES: u64 = 64 * 1024;

/// The last line of a host that is stopped. It is no message of the protocol.
pub(crate) const FAREWELL: &[u8] = b"{\"mcp-host\":\"stopped\"}\n";

/// The first line of a shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShimGreeting {
    /// The process id of the shim.
    pub(crate) process: u32,
    /// The working folder of the client.
    pub(crate) folder: PathBuf,
}

/// The first line of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostGreeting {
    /// The process id of the host.
    pub(crate) process: u32,
}

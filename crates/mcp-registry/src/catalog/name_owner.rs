//! The owner of a name in a catalog: the host or a server.

use mcp_model::ServerId;

/// The owner of a tool, prompt or toolset name (DM-055, DM-097).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameOwner<'a> {
    /// The host itself. No server can take its names.
    Host,
    /// A server.
    Server(&'a ServerId),
}

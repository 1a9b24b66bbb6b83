//! Commands that act as an MCP server.

pub(crate) mod demo_server;
pub(crate) mod replay;
pub(crate) mod serve;

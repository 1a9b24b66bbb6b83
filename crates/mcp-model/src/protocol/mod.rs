//! Protocol-level values: revisions, JSON-RPC errors, log levels and trace contexts.

pub(crate) mod era;
pub(crate) mod log_level;
pub(crate) mod rpc;
pub(crate) mod trace;

//! Protocol-level values: revisions, methods, JSON-RPC errors, log levels and trace contexts.

pub(crate) mod era;
pub(crate) mod log_level;
pub(crate) mod method;
pub(crate) mod rpc;
pub(crate) mod trace;

//! Connections: their table, their time limits, TLS, and the loop that serves them.

pub(crate) mod active_requests;
pub(crate) mod client_connection;
pub(crate) mod connection_table;
pub(crate) mod framing;
pub(crate) mod serve;
pub(crate) mod stall_detector;
pub(crate) mod timed_stream;
pub(crate) mod tls;

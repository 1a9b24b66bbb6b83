//! Why a message cannot be sent.

use std::sync::Arc;

use mcp_host_transport::Disconnect;

/// Why a message cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RmcpError {
    /// The connection has ended.
    #[error("the server is no longer available: {0}")]
    Closed(Arc<Disconnect>),
    /// The outbound queue is full.
    #[error("the server does not read its input")]
    QueueFull,
    /// The message cannot be sent by a transport.
    #[error("the message cannot be sent: {0}")]
    InvalidMessage(String),
}

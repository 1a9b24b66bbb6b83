//! A stdio server: the state that all connections to it share.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::StdioEndpoint;

use super::encoding::StreamEncoding;
use super::receipt::ReceiptDirectory;
use crate::redact::Redactor;
use crate::transport::process_id::ProcessIdCell;

/// State that all connections to one server share.
pub(super) struct StdioServer {
    pub(super) endpoint: StdioEndpoint,
    pub(super) encoding: StreamEncoding,
    pub(super) redactor: Arc<Redactor>,
    pub(super) message_bytes: usize,
    /// How long the process may leave its input unread.
    pub(super) stall: Duration,
    pub(super) receipts: Option<ReceiptDirectory>,
    pub(super) process: ProcessIdCell,
}

//! A stdio server: its endpoint and options, which all connections to it share.

use std::sync::Arc;

use mcp_host_model::{Limits, Secret, StdioEndpoint};

use super::encoding::StreamEncoding;
use super::receipt::ReceiptDirectory;
use crate::redact::Redactor;
use crate::transport::process_id::ProcessIdCell;

/// The options of a stdio server, in addition to its endpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct StdioOptions {
    pub(crate) limits: Limits,
    /// Where the receipts of its processes are written.
    pub(crate) receipts: Option<ReceiptDirectory>,
    /// Receives the id of the process.
    pub(crate) process: ProcessIdCell,
    /// Secrets to redact in addition to those of the endpoint.
    pub(crate) extra_secrets: Vec<Secret>,
}

/// State that all connections to one server share.
pub(super) struct StdioServer {
    pub(super) endpoint: StdioEndpoint,
    pub(super) encoding: StreamEncoding,
    pub(super) redactor: Arc<Redactor>,
    pub(super) options: StdioOptions,
}

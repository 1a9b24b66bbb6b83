//! The result of a handshake: the protocol version, the server's description, and what each request declares.

pub(crate) mod client_meta;
pub(crate) mod era_reason;
pub(crate) mod server;
pub(crate) mod tool_headers;

use std::sync::Arc;

use mcp_host_model::{Era, LogLevel, ProtocolVersion};

use crate::rpc::request_owner::CallOwner;
use crate::session::options::SessionOptions;
use client_meta::modern_meta;
use era_reason::EraReason;
use server::ServerInfo;
use tool_headers::ToolHeaders;

/// The result of a handshake.
#[derive(Debug, Clone)]
pub(crate) struct NegotiatedSession {
    pub(crate) version: ProtocolVersion,
    pub(crate) era_reason: EraReason,
    pub(crate) server: ServerInfo,
    /// The `_meta` members that are added to each request; empty in the legacy era.
    pub(crate) meta: String,
    /// The log level that each request contains. Modern era only.
    pub(crate) log_level: Option<LogLevel>,
    /// The tool arguments that are sent as headers; `None` if there are none.
    pub(crate) tool_headers: Option<Arc<ToolHeaders>>,
}

impl NegotiatedSession {
    /// The result in this version. The reason for the legacy era is usually replaced.
    pub(crate) fn new(version: ProtocolVersion, server: ServerInfo, meta: String) -> NegotiatedSession {
        let era_reason = match version.era() {
            Era::Modern => EraReason::Discovered,
            Era::Legacy => EraReason::Configured,
        };
        NegotiatedSession { version, era_reason, server, meta, log_level: None, tool_headers: None }
    }

    pub(crate) fn with_era_reason(self, era_reason: EraReason) -> NegotiatedSession {
        NegotiatedSession { era_reason, ..self }
    }

    /// Sets the log level that each request contains. Modern era only.
    pub(crate) fn set_log_level(&mut self, level: Option<LogLevel>, options: &SessionOptions) {
        let has_tasks = self.server.capabilities.tasks.call;
        self.meta = modern_meta(self.version, options, &CallOwner::None, level, has_tasks);
        self.log_level = level;
    }
}

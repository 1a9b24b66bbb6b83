//! The result of a handshake: the protocol version, the server's description, and what each request declares.

pub(crate) mod client_meta;
pub(crate) mod era_reason;
pub(crate) mod server;
pub(crate) mod tool_headers;

use std::sync::Arc;

use mcp_host_model::{Era, LogLevel, ProtocolVersion};
use parking_lot::Mutex;

use crate::rpc::caller::ClientCapabilities;
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
    /// The `_meta` members of the latest caller with capabilities of its own. Most calls have the same ones.
    caller_meta: Arc<Mutex<Option<CallerMeta>>>,
}

/// The `_meta` members of a caller's requests.
#[derive(Debug)]
struct CallerMeta {
    capabilities: ClientCapabilities,
    log_level: Option<LogLevel>,
    text: Arc<str>,
}

impl NegotiatedSession {
    /// The result in this version. The reason for the legacy era is usually replaced.
    pub(crate) fn new(version: ProtocolVersion, server: ServerInfo, meta: String) -> NegotiatedSession {
        let era_reason = match version.era() {
            Era::Modern => EraReason::Discovered,
            Era::Legacy => EraReason::Configured,
        };
        NegotiatedSession {
            version,
            era_reason,
            server,
            meta,
            log_level: None,
            tool_headers: None,
            caller_meta: Arc::default(),
        }
    }

    /// Returns the `_meta` members of a request of `owner`. Modern era only.
    pub(crate) fn meta_of(
        &self,
        options: &SessionOptions,
        owner: &CallOwner,
        log_level: Option<LogLevel>,
    ) -> Arc<str> {
        let has_tasks = self.server.capabilities.tasks.call;
        let new_meta = || modern_meta(self.version, options, owner, log_level, has_tasks).into();
        let CallOwner::Caller(caller) = owner else { return new_meta() };
        let Some(capabilities) = &caller.capabilities else { return new_meta() };
        let mut latest = self.caller_meta.lock();
        match &*latest {
            Some(meta) if meta.capabilities == *capabilities && meta.log_level == log_level => {
                Arc::clone(&meta.text)
            }
            Some(_) | None => {
                let (capabilities, text) = (capabilities.clone(), new_meta());
                *latest = Some(CallerMeta { capabilities, log_level, text: Arc::clone(&text) });
                text
            }
        }
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

//! The features of a client: its capabilities, parsed.

use std::sync::{Arc, OnceLock};

use mcp_host_model::{APPS_EXTENSION, RawJson, TASKS_EXTENSION};
use mcp_host_transport::ClientCapabilities;

use crate::lists::listing::Audience;
use crate::protocol::json_splice;
use crate::session::supported_requests::SupportedRequests;

/// A client's capabilities, parsed at first use.
#[derive(Debug)]
pub(crate) struct ClientFeatures {
    /// The capabilities as the client sent them: an object.
    pub(crate) capabilities: RawJson,
    /// The server requests that it supports, and the capabilities for servers.
    parsed: OnceLock<(SupportedRequests, Option<ClientCapabilities>)>,
}

impl ClientFeatures {
    pub(crate) fn of(capabilities: RawJson) -> Arc<ClientFeatures> {
        Arc::new(ClientFeatures { capabilities, parsed: OnceLock::new() })
    }

    /// The server requests that the client supports.
    pub(crate) fn supported_requests(&self) -> SupportedRequests {
        self.parsed().0
    }

    /// The capabilities that are declared to servers. The gateway forwards no tasks that the
    /// client of a legacy session runs.
    pub(crate) fn upstream_capabilities(&self) -> Option<ClientCapabilities> {
        self.parsed().1.clone()
    }

    /// Whether the client declares the extension for tasks.
    pub(crate) fn supports_tasks(&self) -> bool {
        self.declares(TASKS_EXTENSION)
    }

    /// The recipients of tools: apps are among them if the client declares the extension for apps.
    pub(crate) fn audience(&self) -> Audience {
        match self.declares(APPS_EXTENSION) {
            true => Audience::ModelsAndApps,
            false => Audience::Models,
        }
    }

    fn declares(&self, extension: &str) -> bool {
        // Fast path: most capabilities do not contain the name, and this runs for each call.
        let text = self.capabilities.as_bytes();
        if memchr::memmem::find(text, extension.as_bytes()).is_none() && memchr::memchr(b'\\', text).is_none()
        {
            return false;
        }
        let extensions = json_splice::member(&self.capabilities, "extensions");
        extensions.is_some_and(|it| json_splice::member(&it, extension).is_some_and(|it| it.is_object()))
    }

    fn parsed(&self) -> &(SupportedRequests, Option<ClientCapabilities>) {
        self.parsed.get_or_init(|| {
            let capabilities = ClientCapabilities::new(self.capabilities.clone());
            let capabilities = capabilities.map(|capabilities| capabilities.without("tasks"));
            (SupportedRequests::of(&self.capabilities), capabilities)
        })
    }
}

//! The context of a request: its client, version, scope, dialog and message sender.

use std::sync::{Arc, OnceLock};

use mcp_host_model::{APPS_EXTENSION, Era, LogLevel, ProtocolVersion, RawJson, TASKS_EXTENSION};
use mcp_host_runtime::DialogId;
use mcp_host_transport::{CallerId, ClientCapabilities};

use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::lists::listing::Audience;
use crate::protocol::json_splice;
use crate::protocol::meta::Meta;
use crate::session::client_dialog::ClientDialog;
use crate::session::elicitation::SupportedRequests;
use crate::session::outbound_queue::MessageSender;
use crate::session::state::Session;

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

/// The client of one request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) version: ProtocolVersion,
    /// The part of the catalog that it sees.
    pub(crate) scope: Arc<Scope>,
    /// The dialog of the request, if any.
    pub(crate) dialog: Option<Arc<ClientDialog>>,
    /// The client's capabilities.
    pub(crate) features: Arc<ClientFeatures>,
    /// Sends messages that precede the response.
    pub(crate) sender: MessageSender,
    /// The session, in the legacy era.
    pub(crate) session: Option<Arc<Session>>,
    /// Identifies the caller to the host: one id for each session or dialog, otherwise for each request.
    pub(crate) owner: CallerId,
    /// The client's identity.
    pub(crate) principal: Principal,
}

impl Caller {
    /// The client of a session.
    pub(crate) fn of_session(session: &Arc<Session>, sender: MessageSender) -> Caller {
        Caller {
            version: session.version,
            scope: Arc::clone(&session.scope),
            dialog: Some(Arc::clone(&session.dialog)),
            features: Arc::clone(&session.features),
            sender,
            session: Some(Arc::clone(session)),
            owner: session.dialog.owner,
            principal: session.principal.clone(),
        }
    }

    /// The era of the request.
    pub(crate) fn era(&self) -> Era {
        self.version.era()
    }

    /// The dialog's id.
    pub(crate) fn dialog_id(&self) -> Option<DialogId> {
        self.dialog.as_ref().map(|dialog| dialog.id().clone())
    }

    /// The minimum level of log messages for this request; `None` for no messages.
    pub(crate) fn log_level(&self, meta: &Meta) -> Option<LogLevel> {
        match (self.era(), &self.session) {
            (Era::Modern, _) => meta.log_level,
            // Without a level the server decides, and the gateway sends all messages.
            (Era::Legacy, Some(session)) => Some(session.log_level().unwrap_or(LogLevel::Debug)),
            (Era::Legacy, None) => None,
        }
    }
}

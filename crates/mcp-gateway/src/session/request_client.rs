//! The client of a request, with the version, scope, dialog and message sender of the request.

use std::net::IpAddr;
use std::sync::Arc;

use mcp_host_model::{Era, LogLevel, ProtocolVersion};
use mcp_host_runtime::DialogId;
use mcp_host_transport::CallerId;

use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::protocol::meta::RequestMeta;
use crate::session::client_dialog::ClientDialog;
use crate::session::client_session::ClientSession;
use crate::session::features::ClientFeatures;
use crate::session::outbound_queue::MessageSender;

/// The client of one request.
#[derive(Debug, Clone)]
pub(crate) struct RequestClient {
    pub(crate) version: ProtocolVersion,
    /// The part of the catalog that the request may use.
    pub(crate) scope: Arc<Scope>,
    /// The dialog of the request, if any.
    pub(crate) dialog: Option<Arc<ClientDialog>>,
    /// The client's capabilities.
    pub(crate) features: Arc<ClientFeatures>,
    /// Sends messages that precede the response.
    pub(crate) sender: MessageSender,
    /// The session, in the legacy era.
    pub(crate) session: Option<Arc<ClientSession>>,
    /// Identifies the caller to the host: one id for each session or dialog, otherwise for each request.
    pub(crate) caller_id: CallerId,
    /// The client's identity.
    pub(crate) principal: Principal,
    /// Where the request came from, for the audit log.
    pub(crate) source: RequestSource,
}

/// Where a request came from. Over stdio nothing of it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestSource {
    /// The address of the client.
    pub(crate) address: Option<IpAddr>,
    /// The line of its token in the list.
    pub(crate) token_line: Option<usize>,
}

impl RequestClient {
    /// The client of a session, for a request of unknown source.
    pub(crate) fn from_session(session: &Arc<ClientSession>, sender: MessageSender) -> RequestClient {
        RequestClient {
            version: session.version,
            scope: Arc::clone(&session.scope),
            dialog: Some(Arc::clone(&session.dialog)),
            features: Arc::clone(&session.features),
            sender,
            session: Some(Arc::clone(session)),
            caller_id: session.dialog.caller_id,
            principal: session.principal.clone(),
            source: RequestSource::default(),
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
    pub(crate) fn log_level(&self, meta: &RequestMeta) -> Option<LogLevel> {
        match (self.era(), &self.session) {
            (Era::Modern, _) => meta.forwarded.log_level(),
            // Without a level the server decides, and the gateway sends all messages.
            (Era::Legacy, Some(session)) => Some(session.log_level().unwrap_or(LogLevel::Debug)),
            (Era::Legacy, None) => None,
        }
    }
}

//! Who asks, in which version, what he may see, and where he hears what comes before his answer.

use std::sync::Arc;

use mcp_host::{Dialog, DialogId};
use mcp_model::{Era, LogLevel, ProtocolVersion, RawJson};
use mcp_transport::CallerId;

use crate::Scope;
use crate::meta::Meta;
use crate::outlet::Outlet;
use crate::principal::Principal;
use crate::session::Session;

/// The client behind one request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The version of the request.
    pub(crate) version: ProtocolVersion,
    /// What he sees.
    pub(crate) scope: Arc<Scope>,
    /// The dialog it belongs to, if any.
    pub(crate) dialog: Option<Arc<Dialog>>,
    /// What he can do: an object.
    pub(crate) capabilities: RawJson,
    /// Where he hears of this request.
    pub(crate) outlet: Outlet,
    /// His session, in the era that has them.
    pub(crate) session: Option<Arc<Session>>,
    /// Whose his calls are: one for each session or dialog, else for each request.
    pub(crate) owner: CallerId,
    /// Whose token he has.
    pub(crate) principal: Principal,
}

impl Caller {
    /// The client of a session.
    pub(crate) fn of_session(session: &Arc<Session>, outlet: Outlet) -> Caller {
        Caller {
            version: session.version,
            scope: Arc::clone(&session.scope),
            dialog: Some(Arc::clone(&session.dialog)),
            capabilities: session.capabilities.clone(),
            outlet,
            session: Some(Arc::clone(session)),
            owner: session.owner,
            principal: session.principal.clone(),
        }
    }

    /// The era of the request.
    pub(crate) fn era(&self) -> Era {
        self.version.era()
    }

    /// The dialog's name.
    pub(crate) fn dialog_id(&self) -> Option<DialogId> {
        self.dialog.as_ref().map(|it| it.id().clone())
    }

    /// From which level on he wants log messages that come of this request.
    pub(crate) fn log_level(&self, meta: &Meta) -> Option<LogLevel> {
        match (self.era(), &self.session) {
            (Era::Modern, _) => meta.log_level,
            // Who never said a level hears all: the specification leaves it to the server.
            (Era::Legacy, Some(session)) => Some(session.log_level().unwrap_or(LogLevel::Debug)),
            (Era::Legacy, None) => None,
        }
    }
}

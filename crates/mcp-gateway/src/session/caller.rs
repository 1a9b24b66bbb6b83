//! Who asks, in which version, what he may see, and where he hears what comes before his answer.

use std::sync::{Arc, OnceLock};

use mcp_host::{Dialog, DialogId};
use mcp_model::{Era, LogLevel, ProtocolVersion, RawJson};
use mcp_transport::{CallerId, ClientCapabilities};

use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::protocol::meta::Meta;
use crate::session::elicitation::Answers;
use crate::session::outbound_queue::Outlet;
use crate::session::state::Session;

/// What a client can do, read when it matters, and once.
#[derive(Debug)]
pub(crate) struct Able {
    /// As he said it: an object.
    pub(crate) capabilities: RawJson,
    /// What he can be asked, and what servers are told of it.
    read: OnceLock<(Answers, Option<ClientCapabilities>)>,
}

impl Able {
    /// Who says this of himself.
    pub(crate) fn of(capabilities: RawJson) -> Arc<Able> {
        Arc::new(Able { capabilities, read: OnceLock::new() })
    }

    /// What he can be asked.
    pub(crate) fn answers(&self) -> Answers {
        self.read().0
    }

    /// What servers are told of it.
    pub(crate) fn told(&self) -> Option<ClientCapabilities> {
        self.read().1.clone()
    }

    fn read(&self) -> &(Answers, Option<ClientCapabilities>) {
        self.read.get_or_init(|| {
            (Answers::of(&self.capabilities), ClientCapabilities::new(self.capabilities.clone()))
        })
    }
}

/// The client behind one request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The version of the request.
    pub(crate) version: ProtocolVersion,
    /// What he sees.
    pub(crate) scope: Arc<Scope>,
    /// The dialog it belongs to, if any.
    pub(crate) dialog: Option<Arc<Dialog>>,
    /// What he can do.
    pub(crate) able: Arc<Able>,
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
            able: Arc::clone(&session.able),
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

//! The identity of a client: the name of its token.

use std::fmt;
use std::sync::Arc;

use mcp_host_model::TransportKind;

use crate::access::secret_id::new_secret_id;

/// The identity of a client. The sessions, dialogs and pending input of one principal are inaccessible to others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Principal(PrincipalKind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PrincipalKind {
    /// All clients without a token.
    Anonymous,
    /// The name of a token.
    Named(Arc<str>),
    /// A stdio client, with a name of its own.
    Stdio(Arc<str>),
}

impl Principal {
    /// The principal of a token with this name.
    pub(crate) fn named(name: &str) -> Principal {
        Principal(PrincipalKind::Named(name.into()))
    }

    /// A new principal for a stdio client.
    pub(crate) fn new_stdio() -> Principal {
        Principal(PrincipalKind::Stdio(format!("stdio {}", new_secret_id()).into()))
    }

    /// The transport of the client.
    pub(crate) fn transport(&self) -> TransportKind {
        match self.0 {
            PrincipalKind::Stdio(_) => TransportKind::Stdio,
            PrincipalKind::Anonymous | PrincipalKind::Named(_) => TransportKind::Http,
        }
    }

    /// The name of its token; empty for clients without a token.
    pub(crate) fn name(&self) -> &str {
        match &self.0 {
            PrincipalKind::Anonymous => "",
            PrincipalKind::Named(name) | PrincipalKind::Stdio(name) => name,
        }
    }

    /// The user, as rules for calls name it: the name of its token. `None` for clients without a token.
    pub(crate) fn user(&self) -> Option<Arc<str>> {
        match &self.0 {
            PrincipalKind::Named(name) => Some(Arc::clone(name)),
            PrincipalKind::Anonymous | PrincipalKind::Stdio(_) => None,
        }
    }

    /// Whether this is the shared principal of all clients without a token.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.0 == PrincipalKind::Anonymous
    }

    /// Whether the client may see what a shared server does outside of calls: all clients count as one, or the client
    /// has started the gateway.
    pub(crate) fn may_see_shared_activity(&self) -> bool {
        match &self.0 {
            PrincipalKind::Anonymous | PrincipalKind::Stdio(_) => true,
            PrincipalKind::Named(_) => false,
        }
    }

    /// The shared principal of all clients without a token.
    pub(crate) fn anonymous() -> Principal {
        Principal(PrincipalKind::Anonymous)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

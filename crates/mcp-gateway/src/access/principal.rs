//! The identity of a client: the name of its token.

use std::fmt;
use std::sync::Arc;

use crate::access::secret_id::new_secret_id;

/// The identity of a client. The sessions, dialogs and pending input of one principal are inaccessible to others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Principal(Option<Arc<str>>);

impl Principal {
    /// The principal of a token with this name.
    pub(crate) fn named(name: &str) -> Principal {
        Principal(Some(name.into()))
    }

    /// A new principal for a stdio client.
    pub(crate) fn new_stdio() -> Principal {
        Principal(Some(format!("stdio {}", new_secret_id()).into()))
    }

    /// The name of its token; empty for clients without a token.
    pub(crate) fn name(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether this is the shared principal of all clients without a token.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.0.is_none()
    }

    /// The shared principal of all clients without a token.
    pub(crate) fn anonymous() -> Principal {
        Principal(None)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! The user's secrets that a server refers to.

use std::collections::BTreeMap;

use mcp_host_model::Secret;

/// The user's secrets that the entry of a server refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSecrets {
    /// Their names, sorted; for an input, the name of its variable.
    pub names: Vec<String>,
    /// The values that were read.
    pub values: Vec<Secret>,
    /// Whether values were withheld ([`SecretAccess::Withheld`](crate::SecretAccess::Withheld)): then the server cannot
    /// be started.
    pub are_withheld: bool,
}

/// The secrets that were read for a server.
#[derive(Default)]
pub(super) struct ReadSecrets {
    /// By name; `None` if the source does not have it, or if it was withheld.
    pub(super) values: BTreeMap<String, Option<Secret>>,
    /// Whether a value was withheld.
    pub(super) are_withheld: bool,
    /// Whether secrets are refused now, because the text that is resolved is visible to others.
    pub(super) is_public: bool,
}

impl ReadSecrets {
    pub(super) fn into_server_secrets(self) -> ServerSecrets {
        let (names, values): (Vec<_>, Vec<_>) = self.values.into_iter().unzip();
        let values = values.into_iter().flatten().collect();
        ServerSecrets { names, values, are_withheld: self.are_withheld }
    }
}

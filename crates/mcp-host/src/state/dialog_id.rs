//! Identifiers of dialogs.

use std::fmt;
use std::sync::Arc;

/// The id of a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DialogId(Arc<str>);

impl DialogId {
    /// Creates an id from any text. The empty one is the id of calls without a dialog.
    pub fn new(name: impl Into<Arc<str>>) -> DialogId {
        DialogId(name.into())
    }

    /// Returns the id of calls without a dialog, which share their leases.
    pub(crate) fn anonymous() -> DialogId {
        DialogId::new("")
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DialogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("(none)") } else { f.write_str(&self.0) }
    }
}

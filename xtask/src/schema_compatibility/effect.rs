//! Changes of a schema and their effects on existing documents.
//!
//! A change that widens in one respect and narrows in another breaks: neither old documents nor old readers are safe.

use std::fmt;

/// The effect of a schema change on documents, ordered by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// The same documents are valid; only texts for people changed.
    Annotations,
    /// All valid documents stay valid, and more become valid.
    Widens,
    /// Some valid documents become invalid.
    Narrows,
    /// Some documents become invalid and others valid, or the check cannot decide.
    Breaks,
}

impl Effect {
    /// The effect of the change inside a negated schema.
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Widens => Self::Narrows,
            Self::Narrows => Self::Widens,
            Self::Annotations | Self::Breaks => self,
        }
    }

    /// The effect of a change of the allowed set.
    pub(super) fn of(lost: bool, gained: bool) -> Option<Self> {
        match (lost, gained) {
            (false, false) => None,
            (false, true) => Some(Self::Widens),
            (true, false) => Some(Self::Narrows),
            (true, true) => Some(Self::Breaks),
        }
    }

    /// Whether a valid document may become invalid.
    pub(super) fn rejects_old_documents(self) -> bool {
        match self {
            Self::Annotations | Self::Widens => false,
            Self::Narrows | Self::Breaks => true,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Annotations => "annotations only",
            Self::Widens => "widens",
            Self::Narrows => "**narrows**",
            Self::Breaks => "**breaks**",
        })
    }
}

/// A change of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// The location in a document, such as `servers.*.args[]`; `(root)` for the document itself.
    pub location: String,
    /// A short sentence without a full stop.
    pub description: String,
    pub effect: Effect,
}

/// A location in a document.
#[derive(Debug, Clone, Default)]
pub(super) struct DocumentPath(String);

impl DocumentPath {
    pub(super) fn member(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}.{name}", self.0)) }
    }

    pub(super) fn any_member(&self) -> Self {
        self.member("*")
    }

    pub(super) fn element(&self) -> Self {
        Self(format!("{}[]", self.0))
    }
}

impl fmt::Display for DocumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "(root)" } else { &self.0 })
    }
}

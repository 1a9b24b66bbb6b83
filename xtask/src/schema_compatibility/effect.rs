//! What a change of a schema does to the documents that exist, and where it stands.
//!
//! There are four effects and they add up: a change that widens in one way and narrows in another breaks, for neither
//! the old documents nor the old readers can be trusted any more.

use std::fmt;

/// What becomes of documents when a schema changes. In order of how much it hurts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// The same documents are valid; only what a person reads has changed.
    Words,
    /// Every document that was valid still is, and more are.
    Widens,
    /// Some documents that were valid no longer are, and none became valid.
    Narrows,
    /// Some that were valid no longer are, and others became so; or this check cannot tell.
    Breaks,
}

impl Effect {
    /// The effect of the same change where the schema is negated.
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Widens => Self::Narrows,
            Self::Narrows => Self::Widens,
            Self::Words | Self::Breaks => self,
        }
    }

    /// Of two sets of what is allowed: what the step from one to the other does.
    pub(super) fn of(lost: bool, gained: bool) -> Option<Self> {
        match (lost, gained) {
            (false, false) => None,
            (false, true) => Some(Self::Widens),
            (true, false) => Some(Self::Narrows),
            (true, true) => Some(Self::Breaks),
        }
    }

    /// Whether a document that was valid may be refused now.
    pub(super) fn refuses_old_documents(self) -> bool {
        match self {
            Self::Words | Self::Widens => false,
            Self::Narrows | Self::Breaks => true,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Words => "words only",
            Self::Widens => "widens",
            Self::Narrows => "**narrows**",
            Self::Breaks => "**breaks**",
        })
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// The place in a document: `servers.*.args[]`; `(root)` for the document itself.
    pub place: String,
    /// What has changed, in a short sentence without a full stop.
    pub what: String,
    /// What it does.
    pub effect: Effect,
}

/// A place in a document, as the schema describes it.
#[derive(Debug, Clone, Default)]
pub(super) struct Place(String);

impl Place {
    pub(super) fn member(&self, name: &str) -> Self {
        match self.0.is_empty() {
            true => Self(name.to_owned()),
            false => Self(format!("{}.{name}", self.0)),
        }
    }

    pub(super) fn any_member(&self) -> Self {
        self.member("*")
    }

    pub(super) fn element(&self) -> Self {
        Self(format!("{}[]", self.0))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "(root)" } else { &self.0 })
    }
}

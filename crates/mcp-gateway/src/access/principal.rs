//! Who a client is: the name of his token, or nobody in particular.

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::access::secret_id::secret_id;

/// A client, as far as it matters: what one of them has begun another one cannot touch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Principal(Arc<str>);

impl Principal {
    /// By the name of his token.
    pub(crate) fn named(name: &str) -> Principal {
        Principal(name.into())
    }

    /// Whoever is on one pipe.
    pub(crate) fn of_pipe() -> Principal {
        Principal(format!("pipe {}", secret_id()).into())
    }

    /// Is it everybody, for want of a token? Then several who know nothing of each other are one.
    pub(crate) fn is_anybody(&self) -> bool {
        self.0.is_empty()
    }

    /// Whoever there is, where no token is asked for.
    pub(crate) fn anybody() -> Principal {
        static ANYBODY: LazyLock<Principal> = LazyLock::new(|| Principal("".into()));
        ANYBODY.clone()
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

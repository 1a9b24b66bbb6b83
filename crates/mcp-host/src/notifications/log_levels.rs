//! From which level on log messages are wanted of which server.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use mcp_model::{LogLevel, ServerId};

/// The levels that were asked for. One that was asked of a single server holds until one is asked of all.
#[derive(Debug, Default)]
pub(crate) struct Levels(RwLock<Asked>);

#[derive(Debug, Default)]
struct Asked {
    all: Option<LogLevel>,
    single: HashMap<ServerId, LogLevel>,
}

impl Levels {
    /// This level of all of them.
    pub(crate) fn new(all: Option<LogLevel>) -> Levels {
        Levels(RwLock::new(Asked { all, single: HashMap::new() }))
    }

    /// The level that is wanted of a server.
    pub(crate) fn of(&self, server: &ServerId) -> Option<LogLevel> {
        let asked = self.0.read().unwrap_or_else(PoisonError::into_inner);
        asked.single.get(server).copied().or(asked.all)
    }

    /// Wants this level of all.
    pub(crate) fn want(&self, level: LogLevel) {
        let mut asked = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *asked = Asked { all: Some(level), single: HashMap::new() };
    }

    /// Wants this level of one that is known.
    pub(crate) fn want_of(&self, server: ServerId, level: LogLevel) {
        let mut asked = self.0.write().unwrap_or_else(PoisonError::into_inner);
        asked.single.insert(server, level);
    }
}

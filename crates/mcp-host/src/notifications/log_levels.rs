//! The minimum log levels that are requested from servers.

use std::collections::HashMap;

use mcp_host_model::{LogLevel, ServerId};
use parking_lot::RwLock;

/// The requested levels. A level of one server applies until a level for all servers is set.
#[derive(Debug, Default)]
pub(crate) struct LogLevels(RwLock<LevelTable>);

#[derive(Debug, Default)]
struct LevelTable {
    /// The level of the servers that have none of their own.
    all: Option<LogLevel>,
    /// The levels of servers that have one of their own.
    by_server: HashMap<ServerId, LogLevel>,
}

impl LogLevels {
    /// Creates levels with one for all servers.
    pub(crate) fn new(all: Option<LogLevel>) -> LogLevels {
        LogLevels(RwLock::new(LevelTable { all, by_server: HashMap::new() }))
    }

    /// Returns the requested level of a server.
    pub(crate) fn level(&self, server: &ServerId) -> Option<LogLevel> {
        let table = self.0.read();
        table.by_server.get(server).copied().or(table.all)
    }

    /// Sets the level of all servers, and removes those of single servers.
    pub(crate) fn set_all(&self, level: LogLevel) {
        let mut table = self.0.write();
        *table = LevelTable { all: Some(level), by_server: HashMap::new() };
    }

    /// Sets the level of one server.
    pub(crate) fn set_server(&self, server: ServerId, level: LogLevel) {
        let mut table = self.0.write();
        table.by_server.insert(server, level);
    }
}

//! Minimum log levels requested from servers.

use std::collections::HashMap;

use mcp_host_model::{LogLevel, ServerId};
use parking_lot::RwLock;

/// The requested levels. A level for one server holds until a level for all servers is set.
#[derive(Debug, Default)]
pub(crate) struct LogLevels(RwLock<LevelTable>);

#[derive(Debug, Default)]
struct LevelTable {
    all: Option<LogLevel>,
    single: HashMap<ServerId, LogLevel>,
}

impl LogLevels {
    /// One level for all servers.
    pub(crate) fn new(all: Option<LogLevel>) -> LogLevels {
        LogLevels(RwLock::new(LevelTable { all, single: HashMap::new() }))
    }

    /// Returns the requested level of a server.
    pub(crate) fn level(&self, server: &ServerId) -> Option<LogLevel> {
        let table = self.0.read();
        table.single.get(server).copied().or(table.all)
    }

    /// Sets the level of all servers and removes single ones.
    pub(crate) fn set_all(&self, level: LogLevel) {
        let mut table = self.0.write();
        *table = LevelTable { all: Some(level), single: HashMap::new() };
    }

    /// Sets the level of one server.
    pub(crate) fn set_server(&self, server: ServerId, level: LogLevel) {
        let mut table = self.0.write();
        table.single.insert(server, level);
    }
}

//! Results of commands that start no server, because the configuration cannot be read or is refused.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_host::{ActiveProblem, HostError, HostSnapshot, ServerState, ServerStatus};
use mcp_model::{CallFailure, CallMetadata, CallResult, ErrorKind, Severity};
use mcp_registry::{Catalog, Problem};

use crate::config::file::{ConfigFile, FileError};
use crate::output::count;

/// The reason why no server was started.
#[derive(Debug)]
pub(crate) struct StartRefusal {
    /// The error and its kind.
    pub(crate) failure: HostError,
    /// Every server of the file, with its error.
    servers: Vec<ServerStatus>,
}

impl StartRefusal {
    /// The refusal for a file that cannot be read.
    pub(crate) fn for_unreadable(error: FileError) -> StartRefusal {
        let FileError { path: _, message, help } = error;
        StartRefusal { failure: HostError { kind: ErrorKind::Config, message, help }, servers: Vec::new() }
    }

    /// The refusal for a file with an error that affects all servers; `None` if there is none.
    pub(crate) fn for_config(file: &ConfigFile) -> Option<StartRefusal> {
        let loaded = &file.loaded;
        if !loaded.refused {
            return None;
        }
        let errors: Vec<_> = loaded.diagnostics.iter().filter(|it| it.severity == Severity::Error).collect();
        // The message names the first error, for readers of JSON that do not see the diagnostics.
        let first = errors.first();
        let first_error = first.map(|it| format!(": line {}: {}", it.line, it.message)).unwrap_or_default();
        let message = format!(
            "{} has {}, so none of its servers is started{first_error}",
            loaded.path,
            count(errors.len(), "error")
        );
        let failure =
            HostError { kind: ErrorKind::Config, message, help: first.and_then(|it| it.help.clone()) };
        let servers = loaded.reading.entries.iter().map(|entry| {
            let own = errors.iter().find(|it| it.server.as_ref() == Some(&entry.name));
            let failure = match own {
                Some(it) => HostError { kind: it.kind, message: it.message.clone(), help: it.help.clone() },
                None => failure.clone(),
            };
            ServerStatus {
                id: entry.name.clone(),
                state: ServerState::Failed,
                era: None,
                error: Some(failure),
            }
        });
        Some(StartRefusal { servers: servers.collect(), failure })
    }

    /// The published state of a host with these failed servers.
    pub(crate) fn published(&self, now: SystemTime) -> HostSnapshot {
        let problem = Problem::workspace_config_error(self.failure.message.clone());
        HostSnapshot {
            generation: 0,
            catalog: Arc::new(Catalog::empty()),
            servers: self.servers.clone(),
            problems: vec![ActiveProblem { problem, since: now }],
        }
    }

    /// The result of a call that was not made.
    pub(crate) fn call_result(&self, tool: &str) -> CallResult {
        let HostError { kind, message, help: _ } = &self.failure;
        failed_call(tool, *kind, message.clone())
    }
}

/// The result of a call that was not made.
pub(crate) fn failed_call(tool: &str, kind: ErrorKind, message: String) -> CallResult {
    CallResult {
        success: false,
        content: Vec::new(),
        error: Some(CallFailure { kind, message }),
        metadata: CallMetadata {
            server: None,
            tool: tool.to_owned(),
            duration: Duration::ZERO,
            request_id: None,
            structured_content: None,
            warnings: Vec::new(),
        },
    }
}

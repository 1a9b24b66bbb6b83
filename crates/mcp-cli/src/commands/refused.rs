//! A file that nothing may be started of, or that cannot be read, in the shapes of the commands that start servers.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_host::{ActiveProblem, HostError, HostSnapshot, ServerState, ServerStatus};
use mcp_model::{CallFailure, CallMetadata, CallResult, ErrorKind, Severity};
use mcp_registry::{Catalog, Problem};

use crate::source::{Source, Unreadable};

/// Why nothing was started.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// `ConfigError` and a sentence.
    pub(crate) failure: HostError,
    /// Every server of the file, and what is wrong with it.
    servers: Vec<ServerStatus>,
}

impl Refusal {
    /// The file cannot be read.
    pub(crate) fn unreadable(unreadable: Unreadable) -> Refusal {
        let Unreadable { path: _, message, help } = unreadable;
        Refusal { failure: HostError { kind: ErrorKind::Config, message, help }, servers: Vec::new() }
    }

    /// The file has an error that spoils all of it; `None` where it has none.
    pub(crate) fn of(source: &Source) -> Option<Refusal> {
        let loaded = &source.loaded;
        if !loaded.refused {
            return None;
        }
        let errors: Vec<_> = loaded.diagnostics.iter().filter(|it| it.severity == Severity::Error).collect();
        // Whoever sees this alone, in a document, is told at least where to begin.
        let first = errors.first();
        let begin = first.map(|it| format!(": line {}: {}", it.line, it.message)).unwrap_or_default();
        let message = format!(
            "{} has {} {}, so that none of its servers is started{begin}",
            loaded.path,
            errors.len(),
            if errors.len() == 1 { "error" } else { "errors" }
        );
        let whole =
            HostError { kind: ErrorKind::Config, message, help: first.and_then(|it| it.help.clone()) };
        let servers = loaded.reading.entries.iter().map(|entry| {
            let own = errors.iter().find(|it| it.server.as_ref() == Some(&entry.name));
            let failure = match own {
                Some(it) => HostError { kind: it.kind, message: it.message.clone(), help: it.help.clone() },
                None => whole.clone(),
            };
            ServerStatus {
                id: entry.name.clone(),
                state: ServerState::Failed,
                era: None,
                error: Some(failure),
            }
        });
        Some(Refusal { servers: servers.collect(), failure: whole })
    }

    /// The state of a host that was asked for nothing, and why.
    pub(crate) fn published(&self, now: SystemTime) -> HostSnapshot {
        let problem = Problem::workspace_config_error(self.failure.message.clone());
        HostSnapshot {
            generation: 0,
            catalog: Arc::new(Catalog::empty()),
            servers: self.servers.clone(),
            problems: vec![ActiveProblem { problem, since: now }],
        }
    }

    /// The result of a call that was never made.
    pub(crate) fn result(&self, tool: &str) -> CallResult {
        let HostError { kind, message, help: _ } = &self.failure;
        result(tool, *kind, message.clone())
    }
}

/// The result of a call that was never made.
pub(crate) fn result(tool: &str, kind: ErrorKind, message: String) -> CallResult {
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

//! Refusals to start servers, because the configuration or its lock file cannot be used.

use std::path::Path;
use std::time::SystemTime;

use mcp_host_model::{CallFailure, CallMetadata, CallResult, ErrorKind, Severity};
use mcp_host_registry::Problem;
use mcp_host_runtime::{ActiveProblem, Approval, HostError, HostSnapshot, ServerState, ServerStatus};

use crate::config::context::Context;
use crate::config::file::{ConfigFile, UsedServers};
use crate::config::file_error::ConfigFileError;
use crate::config::lock::load_approval;
use crate::output::count;
use crate::output::failure::Failure;

/// The reason why no server was started.
#[derive(Debug)]
pub(crate) struct StartRefusal {
    /// The error and its kind.
    pub(crate) failure: HostError,
    /// Every server of the file, with its error.
    servers: Vec<ServerStatus>,
}

impl From<ConfigFileError> for StartRefusal {
    fn from(error: ConfigFileError) -> StartRefusal {
        let ConfigFileError { path: _, message, help } = error;
        let mut failure = HostError::new(ErrorKind::Config, message);
        failure.help = help;
        StartRefusal { failure, servers: Vec::new() }
    }
}

impl From<StartRefusal> for Failure {
    fn from(refusal: StartRefusal) -> Failure {
        refusal.failure.into()
    }
}

impl StartRefusal {
    /// Fails if the file has an error that affects all servers.
    pub(crate) fn check(file: &ConfigFile) -> Result<(), StartRefusal> {
        let loaded = &file.loaded;
        if !loaded.refused {
            return Ok(());
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
        let mut failure = HostError::new(ErrorKind::Config, message);
        failure.help = first.and_then(|it| it.help.clone());
        let servers = loaded.reading.entries.iter().map(|entry| {
            let own = errors.iter().find(|it| it.server.as_ref() == Some(&entry.name));
            let mut failure = failure.clone();
            if let Some(own) = own {
                failure = HostError::new(own.kind, own.message.clone());
                failure.help = own.help.clone();
            }
            let mut status = ServerStatus::new(entry.name.as_str(), ServerState::Failed);
            status.error = Some(failure);
            status
        });
        Err(StartRefusal { servers: servers.collect(), failure })
    }

    /// The snapshot of a host with these failed servers.
    pub(crate) fn to_snapshot(&self, now: SystemTime) -> HostSnapshot {
        let problem = Problem::workspace_config_error(self.failure.message.clone());
        let mut snapshot = HostSnapshot::default();
        snapshot.servers = self.servers.clone();
        snapshot.problems = vec![ActiveProblem { problem, since: now }];
        snapshot
    }

    /// The result of a call that was not made.
    pub(crate) fn call_result(&self, tool: &str) -> CallResult {
        let HostError { kind, message, help: _, .. } = &self.failure;
        failed_call_result(tool, *kind, message.clone())
    }
}

/// Reads a configuration and its lock file, and prints its diagnostics about the used servers. Fails if no server may
/// be started.
pub(crate) async fn open_with_lock(
    context: &Context,
    path: Option<&Path>,
    used: UsedServers<'_>,
) -> Result<(ConfigFile, Option<Approval>), StartRefusal> {
    let asking = context.inputs.ask_for_inputs();
    let file = context.open_and_report_about(path, used).await?;
    StartRefusal::check(&file)?;
    let file = context.ask_for_approval(file).await?;
    drop(asking);
    let approval = load_approval(context, &file.path).await?;
    Ok((file, approval))
}

/// The result of a call that was not made.
pub(crate) fn failed_call_result(tool: &str, kind: ErrorKind, message: String) -> CallResult {
    CallResult::failure(CallFailure::new(kind, message), CallMetadata::new(tool))
}

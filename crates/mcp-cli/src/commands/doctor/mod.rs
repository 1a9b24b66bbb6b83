//! `doctor`: tests each server step by step and explains the first step that fails.
//!
//! The steps are those of a host, one at a time and with their durations. Servers are tested concurrently. The first
//! ones are reported in the order of the file, later ones as soon as they are done.

mod lists;
mod lock_check;
mod network;
mod program;
mod server_tests;
mod steps;
mod text;

use std::path::Path;
use std::time::Duration;

use mcp_host_model::ErrorKind;
use mcp_host_registry::Problem;
use mcp_host_runtime::{DesiredServers, FailedServer, HostError};
use serde::{Serialize, Serializer};

use crate::args::{Format, ServerArgs};
use crate::config::context::Context;
use crate::config::file::ConfigFile;
use crate::config::lock::load_approval;
use crate::host::select_server;
use crate::output::failure::Failure;
use crate::render::suggestions::quote_path;
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, unless_signalled};
use lock_check::LockState;
use server_tests::ServerTests;

/// The maximum of any time limit. Longer limits could overflow the clock.
const MAX_LIMIT: Duration = Duration::from_secs(60 * 60 * 24);

/// The report on one server.
#[derive(Debug, Serialize)]
struct ServerReport {
    /// The name of the server in the file.
    name: String,
    /// The transport; `None` if the entry is invalid.
    transport: Option<&'static str>,
    /// The command or URL.
    target: Option<String>,
    /// The steps in order; only the last one can have failed.
    steps: Vec<Step>,
}

/// One step of the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Step {
    #[serde(rename = "step")]
    name: &'static str,
    outcome: StepOutcome,
    message: String,
    help: Option<String>,
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    duration: Duration,
}

fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64() * 1000.0)
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
enum StepOutcome {
    /// The step succeeded.
    Passed,
    /// The step succeeded with a warning.
    Warning,
    /// The step failed; no further step is run.
    Failed(FailureCause),
    /// A signal ended the step.
    Interrupted,
}

/// The place of the cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureCause {
    /// In the configuration or the lock file.
    Configuration,
    /// Outside of these files: a missing program, the network, the server.
    Environment,
}

impl From<StepOutcome> for &'static str {
    fn from(outcome: StepOutcome) -> &'static str {
        match outcome {
            StepOutcome::Passed => "done",
            StepOutcome::Warning => "doubtful",
            StepOutcome::Failed(FailureCause::Configuration | FailureCause::Environment) => "failed",
            StepOutcome::Interrupted => "interrupted",
        }
    }
}

/// The JSON document of `doctor`.
#[derive(Serialize)]
struct DoctorJson<'a> {
    servers: &'a [ServerReport],
    /// What is wrong with the servers together, such as name collisions.
    problems: Vec<&'a Problem>,
}

/// Tests the servers of a configuration. A signal ends the tests; what is known then is printed.
pub(crate) async fn run(
    context: &Context,
    servers: &ServerArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let (desired, lock) = unless_signalled(signals, prepare(context, servers)).await??;
    let mut tests = ServerTests::start(context, desired, lock);
    let signal = unless_signalled(signals, tests.wait()).await.err();
    let mut report = tests.final_report();
    if report.exit == Exit::Success && signal.is_none() && context.format == Format::Text {
        let file = quote_path(servers.file.as_deref().unwrap_or(Path::new("")));
        report
            .after
            .push_str(&context.console.suggestion(&format!("`mcp-host tools {file}` lists their tools")));
    }
    match signal {
        None => Ok(unless_signalled(signals, context.print(report)).await.unwrap_or_else(Exit::Signal)),
        // The end of this function drops the tests, and with them every process that they started.
        Some(signal) => Ok(context.print_interrupted(report, signal).await),
    }
}

/// The servers to test. If the file has errors, the valid entries are still tested.
async fn prepare(context: &Context, servers: &ServerArgs) -> Result<(DesiredServers, LockState), Failure> {
    let ServerArgs { file, server } = servers;
    let file = context.open_and_report(file.as_deref()).await?;
    let lock = LockState::new(load_approval(context, &file.path).await);
    let mut desired = if file.loaded.refused { refused_servers(&file) } else { file.loaded.desired };
    if let Some(name) = server {
        desired = select_server(desired, name)?;
    }
    Ok((desired, lock))
}

/// The servers of a file that is refused as a whole, all as failed servers, so that none is started.
fn refused_servers(file: &ConfigFile) -> DesiredServers {
    let message = "the file has an error that affects all servers, so none of them is started";
    let mut error = HostError::new(ErrorKind::Config, message.to_owned());
    error.help = Some("correct what `mcp-host check` reports, then run `doctor` again".to_owned());
    let entries = file.loaded.reading.entries.iter();
    let failed = entries.map(|entry| FailedServer { id: entry.name.clone(), error: error.clone() });
    DesiredServers::default().with_failed(failed)
}

/// The exit code. An error in the configuration takes precedence over a server that cannot be used.
fn exit(reports: &[ServerReport]) -> Exit {
    let outcomes = || reports.iter().flat_map(|report| &report.steps).map(|step| step.outcome);
    if outcomes().any(|outcome| outcome == StepOutcome::Failed(FailureCause::Configuration)) {
        Exit::Failure
    } else if outcomes().any(|outcome| outcome == StepOutcome::Failed(FailureCause::Environment)) {
        Exit::Unreachable
    } else {
        Exit::Success
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(outcomes: &[StepOutcome], want: Exit) {
        let step = |outcome: &StepOutcome| Step {
            name: "n",
            outcome: *outcome,
            message: String::new(),
            help: None,
            duration: Duration::ZERO,
        };
        let report = ServerReport {
            name: "s".into(),
            transport: None,
            target: None,
            steps: outcomes.iter().map(step).collect(),
        };
        assert_eq!(exit(&[report]), want);
    }

    #[test]
    fn exit_code_depends_on_the_failure_cause() {
        check(&[], Exit::Success);
        check(&[StepOutcome::Passed, StepOutcome::Warning], Exit::Success);
        check(&[StepOutcome::Passed, StepOutcome::Failed(FailureCause::Environment)], Exit::Unreachable);
        check(&[StepOutcome::Failed(FailureCause::Configuration)], Exit::Failure);
    }
}

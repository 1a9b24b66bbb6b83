//! The result of a test: the steps of each server, and the exit code.

use std::time::Duration;

use mcp_host_registry::Problem;
use serde::{Serialize, Serializer};

use crate::runtime::exit::Exit;

/// The report on one server.
#[derive(Debug, Serialize)]
pub(super) struct ServerReport {
    /// The name of the server in the file.
    pub(super) name: String,
    /// The transport; `None` if the entry is invalid.
    pub(super) transport: Option<&'static str>,
    /// The command or URL.
    pub(super) target: Option<String>,
    /// The steps in order; only the last one can have failed.
    pub(super) steps: Vec<Step>,
}

/// One step of the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Step {
    #[serde(rename = "step")]
    pub(super) name: &'static str,
    pub(super) outcome: StepOutcome,
    pub(super) message: String,
    pub(super) help: Option<String>,
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    pub(super) duration: Duration,
}

fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64() * 1000.0)
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub(super) enum StepOutcome {
    /// The step succeeded.
    Passed,
    /// The step succeeded with a warning.
    Warning,
    /// The step failed; no further step is run.
    Failed(FailureCause),
    /// A signal ended the step.
    Interrupted,
}

/// Where the cause of a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureCause {
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
pub(super) struct DoctorJson<'a> {
    pub(super) servers: &'a [ServerReport],
    /// What is wrong with the servers together, such as name collisions.
    pub(super) problems: Vec<&'a Problem>,
}

/// The exit code. An error in the configuration takes precedence over a server that cannot be used.
pub(super) fn exit_code(reports: &[ServerReport]) -> Exit {
    let outcomes = || reports.iter().flat_map(|report| &report.steps).map(|step| step.outcome);
    if outcomes().any(|outcome| outcome == StepOutcome::Failed(FailureCause::Configuration)) {
        Exit::Failure
    } else if outcomes().any(|outcome| outcome == StepOutcome::Failed(FailureCause::Environment)) {
        Exit::Unreachable
    } else {
        Exit::Success
    }
}

/// The result of a step, without its name and duration.
pub(super) struct StepResult {
    pub(super) outcome: StepOutcome,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl StepResult {
    pub(super) fn passed(message: impl Into<String>) -> StepResult {
        StepResult { outcome: StepOutcome::Passed, message: message.into(), help: None }
    }

    pub(super) fn warning(message: impl Into<String>, help: impl Into<String>) -> StepResult {
        StepResult { outcome: StepOutcome::Warning, message: message.into(), help: Some(help.into()) }
    }

    pub(super) fn failed(message: impl Into<String>, help: Option<String>) -> StepResult {
        StepResult { outcome: StepOutcome::Failed(FailureCause::Environment), message: message.into(), help }
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
        assert_eq!(exit_code(&[report]), want);
    }

    #[test]
    fn exit_code_depends_on_the_failure_cause() {
        check(&[], Exit::Success);
        check(&[StepOutcome::Passed, StepOutcome::Warning], Exit::Success);
        check(&[StepOutcome::Passed, StepOutcome::Failed(FailureCause::Environment)], Exit::Unreachable);
        check(&[StepOutcome::Failed(FailureCause::Configuration)], Exit::Failure);
    }
}

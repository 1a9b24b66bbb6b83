//! Compares what a server offers with the lock file.

use std::sync::Arc;

use mcp_host_config::ResolvedServer;
use mcp_host_model::ServerId;
use mcp_host_registry::{DriftConsequence, Enforcement, ItemDrift};
use mcp_host_runtime::{Approval, ServerDefinitions};

use super::report::{FailureCause, StepOutcome, StepResult};
use crate::config::file_error::ConfigFileError;
use crate::output::count;
use crate::render::status::DRIFT_HELP;
use crate::runtime::run_blocking;

/// The maximum number of differences in the message; `lock --check` shows all.
const MAX_DIFFERENCES: usize = 5;

/// The lock file of the configuration.
#[derive(Debug, Clone)]
pub(super) enum LockState {
    /// There is no lock file, or it is ignored.
    None,
    /// It cannot be read, so a host starts no server.
    Invalid(Arc<ConfigFileError>),
    /// It was read.
    Loaded(Arc<Approval>),
}

impl LockState {
    /// The state after reading the file.
    pub(super) fn new(read: Result<Option<Approval>, ConfigFileError>) -> LockState {
        match read {
            Ok(None) => LockState::None,
            Ok(Some(approval)) => LockState::Loaded(Arc::new(approval)),
            Err(error) => LockState::Invalid(Arc::new(error)),
        }
    }

    /// The failure of a lock file that cannot be read; `None` otherwise.
    pub(super) fn file_failure(&self) -> Option<StepResult> {
        match self {
            LockState::None | LockState::Loaded(_) => None,
            LockState::Invalid(error) => Some(StepResult {
                outcome: StepOutcome::Failed(FailureCause::Configuration),
                message: error.message.clone(),
                help: error.help.clone(),
            }),
        }
    }

    /// The failure of a server that the lock file does not approve to be started.
    pub(super) async fn check_program(&self, server: &ResolvedServer) -> Option<StepResult> {
        let LockState::Loaded(approval) = self else { return None };
        let (approval, server) = (Arc::clone(approval), server.clone());
        let error = run_blocking(move || approval.check_program(&server)).await.err()?;
        Some(StepResult {
            outcome: StepOutcome::Failed(FailureCause::Configuration),
            message: error.detail().to_owned(),
            help: error.help,
        })
    }

    /// Compares what a server offers with the lock file, if there is one.
    pub(super) fn compare(&self, server: &ServerId, offer: &ServerDefinitions) -> Option<StepResult> {
        match self {
            LockState::None | LockState::Invalid(_) => None,
            LockState::Loaded(approval) => Some(compare(approval, server, offer)),
        }
    }
}

fn compare(approval: &Approval, server: &ServerId, offer: &ServerDefinitions) -> StepResult {
    let drift = offer.drift(server, approval);
    let items = count(offer.observed.items.values().map(|items| items.len()).sum(), "item");
    if drift.is_empty() {
        return StepResult::passed(format!("unchanged since approval: {items}"));
    }
    let effect = |enforcement: Enforcement| match enforcement {
        Enforcement::Withhold => "withheld",
        Enforcement::Warn => "shown with a warning",
    };
    if drift.is_never_approved() {
        let effect = effect(approval.policy.added);
        return StepResult::warning(format!("never approved: {items}, {effect}"), DRIFT_HELP);
    }
    let identity_changes = drift.identity_changes().iter().map(|it| format!("its {}", it.as_str()));
    let drifted_items = drift.items();
    let drifted = drifted_items.iter().map(|ItemDrift { item, key, change: _, .. }| {
        match drift.consequence(*item, key) {
            Some(DriftConsequence { enforcement, reason, .. }) => {
                format!("{} `{key}` is {}: {reason}", item.as_str(), effect(enforcement))
            }
            None => format!("{} `{key}` was removed", item.as_str()),
        }
    });
    // Withheld items come first.
    let mut all: Vec<String> = drifted.chain(identity_changes).collect();
    let more = all.len().saturating_sub(MAX_DIFFERENCES);
    all.truncate(MAX_DIFFERENCES);
    if more > 0 {
        all.push(format!("{more} more"));
    }
    StepResult::warning(format!("changed since approval: {}", all.join("; ")), DRIFT_HELP)
}

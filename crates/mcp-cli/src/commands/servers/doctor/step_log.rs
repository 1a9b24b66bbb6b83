//! The log of one server's test: its steps so far.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::report::{Step, StepOutcome, StepResult};

/// The steps of one server's test so far. Clones share them, so that they can be read while the test runs.
#[derive(Debug, Clone)]
pub(super) struct StepLog(Arc<Mutex<StepLogState>>);

#[derive(Debug)]
struct StepLogState {
    steps: Vec<Step>,
    /// The name of the running step, and when it began.
    running: (&'static str, Instant),
}

impl StepLog {
    /// A log without steps. The step `configuration` is running.
    pub(super) fn new() -> StepLog {
        let running = ("configuration", Instant::now());
        StepLog(Arc::new(Mutex::new(StepLogState { steps: Vec::new(), running })))
    }

    fn lock(&self) -> MutexGuard<'_, StepLogState> {
        self.0.lock().expect("no code panics while it holds the lock")
    }

    /// Begins a step.
    pub(super) fn begin(&self, name: &'static str) {
        self.lock().running = (name, Instant::now());
    }

    /// The duration of the running step.
    pub(super) fn elapsed(&self) -> Duration {
        self.lock().running.1.elapsed()
    }

    /// Records the result of a step. Its time began with [`begin`](StepLog::begin), or when the previous step ended.
    /// Returns `None` if it failed, so that `?` ends the test.
    pub(super) fn record(&self, name: &'static str, result: StepResult) -> Option<()> {
        let now = Instant::now();
        let StepResult { outcome, message, help } = result;
        let mut state = self.lock();
        let duration = now.duration_since(state.running.1);
        state.steps.push(Step { name, outcome, message, help, duration });
        state.running.1 = now;
        match outcome {
            StepOutcome::Passed | StepOutcome::Warning => Some(()),
            StepOutcome::Failed(_) | StepOutcome::Interrupted => None,
        }
    }

    /// The finished steps.
    pub(super) fn steps(&self) -> Vec<Step> {
        self.lock().steps.clone()
    }

    /// The finished steps, and the running one as interrupted.
    pub(super) fn interrupted_steps(&self) -> Vec<Step> {
        let state = self.lock();
        let (name, start) = state.running;
        let message = format!("interrupted during the step `{name}`");
        let duration = start.elapsed();
        let last = Step { name, outcome: StepOutcome::Interrupted, message, help: None, duration };
        state.steps.iter().cloned().chain([last]).collect()
    }
}

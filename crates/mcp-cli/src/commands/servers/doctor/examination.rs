//! The steps of one server while it is tested.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::report::{Step, StepOutcome, StepResult};

/// The steps of a server so far. Clones share them, so that they can be read while the test runs.
#[derive(Debug, Clone)]
pub(super) struct Examination(Arc<Mutex<TestRecord>>);

#[derive(Debug)]
struct TestRecord {
    steps: Vec<Step>,
    /// The step that is running, and when it began.
    running: (&'static str, Instant),
}

impl Examination {
    /// A test without steps.
    pub(super) fn new() -> Examination {
        let running = ("configuration", Instant::now());
        Examination(Arc::new(Mutex::new(TestRecord { steps: Vec::new(), running })))
    }

    fn lock(&self) -> MutexGuard<'_, TestRecord> {
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

    /// Records the result of a step, whose time began with [`begin`](Examination::begin) or when the previous
    /// one ended. Returns `None` if it failed, so that `?` ends the test.
    pub(super) fn step(&self, name: &'static str, result: StepResult) -> Option<()> {
        let now = Instant::now();
        let StepResult { outcome, message, help } = result;
        let mut record = self.lock();
        let duration = now.duration_since(record.running.1);
        record.steps.push(Step { name, outcome, message, help, duration });
        record.running.1 = now;
        match outcome {
            StepOutcome::Passed | StepOutcome::Warning => Some(()),
            StepOutcome::Failed(_) | StepOutcome::Interrupted => None,
        }
    }

    /// The steps.
    pub(super) fn steps(&self) -> Vec<Step> {
        self.lock().steps.clone()
    }

    /// The steps, and the running one as interrupted.
    pub(super) fn interrupted(&self) -> Vec<Step> {
        let record = self.lock();
        let (name, start) = record.running;
        let message = format!("interrupted during the step `{name}`");
        let duration = start.elapsed();
        let last = Step { name, outcome: StepOutcome::Interrupted, message, help: None, duration };
        record.steps.iter().cloned().chain([last]).collect()
    }
}

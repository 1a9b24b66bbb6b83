//! The failures of a leased server.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::supervisor::machine::protocol::StartTicket;
use crate::supervisor::machine::supervision::{Outage, RestartPolicy, RestartState};

/// The maximum number of dialogs per server whose crashes are counted separately. A crash of any further dialog counts
/// as a failed start.
const MAX_CRASHED_DIALOGS: usize = 1024;

/// The failure history of a leased server.
#[derive(Debug, Default)]
pub(crate) struct LeaseHistory {
    /// Failed starts, for all dialogs.
    pub(super) starts: FailureHistory,
    /// Crashes, by dialog.
    pub(super) crashes: Vec<(DialogId, FailureHistory)>,
}

/// The consecutive failures of a leased server.
#[derive(Debug, Default)]
pub(crate) struct FailureHistory {
    pub(crate) restarts: RestartState,
    /// The last failure; `None` after a success.
    pub(crate) failure: Option<HostError>,
    /// The time of the first successful start after the last failure.
    pub(crate) up_since: Option<Instant>,
    /// The number of the last start that had begun when the last failure was counted. Starts up to it fail for the same
    /// reason and are not counted again.
    pub(crate) last_start: u64,
}

impl FailureHistory {
    /// Returns the error of a call that gets no instance at `now`; `None` if one may be started. `is_starting`: another
    /// start runs after the backoff.
    pub(crate) fn refusal(&self, is_starting: bool, now: Instant) -> Option<HostError> {
        let failure = self.failure.as_ref()?;
        let when = match self.restarts.next_attempt.and_then(|it| it.checked_duration_since(now)) {
            Some(left) if left > Duration::ZERO => {
                format!("the first call after {:.1} s restarts it", left.as_secs_f64())
            }
            Some(_) | None if is_starting => "it is restarting".to_owned(),
            Some(_) | None => return None,
        };
        Some(HostError { message: format!("{}; {when}", failure.message), ..failure.clone() })
    }

    /// Records a successful start.
    pub(crate) fn record_start(&mut self, now: Instant) {
        self.failure = None;
        self.restarts.clear_schedule();
        self.up_since.get_or_insert(now);
    }

    /// Records a failure. `last_start` is the number of the last start that has begun.
    pub(crate) fn record_failure(
        &mut self,
        policy: &RestartPolicy,
        failure: LeaseFailure<'_>,
        last_start: u64,
        now: Instant,
    ) {
        let LeaseFailure { ticket, error, outage } = failure;
        let is_counted = ticket.number <= self.last_start && self.failure.is_some();
        self.failure = Some(error);
        if is_counted {
            return;
        }
        let uptime = self.up_since.take().map(|it| now.saturating_duration_since(it));
        let outage = Outage { uptime: outage.uptime.or(uptime), ..outage };
        self.restarts.record_failure(policy, ticket.server.as_str(), outage, now);
        self.last_start = last_start;
    }
}

/// A failed start of a leased instance, or its crash.
pub(crate) struct LeaseFailure<'a> {
    pub(super) ticket: &'a StartTicket,
    pub(super) error: HostError,
    pub(super) outage: Outage,
}

impl LeaseHistory {
    /// Returns the first current failure.
    pub(crate) fn failure(&self) -> Option<&HostError> {
        let crashes = self.crashes.iter().filter_map(|it| it.1.failure.as_ref());
        self.starts.failure.iter().chain(crashes).next()
    }

    /// Returns the crashes of a dialog's instances, if there are any.
    pub(crate) fn find_crashes(&mut self, dialog: &DialogId) -> Option<&mut FailureHistory> {
        self.crashes.iter_mut().find(|it| it.0 == *dialog).map(|it| &mut it.1)
    }

    /// Returns the history to which a crash of a dialog's instance is added: its own, or that of starts if too many
    /// dialogs have one.
    pub(crate) fn history_for_crash(&mut self, dialog: &DialogId) -> &mut FailureHistory {
        let at = match self.crashes.iter().position(|it| it.0 == *dialog) {
            Some(at) => at,
            None if self.crashes.len() < MAX_CRASHED_DIALOGS => {
                self.crashes.push((dialog.clone(), FailureHistory::default()));
                self.crashes.len() - 1
            }
            None => return &mut self.starts,
        };
        &mut self.crashes[at].1
    }

    /// Removes the crashes of a dialog. Returns whether one of them was a current failure.
    pub(crate) fn forget(&mut self, dialog: &DialogId) -> bool {
        let had_failure = self.find_crashes(dialog).is_some_and(|it| it.failure.is_some());
        self.crashes.retain(|it| it.0 != *dialog);
        had_failure
    }
}

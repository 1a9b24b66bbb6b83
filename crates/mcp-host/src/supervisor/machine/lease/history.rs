//! The failures of a leased server.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::supervisor::machine::protocol::StartTicket;
use crate::supervisor::machine::supervision::{Outage, RestartPolicy, RestartState};

/// The maximum number of dialogs with crashes remembered per server. Beyond it, a crash counts as a failed start.
const MAX_CRASHED_DIALOGS: usize = 1024;

/// The failure history of a leased server.
#[derive(Debug, Default)]
pub(in crate::supervisor::machine) struct LeaseHistory {
    /// Failed starts, for all dialogs.
    pub(super) starts: StartHistory,
    /// Crashes, by dialog.
    pub(super) crashed: Vec<(DialogId, StartHistory)>,
}

/// Consecutive failures of a leased server.
#[derive(Debug, Default)]
pub(in crate::supervisor::machine) struct StartHistory {
    pub(in crate::supervisor::machine) restarts: RestartState,
    /// The last failure; `None` after a success.
    pub(in crate::supervisor::machine) failure: Option<HostError>,
    /// Since when starts succeed.
    pub(in crate::supervisor::machine) up_since: Option<Instant>,
    /// The last start that had begun at the last failure. Earlier starts fail for the same reason and do not count.
    pub(in crate::supervisor::machine) counted: u64,
}

impl StartHistory {
    /// Why a call gets no instance at `now`; `None` if one may be started.
    pub(in crate::supervisor::machine) fn refusal(&self, is_tried: bool, now: Instant) -> Option<HostError> {
        let failure = self.failure.as_ref()?;
        let when = match self.restarts.next_attempt.and_then(|it| it.checked_duration_since(now)) {
            Some(left) if left > Duration::ZERO => {
                format!("the first call after {:.1} s restarts it", left.as_secs_f64())
            }
            Some(_) | None if is_tried => "it is restarting".to_owned(),
            Some(_) | None => return None,
        };
        Some(HostError { message: format!("{}; {when}", failure.message), ..failure.clone() })
    }

    /// Records a successful start.
    pub(in crate::supervisor::machine) fn record_start(&mut self, now: Instant) {
        self.failure = None;
        self.restarts.clear_schedule();
        self.up_since.get_or_insert(now);
    }

    /// Records a failure. `starts` is the number of the last start.
    pub(in crate::supervisor::machine) fn record_failure(
        &mut self,
        policy: &RestartPolicy,
        setback: LeaseFailure<'_>,
        starts: u64,
        now: Instant,
    ) {
        let LeaseFailure { ticket, failure, down } = setback;
        let is_old = ticket.number <= self.counted && self.failure.is_some();
        self.failure = Some(failure);
        if is_old {
            return;
        }
        let up_since = self.up_since.take().map(|it| now.saturating_duration_since(it));
        let down = Outage { uptime: down.uptime.or(up_since), ..down };
        self.restarts.record_failure(policy, ticket.server.as_str(), down, now);
        self.counted = starts;
    }
}

/// A failure of an instance.
pub(in crate::supervisor::machine) struct LeaseFailure<'a> {
    pub(super) ticket: &'a StartTicket,
    pub(super) failure: HostError,
    pub(super) down: Outage,
}

impl LeaseHistory {
    /// The first current failure.
    pub(in crate::supervisor::machine) fn failure(&self) -> Option<&HostError> {
        let crashed = self.crashed.iter().filter_map(|it| it.1.failure.as_ref());
        self.starts.failure.iter().chain(crashed).next()
    }

    pub(in crate::supervisor::machine) fn crashed(&mut self, dialog: &DialogId) -> Option<&mut StartHistory> {
        self.crashed.iter_mut().find(|it| it.0 == *dialog).map(|it| &mut it.1)
    }

    /// The history for crashes of `dialog`.
    pub(in crate::supervisor::machine) fn dialog_starts(&mut self, dialog: &DialogId) -> &mut StartHistory {
        let at = match self.crashed.iter().position(|it| it.0 == *dialog) {
            Some(at) => at,
            None if self.crashed.len() < MAX_CRASHED_DIALOGS => {
                self.crashed.push((dialog.clone(), StartHistory::default()));
                self.crashed.len() - 1
            }
            None => return &mut self.starts,
        };
        &mut self.crashed[at].1
    }

    /// Removes the history of a dialog; returns whether a published failure was removed.
    pub(in crate::supervisor::machine) fn forget(&mut self, dialog: &DialogId) -> bool {
        let was_down = self.crashed(dialog).is_some_and(|it| it.failure.is_some());
        self.crashed.retain(|it| it.0 != *dialog);
        was_down
    }
}

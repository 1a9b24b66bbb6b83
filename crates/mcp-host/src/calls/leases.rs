//! Reports of the current leases: reminders for models, and snapshots.

use std::time::Duration;

use tokio::time::Instant;

use crate::calls::supervisor_handle::SupervisorHandle;
use crate::state::dialog_id::DialogId;
use crate::supervisor::dialog::{LeaseSnapshot, Reminder, ReminderText};

/// Creates reminders and snapshots of the published leases.
pub(crate) struct LeaseReports {
    /// The text of reminders.
    pub(crate) reminder_text: ReminderText,
    /// The idle timeout of leases; `None`: they do not time out.
    pub(crate) idle_timeout: Option<Duration>,
}

impl LeaseReports {
    /// Returns the current reminders of a dialog.
    pub(crate) fn reminders(&self, supervisor: &SupervisorHandle, dialog: &DialogId) -> Vec<Reminder> {
        let table = supervisor.lease_table();
        let own = table.reminders.iter().filter(|(owner, _)| owner == dialog);
        own.map(|(_, server)| Reminder { server: server.clone(), text: (self.reminder_text)(server, dialog) })
            .collect()
    }

    /// Returns the current leases, sorted by server and dialog.
    pub(crate) fn snapshots(&self, supervisor: &SupervisorHandle) -> Vec<LeaseSnapshot> {
        let (now, wall) = (Instant::now(), (supervisor.shared.wall_clock)());
        let table = supervisor.lease_table();
        let snapshots = table.active.iter().map(|((dialog, server), lease)| {
            let instance = &lease.instance;
            let idle_since = instance.idle_since().zip(self.idle_timeout);
            let end = idle_since.and_then(|(since, timeout)| since.checked_add(timeout));
            LeaseSnapshot {
                server: server.clone(),
                dialog: dialog.clone(),
                pid: instance.pid(),
                started: instance.created_at(),
                last_used: instance.last_used().map(|it| instance.created_at() + it),
                expires: end.and_then(|it| wall.checked_add(it.saturating_duration_since(now))),
            }
        });
        let mut snapshots: Vec<_> = snapshots.collect();
        snapshots.sort_by(|left, right| (&left.server, &left.dialog).cmp(&(&right.server, &right.dialog)));
        snapshots
    }
}

//! The current leases: reminders for models, and snapshots.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::state::dialog_id::DialogId;
use crate::supervisor::clock_jump::WallClock;
use crate::supervisor::dialog::{LeaseSnapshot, Reminder, ReminderText};
use crate::supervisor::instance::InstanceRef;
use crate::supervisor::machine::LeaseTable;

/// Reports the published leases.
pub(crate) struct LeaseReports {
    pub(crate) leases: watch::Receiver<Arc<LeaseTable<InstanceRef>>>,
    /// Makes the reminders.
    pub(crate) reminder: ReminderText,
    /// The idle timeout of leases; `None`: they do not time out.
    pub(crate) idle: Option<Duration>,
    pub(crate) wall_clock: WallClock,
}

impl LeaseReports {
    /// The current reminders of a dialog.
    pub(crate) fn reminders(&self, dialog: &DialogId) -> Vec<Reminder> {
        let table = self.leases.borrow();
        let own = table.reminders.iter().filter(|it| it.0 == *dialog);
        own.map(|(_, server)| Reminder { server: server.clone(), text: (self.reminder)(server, dialog) })
            .collect()
    }

    /// The current leases, by server and dialog.
    pub(crate) fn snapshots(&self) -> Vec<LeaseSnapshot> {
        let (now, wall) = (Instant::now(), (self.wall_clock)());
        let table = Arc::clone(&self.leases.borrow());
        let snapshots = table.held.iter().map(|((dialog, server), held)| {
            let instance = &held.instance;
            let end = instance.idle_since().zip(self.idle).and_then(|(since, idle)| since.checked_add(idle));
            LeaseSnapshot {
                server: server.clone(),
                dialog: dialog.clone(),
                pid: instance.pid(),
                started: instance.started(),
                last_used: instance.last_used().map(|it| instance.started() + it),
                expires: end.and_then(|it| wall.checked_add(it.saturating_duration_since(now))),
            }
        });
        let mut res: Vec<_> = snapshots.collect();
        res.sort_by(|left, right| (&left.server, &left.dialog).cmp(&(&right.server, &right.dialog)));
        res
    }
}

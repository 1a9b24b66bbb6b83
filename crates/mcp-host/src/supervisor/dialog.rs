//! Public snapshots of leases, reminders for models, and the guard of a dialog.

use std::sync::Arc;
use std::time::SystemTime;

use mcp_host_model::ServerId;
use tokio::sync::mpsc;

use crate::notifications::dialog_callers::CallerRegistration;
use crate::state::dialog_id::DialogId;
use crate::state::subject_tokens::SubjectTokens;
use crate::supervisor::command::SupervisorCommand;
use crate::supervisor::dialog_end::{DialogEnd, DialogEndCounter};
use crate::supervisor::machine::MachineEvent;

/// A snapshot of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseSnapshot {
    /// The server.
    pub server: ServerId,
    /// The dialog.
    pub dialog: DialogId,
    /// The process id of a stdio server.
    pub pid: Option<u32>,
    /// The start time.
    pub started: SystemTime,
    /// The start or end of the last call; `None` before the first.
    pub last_used: Option<SystemTime>,
    /// The time at which the lease ends without further calls. `None`: never, or a call or a pinned generation uses it.
    pub expires: Option<SystemTime>,
}

/// A reminder for a dialog's model while it holds a lease (DM-076).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reminder {
    /// The leased server.
    pub server: ServerId,
    /// The text.
    pub text: String,
}

/// A function that returns the text of a reminder.
pub type ReminderText = Arc<dyn Fn(&ServerId, &DialogId) -> String + Send + Sync>;

/// A guard of a running dialog. Dropping the last guard of a dialog queues the end of the dialog.
pub(crate) struct DialogGuard {
    pub(crate) id: DialogId,
    pub(crate) ends: DialogEndCounter,
    /// The queue for the end of the dialog, which has the earlier requests of the dialog before it.
    pub(crate) commands: mpsc::Sender<SupervisorCommand>,
    /// The queue for the end while `commands` is full. The end is then handled after all queued commands, including
    /// those of a new dialog with the same id.
    pub(crate) overflow: mpsc::UnboundedSender<DialogEnd>,
    /// The store that has the access token of its user.
    pub(crate) subjects: Arc<SubjectTokens>,
    /// The registration of its caller.
    pub(crate) _registration: Option<CallerRegistration>,
}

impl Drop for DialogGuard {
    fn drop(&mut self) {
        let Some(number) = self.ends.remove_handle(&self.id) else { return };
        self.subjects.remove(&self.id);
        let end = DialogEnd { dialog: self.id.clone(), number };
        if let Err(mpsc::error::TrySendError::Full(_)) =
            self.commands.try_send(SupervisorCommand::event(MachineEvent::DialogEnded(end.clone())))
        {
            // If the host has ended, all leases are already released.
            let _ = self.overflow.send(end);
        }
    }
}

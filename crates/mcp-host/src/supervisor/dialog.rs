//! Leases of dialogs: limits, snapshots, reminders, and the end of a dialog.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use mcp_host_model::ServerId;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::notifications::dialog_callers::CallerRegistration;
use crate::state::dialog_id::DialogId;
use crate::state::subject_tokens::SubjectTokens;
use crate::supervisor::machine::MachineEvent;
use crate::supervisor::task::Command;

/// Limits for leases (DM-074, DM-075).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeasePolicy {
    /// How long a lease may be idle before it ends; `None`: forever.
    pub idle_timeout: Option<Duration>,
    /// The maximum number of leases of all servers and dialogs.
    pub max_leases: usize,
    /// What the host does about a server with [`Sharing::Auto`](mcp_host_model::Sharing::Auto) that sends a server request.
    pub requesting_servers: RequestingServers,
}

/// What a host does about a legacy server with [`Sharing::Auto`](mcp_host_model::Sharing::Auto) that sends a server request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestingServers {
    /// The server remains shared. For hosts with one client.
    Share,
    /// Each dialog has its own instance from then on, so that each request has one owner. For hosts with several
    /// clients.
    Lease,
}

impl Default for LeasePolicy {
    /// 30 minutes; 64 leases; servers that send requests remain shared.
    fn default() -> LeasePolicy {
        LeasePolicy {
            idle_timeout: Some(Duration::from_secs(30 * 60)),
            max_leases: 64,
            requesting_servers: RequestingServers::Share,
        }
    }
}

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
    /// When the lease ends without further calls; `None` for never, or while a call runs or a generation pins it.
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

/// Returns the text of a reminder.
pub type ReminderText = Arc<dyn Fn(&ServerId, &DialogId) -> String + Send + Sync>;

/// Guard of a dialog. Dropping the last one of a dialog queues its end.
pub(crate) struct DialogLifetime {
    pub(crate) id: DialogId,
    pub(crate) ends: DialogEndCounter,
    /// The end is queued after the earlier requests of the dialog.
    pub(crate) commands: mpsc::Sender<Command>,
    /// Used when that queue is full. The end is then handled after all queued requests, including those of a new
    /// dialog with the same id.
    pub(crate) overflow: mpsc::UnboundedSender<DialogEnd>,
    /// Has the access token of its user.
    pub(crate) subjects: Arc<SubjectTokens>,
    /// The registration of its caller.
    pub(crate) _registration: Option<CallerRegistration>,
}

impl Drop for DialogLifetime {
    fn drop(&mut self) {
        let Some(number) = self.ends.remove_handle(&self.id) else { return };
        self.subjects.remove(&self.id);
        let end = DialogEnd { dialog: self.id.clone(), number };
        if let Err(mpsc::error::TrySendError::Full(_)) =
            self.commands.try_send(Command::event(MachineEvent::DialogEnded(end.clone())))
        {
            // If the host has ended, all leases are already released.
            let _ = self.overflow.send(end);
        }
    }
}

/// The end of one dialog. It does not affect later dialogs with the same id.
#[derive(Debug, Clone)]
pub(crate) struct DialogEnd {
    /// The dialog.
    pub(crate) dialog: DialogId,
    /// The number of earlier ends. Requests that saw at most this many belong to the dialog.
    pub(crate) number: u64,
}

/// Counts the ended dialogs. Comparing the counts shows whether a request precedes the end of a dialog.
#[derive(Debug, Clone, Default)]
pub(crate) struct DialogEndCounter(Arc<DialogCounts>);

#[derive(Debug, Default)]
struct DialogCounts {
    ends: AtomicU64,
    /// The number of handles of each dialog.
    handles: Mutex<HashMap<DialogId, usize>>,
}

impl DialogEndCounter {
    /// The number of ends before now.
    pub(crate) fn current(&self) -> u64 {
        self.0.ends.load(Ordering::SeqCst)
    }

    /// Counts a new handle of a dialog.
    pub(crate) fn add_handle(&self, dialog: &DialogId) {
        *self.0.handles.lock().entry(dialog.clone()).or_default() += 1;
    }

    /// Uncounts a handle. If it was the last one, counts an end and returns the number of earlier ends.
    fn remove_handle(&self, dialog: &DialogId) -> Option<u64> {
        let mut handles = self.0.handles.lock();
        let count = handles.get_mut(dialog)?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        handles.remove(dialog);
        // Under the lock, so that a new handle sees this end.
        Some(self.0.ends.fetch_add(1, Ordering::SeqCst))
    }
}

//! Who calls, where that matters: a server that is not shared belongs to one dialog at a time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use mcp_model::{CallResult, PromptResult, RawJson, ReadResult, ServerId};
use tokio::sync::mpsc;

use crate::calls::pin::PinnedGeneration;
use crate::calls::{Desk, Sight};
use crate::calls::{RequestOptions, ToolCall};
use crate::failure::HostError;
use crate::notifications::dialog_callers::Voice;
use crate::supervisor::committer::Command;
use crate::supervisor::machine::Event;

/// A dialog, or whatever else a host keeps apart: an agent, a session, a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DialogId(Arc<str>);

impl DialogId {
    /// A dialog by the host's own name for it. The empty name is that of calls without a dialog.
    pub fn new(name: impl Into<Arc<str>>) -> DialogId {
        DialogId(name.into())
    }

    /// The owner of what is leased by calls without a dialog: the host itself.
    pub(crate) fn none() -> DialogId {
        DialogId::new("")
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DialogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("(none)") } else { f.write_str(&self.0) }
    }
}

/// How servers are leased that are not shared (DM-074, DM-075).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasePolicy {
    /// How long a lease may lie unused before it ends by itself; `None` for ever.
    pub idle_timeout: Option<Duration>,
    /// How many instances may be leased at once, of all servers and dialogs.
    pub max_leases: usize,
}

impl Default for LeasePolicy {
    /// Half an hour; 64 instances.
    fn default() -> LeasePolicy {
        LeasePolicy { idle_timeout: Some(Duration::from_secs(30 * 60)), max_leases: 64 }
    }
}

/// What is known of one lease, as of the moment of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseReceipt {
    /// The server.
    pub server: ServerId,
    /// Who has it.
    pub dialog: DialogId,
    /// The process that was started for it, where it is one.
    pub pid: Option<u32>,
    /// Since when it runs.
    pub started: SystemTime,
    /// When a call last began or ended; `None` before the first.
    pub last_used: Option<SystemTime>,
    /// When it ends by itself if it is not called before; `None` for never, or while a call runs or a turn counts on it.
    pub expires: Option<SystemTime>,
}

/// Something that a dialog's model should keep in mind until it is gone (DM-076).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reminder {
    /// The server that the dialog has leased.
    pub server: ServerId,
    /// What to tell.
    pub text: String,
}

/// The words of a reminder.
pub type ReminderText = Arc<dyn Fn(&ServerId, &DialogId) -> String + Send + Sync>;

/// What a reminder says unless the host has words of its own.
pub(crate) fn default_reminder() -> ReminderText {
    Arc::new(|server, _| {
        format!(
            "This dialog holds an instance of the MCP server '{server}' of its own. When its tools are not needed any \
             more, give it back: mcp_release({{\"serverId\":\"{server}\"}})."
        )
    })
}

/// A dialog that is under way. Dropping it, and its [turns](Dialog::pin), gives back everything that it has leased; calls
/// of it that still run have the host's grace to end. There is to be one of these for each dialog: the first that is
/// dropped gives all back.
pub struct Dialog {
    pub(crate) desk: Arc<Desk>,
    pub(crate) course: Arc<Course>,
}

/// That a dialog goes on: as long as itself or one of its turns is there.
pub(crate) struct Course {
    pub(crate) id: DialogId,
    pub(crate) ends: Ends,
    /// The end stands behind whatever the dialog has asked for before.
    pub(crate) commands: mpsc::Sender<Command>,
    /// Where it goes when that queue is full: what comes by this way comes after all that is queued, and after what a new
    /// dialog of that name has queued meanwhile.
    pub(crate) over: mpsc::UnboundedSender<DialogEnd>,
    /// Who speaks for it.
    pub(crate) _voice: Option<Voice>,
}

impl Drop for Course {
    fn drop(&mut self) {
        let end = DialogEnd { dialog: self.id.clone(), number: self.ends.another() };
        if let Err(mpsc::error::TrySendError::Full(_)) =
            self.commands.try_send(Command::Found(Event::DialogOver(end.clone())))
        {
            // A host that is gone has given everything back.
            let _ = self.over.send(end);
        }
    }
}

/// The end of one dialog, which ends nothing that a later one of that name has asked for.
#[derive(Debug, Clone)]
pub(crate) struct DialogEnd {
    /// The dialog.
    pub(crate) dialog: DialogId,
    /// What was asked before has this number or a lower one.
    pub(crate) number: u64,
}

/// How many dialogs have ended, by which it is known what was asked for before an end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends(Arc<AtomicU64>);

impl Ends {
    /// The number of what is asked now.
    pub(crate) fn so_far(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// One more: the number of what was asked until now.
    fn another(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

impl Dialog {
    /// Who it is.
    pub fn id(&self) -> &DialogId {
        &self.course.id
    }

    fn own(&self) -> Option<DialogId> {
        Some(self.id().clone())
    }

    /// Calls a tool for this dialog, as [`Host::call`](crate::host::Host::call) does.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        self.desk.call(ToolCall { dialog: self.own(), ..call }, Sight::Latest).await
    }

    /// Fills a prompt in, as [`Host::get_prompt`](crate::host::Host::get_prompt) does, for this dialog.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawJson,
        asking: RequestOptions,
    ) -> Result<PromptResult, HostError> {
        let asking = RequestOptions { dialog: self.own(), ..asking };
        self.desk.get_prompt(name, arguments, asking, Sight::Latest).await
    }

    /// Reads a resource, as [`Host::read_resource`](crate::host::Host::read_resource) does, for this dialog.
    pub async fn read_resource(&self, uri: &str, asking: RequestOptions) -> Result<ReadResult, HostError> {
        let asking = RequestOptions { dialog: self.own(), ..asking };
        self.desk.read_resource(uri, asking, Sight::Latest).await
    }

    /// Keeps the latest generation for a turn of this dialog, as [`Host::pin`](crate::host::Host::pin) does; its calls are the
    /// dialog's, which is not over before the turn is.
    pub fn pin(&self) -> PinnedGeneration {
        PinnedGeneration::new(&self.desk, Some(Arc::clone(&self.course)))
    }

    /// Why it is stopped: to be looked at before its model is asked again. `None` where it is not.
    pub fn stop_reason(&self) -> Option<HostError> {
        self.desk.stopped(self.id())
    }

    /// Lets it go on after it was stopped, as [`Host::resume`](crate::host::Host::resume) does.
    pub async fn resume(&self) {
        self.desk.resume(self.id()).await;
    }

    /// What its model should keep in mind now: one reminder for each server that it has leased, in the order in which
    /// they were leased first.
    pub fn reminders(&self) -> Vec<Reminder> {
        self.desk.reminders(self.id())
    }
}

impl fmt::Debug for Dialog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialog").field("id", self.id()).finish_non_exhaustive()
    }
}

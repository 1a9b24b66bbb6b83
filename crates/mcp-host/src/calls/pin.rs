//! A generation that somebody keeps for a while: names, schemas and routes as they were.
//!
//! What is pinned may be retired meanwhile. Then it still takes the pinned calls, at most for the host's grace, and
//! after that they are told so: no call is ever sent to another instance because that has a tool of the same name.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_model::{CallResult, PromptResult, RawJson, ReadResult, ServerId};

use crate::calls::{Desk, Sight};
use crate::calls::{RequestOptions, ToolCall};
use crate::failure::HostError;
use crate::state::published::HostSnapshot;
use crate::supervisor::committer::Shared;
use crate::supervisor::dialog::Course;
use crate::supervisor::dialog::DialogId;
use crate::supervisor::machine::{Place, Snapshot};

/// How often a generation is taken anew whose servers were retired while it was taken.
const TRIES: usize = 8;

/// A generation for a turn of an agent: what its model was shown is what it can call. Dropping it lets go of what was
/// retired meanwhile, so it is to be dropped when the turn is over.
pub struct PinnedGeneration {
    desk: Arc<Desk>,
    /// Whose turn it is: a dialog that is not over before this.
    course: Option<Arc<Course>>,
    snapshot: Arc<Snapshot<Shared>>,
    /// What is shared is pinned from the beginning.
    _shared: Vec<Pin>,
    /// What is leased, from its first call on.
    leased: Mutex<HashMap<(DialogId, ServerId), Pin>>,
}

/// An instance that is counted on.
struct Pin(Shared);

impl Drop for Pin {
    fn drop(&mut self) {
        self.0.gate.unpin();
    }
}

impl Pin {
    fn new(instance: &Shared) -> Option<Pin> {
        instance.gate.pin().then(|| Pin(Arc::clone(instance)))
    }
}

impl PinnedGeneration {
    /// Takes the latest generation.
    pub(crate) fn new(desk: &Arc<Desk>, course: Option<Arc<Course>>) -> PinnedGeneration {
        let mut snapshot = desk.latest();
        let mut shared = Vec::new();
        for _ in 0..TRIES {
            shared = instances(&snapshot).filter_map(Pin::new).collect();
            if shared.len() == instances(&snapshot).count() {
                break;
            }
            // Somebody was retired since, and his successor, or his absence, was published before.
            snapshot = desk.latest();
        }
        let desk = Arc::clone(desk);
        PinnedGeneration { desk, course, snapshot, _shared: shared, leased: Mutex::default() }
    }

    /// The generation.
    pub fn snapshot(&self) -> &Arc<HostSnapshot> {
        &self.snapshot.published
    }

    /// Calls a tool of this generation, as [`Host::call`](crate::host::Host::call) does of the latest. One whose server was
    /// replaced or stopped since, and given the host's grace, fails with a message that begins with `Replaced`. In a
    /// dialog's turn ([`Dialog::pin`](crate::supervisor::dialog::Dialog::pin)) it is a call of that dialog unless it names another one.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        let dialog = call.dialog.or_else(|| self.dialog());
        self.desk.call(ToolCall { dialog, ..call }, Sight::Pinned(self)).await
    }

    /// Fills a prompt in, as [`Host::get_prompt`](crate::host::Host::get_prompt) does, for this generation.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawJson,
        asking: RequestOptions,
    ) -> Result<PromptResult, HostError> {
        let dialog = asking.dialog.or_else(|| self.dialog());
        let asking = RequestOptions { dialog, ..asking };
        self.desk.get_prompt(name, arguments, asking, Sight::Pinned(self)).await
    }

    /// Reads a resource, as [`Host::read_resource`](crate::host::Host::read_resource) does, for this generation.
    pub async fn read_resource(&self, uri: &str, asking: RequestOptions) -> Result<ReadResult, HostError> {
        let dialog = asking.dialog.or_else(|| self.dialog());
        let asking = RequestOptions { dialog, ..asking };
        self.desk.read_resource(uri, asking, Sight::Pinned(self)).await
    }

    fn dialog(&self) -> Option<DialogId> {
        self.course.as_ref().map(|it| it.id.clone())
    }

    pub(crate) fn routing(&self) -> &Arc<Snapshot<Shared>> {
        &self.snapshot
    }

    /// The instance that the dialog's calls went to before.
    pub(crate) fn leased(&self, dialog: &DialogId, server: &ServerId) -> Option<Shared> {
        let leased = self.leased.lock().unwrap_or_else(PoisonError::into_inner);
        leased.get(&(dialog.clone(), server.clone())).map(|it| Arc::clone(&it.0))
    }

    /// The instance that the dialog's calls go to from now on.
    pub(crate) fn keep(&self, dialog: &DialogId, server: &ServerId, instance: &Shared) {
        if let Some(pin) = Pin::new(instance) {
            let mut leased = self.leased.lock().unwrap_or_else(PoisonError::into_inner);
            // What was there before was given back, or lost.
            leased.insert((dialog.clone(), server.clone()), pin);
        }
    }
}

impl fmt::Debug for PinnedGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let generation = self.snapshot().generation;
        let mut res = f.debug_struct("Pinned");
        res.field("generation", &generation).field("dialog", &self.dialog()).finish_non_exhaustive()
    }
}

fn instances(snapshot: &Snapshot<Shared>) -> impl Iterator<Item = &Shared> {
    snapshot.routes.values().filter_map(|it| match &it.place {
        Place::Shared(instance) => Some(instance),
        Place::Leased(_) => None,
    })
}

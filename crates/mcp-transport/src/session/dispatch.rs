//! What the server asks and tells on its own: hands it on, sends the answers, and counts changes of lists.
//!
//! Nothing in here waits for a handler: answers are made in tasks of their own, and what is told is heard in another
//! one. So a handler may call back into the session, whatever it does (SK-11).

use std::collections::HashMap;
use std::sync::Arc;

use mcp_model::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::answering::Answering;
use super::listen::Acknowledged;
use super::notification_router::{Heard, Hearing, Held};
use super::server::Announced;
use crate::rpc::engine::{Asked, Engine, ForeignId, Incoming};

/// How often a server has said that a list of its changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListChangeCounts {
    /// Its tools.
    pub tools: u64,
    /// Its prompts.
    pub prompts: u64,
    /// Its resources.
    pub resources: u64,
}

/// Where to put what the server says.
pub(crate) struct Outlets {
    pub(crate) answering: Arc<Answering>,
    pub(crate) hearing: Hearing,
    pub(crate) changes: watch::Sender<ListChangeCounts>,
    pub(crate) acknowledged: watch::Sender<Acknowledged>,
    pub(crate) updates: super::cache::Updates,
}

/// The answers that are being made.
struct Running {
    tasks: JoinSet<Result<RawJson, RpcError>>,
    by_task: HashMap<Id, ForeignId>,
    by_question: HashMap<ForeignId, AbortHandle>,
}

/// Works until the engine is gone.
pub(crate) async fn run(engine: Arc<Engine>, mut incoming: mpsc::Receiver<Box<Incoming>>, outlets: Outlets) {
    // Questions are answered beside each other, for one may wait for a person; the answers end with this task.
    let mut running = Running { tasks: JoinSet::new(), by_task: HashMap::new(), by_question: HashMap::new() };
    let mut ended = std::pin::pin!(engine.gone());
    loop {
        let message = tokio::select! {
            () = &mut ended => return,
            message = incoming.recv() => message,
            Some(done) = running.tasks.join_next_with_id() => {
                running.done(&engine, done);
                continue;
            }
        };
        let Some(message) = message else { return };
        let held = Held::new(&engine, &message);
        match *message {
            Incoming::Notification { epoch, method, frame, whose: _ }
                if method == "notifications/cancelled" =>
            {
                if let Some(text) = cancelled(&frame) {
                    running.cancel(&ForeignId { epoch, text });
                }
            }
            Incoming::Notification { epoch: _, method, frame, whose } => {
                outlets.changes.send_if_modified(|it| it.count(&method));
                let params = params(&frame);
                if method == "notifications/subscriptions/acknowledged" {
                    outlets.acknowledged.send_if_modified(|it| it.read(params.as_ref()));
                }
                let heard = Heard::of(&method, params);
                if let Heard::Updated(uri) = &heard {
                    outlets.updates.changed(uri);
                }
                let owner = whose.caller().map(|it| it.id);
                outlets.hearing.tell(&engine, heard, owner, held);
            }
            Incoming::Progress { request, progress } => {
                outlets.hearing.tell(&engine, Heard::Progress(request, progress), None, held);
            }
            Incoming::Fault(what) => {
                outlets.hearing.tell(&engine, Heard::Fault(what), None, held);
            }
            Incoming::Request { id, method, .. } if method == "ping" => {
                engine.answer(&id, &Ok(RawJson::empty_object()));
            }
            Incoming::Request { id, method, frame, asker } => {
                if running.by_question.contains_key(&id) {
                    let refusal =
                        RpcError::new(code::INVALID_REQUEST, "a question with this id is being answered");
                    engine.answer(&id, &Err(refusal));
                } else if let Some(place) = outlets.answering.place() {
                    let answering = Arc::clone(&outlets.answering);
                    let params = params(&frame);
                    let asked = Asked::begin(&engine, &asker);
                    running.begin(id, async move {
                        let _in_use = (place, held, asked);
                        answering.answer(&asker.whose, &method, params).await
                    });
                } else {
                    engine
                        .answer(&id, &Err(RpcError::new(code::INTERNAL_ERROR, "too many requests at once")));
                }
            }
        }
    }
}

impl Running {
    fn begin(
        &mut self,
        id: ForeignId,
        answer: impl Future<Output = Result<RawJson, RpcError>> + Send + 'static,
    ) {
        let task = self.tasks.spawn(answer);
        self.by_task.insert(task.id(), id.clone());
        self.by_question.insert(id, task);
    }

    /// The server takes its question back: the answer is made no further, and not sent.
    fn cancel(&mut self, id: &ForeignId) {
        if let Some(task) = self.by_question.remove(id) {
            self.by_task.remove(&task.id());
            task.abort();
        }
    }

    /// An answer is there, or the handler has panicked: the server hears of it in any case.
    fn done(&mut self, engine: &Engine, done: Result<(Id, Result<RawJson, RpcError>), JoinError>) {
        let (task, outcome) = match done {
            Ok(done) => done,
            Err(error) => (error.id(), Err(RpcError::new(code::INTERNAL_ERROR, "the handler failed"))),
        };
        // A question that was taken back is not known any more.
        if let Some(id) = self.by_task.remove(&task) {
            self.by_question.remove(&id);
            engine.answer(&id, &outcome);
        }
    }
}

impl ListChangeCounts {
    /// These lists have changed, or may have.
    pub(crate) fn add(&mut self, changed: Announced) {
        self.tools += u64::from(changed.tools);
        self.prompts += u64::from(changed.prompts);
        self.resources += u64::from(changed.resources);
    }

    fn count(&mut self, method: &str) -> bool {
        match method {
            "notifications/tools/list_changed" => self.tools += 1,
            "notifications/prompts/list_changed" => self.prompts += 1,
            "notifications/resources/list_changed" => self.resources += 1,
            _ => return false,
        }
        true
    }
}

pub(super) fn params(frame: &bytes::Bytes) -> Option<RawJson> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    let message: Message<'_> = serde_json::from_slice(frame).ok()?;
    RawJson::parse_prefix(frame.slice_ref(message.params?.get().as_bytes())).ok()
}

/// The JSON text of the id that a notice of cancellation names.
fn cancelled(frame: &bytes::Bytes) -> Option<String> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "requestId")]
        id: &'a RawValue,
    }
    let params = params(frame)?;
    params.read::<Params<'_>>().ok().map(|it| it.id.get().to_owned())
}

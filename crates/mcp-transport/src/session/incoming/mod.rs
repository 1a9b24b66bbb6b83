//! Processes messages from the server: runs handlers, responds to requests, routes notifications, and counts list
//! changes.
//!
//! Nothing here waits for a handler: each request is handled in a task of its own, and notifications are delivered in
//! another task. A handler may therefore call back into the session (SK-11).

pub(crate) mod request_responder;
pub(crate) mod server_event_router;

use std::collections::HashMap;
use std::sync::Arc;

use mcp_host_model::{Method, RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use crate::rpc::engine::{Engine, IncomingMessage, ServerRequestGuard, ServerRequestId};
use crate::rpc::handlers::ServerEvent;
use crate::rpc::notification::{self, read_params};
use crate::session::cache::ResourceCache;
use crate::session::incoming::request_responder::RequestResponder;
use crate::session::incoming::server_event_router::{QueuePermit, ServerEventRouter};
use crate::session::list_changes::ListChangeCounts;
use crate::session::subscriptions::listen_stream::SubscriptionAck;

/// Where messages from the server are dispatched to.
pub(crate) struct DispatchTargets {
    pub(crate) responder: Arc<RequestResponder>,
    pub(crate) router: ServerEventRouter,
    pub(crate) list_changes: watch::Sender<ListChangeCounts>,
    pub(crate) subscription_ack: watch::Sender<SubscriptionAck>,
    pub(crate) read_results: Arc<ResourceCache>,
    /// The method of the first server request.
    pub(crate) first_server_request: watch::Sender<Option<Method>>,
}

/// The server requests in progress.
struct RunningRequests {
    /// The handlers, each in a task that returns its result.
    tasks: JoinSet<Result<RawJson, RpcError>>,
    by_task: HashMap<Id, ServerRequestId>,
    by_request: HashMap<ServerRequestId, AbortHandle>,
}

/// Dispatches messages from the server until the engine is closed.
pub(crate) async fn dispatch_messages(
    engine: Arc<Engine>,
    mut incoming: mpsc::Receiver<Box<IncomingMessage>>,
    targets: DispatchTargets,
) {
    // Requests are handled concurrently, because one may wait for a person. Dropping this task cancels them.
    let mut running =
        RunningRequests { tasks: JoinSet::new(), by_task: HashMap::new(), by_request: HashMap::new() };
    let mut ended = std::pin::pin!(engine.closed());
    loop {
        let message = tokio::select! {
            () = &mut ended => return,
            message = incoming.recv() => message,
            Some(done) = running.tasks.join_next_with_id() => {
                running.finish(&engine, done);
                continue;
            }
        };
        let Some(message) = message else { return };
        let permit = QueuePermit::new(&engine, &message);
        match *message {
            IncomingMessage::Notification { epoch, method, frame, owner: _ }
                if method == Method::Cancelled =>
            {
                if let Some(text) = cancelled_request_id(&frame) {
                    running.cancel(&ServerRequestId { epoch, text });
                }
            }
            IncomingMessage::Notification { epoch: _, method, frame, owner } => {
                let params = read_params(&frame);
                if method == Method::SubscriptionsAcknowledged {
                    targets.subscription_ack.send_if_modified(|ack| ack.update(params.as_ref()));
                }
                let event = notification::parse(method, params);
                targets.list_changes.send_if_modified(|counts| counts.count_event(&event));
                if let ServerEvent::ResourceUpdated { uri } = &event {
                    targets.read_results.remove_changed(uri);
                }
                let caller = owner.caller().map(|caller| caller.id);
                targets.router.route(&engine, event, caller, permit);
            }
            IncomingMessage::Event(event) => targets.router.route(&engine, event, None, permit),
            IncomingMessage::Request { id, method, .. } if method == Method::Ping => {
                engine.respond(&id, &Ok(RawJson::empty_object()));
            }
            IncomingMessage::Request { id, method, frame, origin } => {
                let known = method.as_known().filter(|it| Method::SERVER_REQUESTS.contains(it));
                targets.first_server_request.send_if_modified(|first| {
                    let is_first = first.is_none() && known.is_some();
                    if is_first {
                        *first = known;
                    }
                    is_first
                });
                if running.by_request.contains_key(&id) {
                    let refusal =
                        RpcError::new(code::INVALID_REQUEST, "a request with this id is in progress");
                    engine.respond(&id, &Err(refusal));
                } else if let Some(slot) = targets.responder.try_acquire_permit() {
                    let responder = Arc::clone(&targets.responder);
                    let params = read_params(&frame);
                    let guard = ServerRequestGuard::start(&engine, &origin);
                    running.start(id, async move {
                        let _in_use = (slot, permit, guard);
                        responder.handle_on_connection(&origin.owner, &method, params).await
                    });
                } else {
                    engine
                        .respond(&id, &Err(RpcError::new(code::INTERNAL_ERROR, "too many requests at once")));
                }
            }
        }
    }
}

impl RunningRequests {
    /// Runs the handler of a request in a task of its own.
    fn start(
        &mut self,
        id: ServerRequestId,
        handler: impl Future<Output = Result<RawJson, RpcError>> + Send + 'static,
    ) {
        let task = self.tasks.spawn(handler);
        self.by_task.insert(task.id(), id.clone());
        self.by_request.insert(id, task);
    }

    /// Aborts the handler of a request that the server cancelled. No response is sent.
    fn cancel(&mut self, id: &ServerRequestId) {
        if let Some(task) = self.by_request.remove(id) {
            self.by_task.remove(&task.id());
            task.abort();
        }
    }

    /// Sends the result of a finished handler, or an error if it panicked.
    fn finish(&mut self, engine: &Engine, done: Result<(Id, Result<RawJson, RpcError>), JoinError>) {
        let (task, outcome) = match done {
            Ok(done) => done,
            Err(error) => (error.id(), Err(RpcError::new(code::INTERNAL_ERROR, "the handler failed"))),
        };
        // A cancelled request is no longer in the table.
        if let Some(id) = self.by_task.remove(&task) {
            self.by_request.remove(&id);
            engine.respond(&id, &outcome);
        }
    }
}

/// The request id in a `notifications/cancelled`, as JSON text.
fn cancelled_request_id(frame: &bytes::Bytes) -> Option<String> {
    #[derive(Deserialize)]
    struct CancelledParams<'a> {
        #[serde(borrow, rename = "requestId")]
        id: &'a RawValue,
    }
    let params = read_params(frame)?;
    params.read::<CancelledParams<'_>>().ok().map(|it| it.id.get().to_owned())
}

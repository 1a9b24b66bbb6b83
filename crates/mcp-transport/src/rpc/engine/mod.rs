//! The JSON-RPC engine of one connection: matches responses to calls, ends calls at their deadline, and queues messages
//! from the server.
//!
//! Works over any transport. No task is spawned for a call; each call is awaited by its caller only. Ids are matched
//! before a payload is parsed, and the caller's task parses the payload once.

mod call_future;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use mcp_host_model::{Method, MethodName, RawJson, RpcError, code};
use tokio::sync::{Notify, SemaphorePermit, TryAcquireError, mpsc};
use tokio::time::Instant;

use crate::error::Expiry;
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::error::request_error::RequestError;
use crate::rpc::deadline::Deadline;
use crate::rpc::handlers::ServerEvent;
use crate::rpc::outcome::RpcOutcome;
use crate::rpc::pending::PendingCalls;
use crate::rpc::progress::OnProgress;
use crate::rpc::request_owner::{OwnerHint, RequestOwner};
use crate::rpc::scan::{ResponseId, ScannedFrame, scan};
use crate::rpc::{frame, notification, progress};
use crate::transport::inline_sender::ExchangeFuture;
use crate::transport::{
    Dial, Epoch, FrameSink, MessageClass, MessageHead, Outbound, OutboundMessage, OutboundQueue,
    OutboundSender, RequestId, StreamError, StreamId,
};
use call_future::{CallFuture, cancel};

pub(crate) use call_future::CancelNotice;

/// Maximum number of queued messages from the server. When the queue is full, notifications are dropped and requests
/// are refused; calls are not affected.
const MAX_INCOMING: usize = 1024;

/// Maximum total size of queued messages from the server.
const MAX_INCOMING_BYTES: usize = 64 << 20;

/// Maximum number of bytes in the outbound queue. Above it calls are refused, because the server does not read.
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// Maximum length of the id of a server request; the id is sent back in the response.
const MAX_REQUEST_ID_BYTES: usize = 1024;

/// Frames up to this size are copied before they are queued, so that a small frame does not keep a large read buffer
/// alive.
const MAX_COPIED_BYTES: usize = 64 << 10;

/// A message from the server that is not a response.
#[derive(Debug)]
pub(crate) enum IncomingMessage {
    /// A server request, to be answered under this id.
    Request { id: ServerRequestId, method: MethodName, frame: Bytes, origin: RequestOrigin },
    /// A notification.
    Notification { epoch: Epoch, method: MethodName, frame: Bytes, owner: RequestOwner },
    /// Progress or a protocol error, for the listener. Only queued when there is one.
    Event(ServerEvent),
}

impl IncomingMessage {
    /// The approximate memory that the message occupies.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            IncomingMessage::Request { frame, .. } | IncomingMessage::Notification { frame, .. } => {
                frame.len()
            }
            IncomingMessage::Event(ServerEvent::ProtocolError(description)) => description.len(),
            IncomingMessage::Event(ServerEvent::Progress { progress, .. }) => {
                progress.message.as_ref().map_or(0, String::len)
            }
            IncomingMessage::Event(_) => 0,
        }
    }
}

/// The owner of a server request, determined when the request arrived.
#[derive(Debug)]
pub(crate) struct RequestOrigin {
    pub(crate) owner: RequestOwner,
    stream: StreamId,
}

/// Pauses the deadlines of the calls that a server request may belong to, until it is dropped.
pub(crate) struct ServerRequestGuard {
    engine: Arc<Engine>,
    calls: Vec<RequestId>,
}

impl ServerRequestGuard {
    /// Pauses the idle deadlines of these calls: while a handler works, the server waits for us.
    pub(crate) fn start(engine: &Arc<Engine>, origin: &RequestOrigin) -> ServerRequestGuard {
        let calls = engine.pending.pause_deadlines(origin.stream, &origin.owner);
        ServerRequestGuard { engine: Arc::clone(engine), calls }
    }
}

impl Drop for ServerRequestGuard {
    fn drop(&mut self) {
        if self.engine.pending.resume_deadlines(&self.calls, Instant::now()) {
            self.engine.deadline_notify.notify_one();
        }
    }
}

/// The id of a server request. Ids start again in each session of a connection, so the same JSON id may occur twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ServerRequestId {
    /// The session of the request; the response is sent to the same session.
    pub(crate) epoch: Epoch,
    /// The id's JSON text, sent back unchanged.
    pub(crate) text: String,
}

/// The JSON-RPC state of one connection.
pub(crate) struct Engine {
    pending: PendingCalls,
    out: OutboundSender,
    /// Boxed: a channel allocates blocks of several items, and most servers send few messages.
    incoming: mpsc::Sender<Box<IncomingMessage>>,
    /// Notified when the timer would wake too late for a call.
    deadline_notify: Notify,
    /// Notified when the connection is closed.
    close_notify: Notify,
    /// Whether the session has a listener for progress and protocol errors.
    has_listener: bool,
    /// The total size of the queued messages from the server.
    incoming_bytes: AtomicUsize,
    /// The number of bytes that were not JSON-RPC.
    noise_bytes: AtomicU64,
    /// The number of messages from the server that were dropped.
    dropped_messages: AtomicU64,
    /// Redacts secrets in messages from the server.
    dial: Option<Arc<dyn Dial>>,
}

/// The settings of a call.
#[derive(Clone, Default)]
pub(crate) struct CallSettings {
    pub(crate) timeout: Option<std::time::Duration>,
    pub(crate) idle_timeout: Option<std::time::Duration>,
    pub(crate) progress: Option<OnProgress>,
    /// The start of the call for its caller; `None` means now.
    pub(crate) started_at: Option<Instant>,
    /// Whether the server is notified when the call is cancelled.
    pub(crate) cancel_notice: CancelNotice,
    /// The owner of the call.
    pub(crate) owner_hint: OwnerHint,
}

impl Engine {
    pub(crate) fn new(
        has_listener: bool,
        dial: Option<Arc<dyn Dial>>,
    ) -> (Arc<Engine>, OutboundQueue, mpsc::Receiver<Box<IncomingMessage>>) {
        let (out, queue) = OutboundQueue::new();
        let (incoming, received) = mpsc::channel(MAX_INCOMING);
        let engine = Engine {
            pending: PendingCalls::default(),
            out,
            incoming,
            deadline_notify: Notify::new(),
            close_notify: Notify::new(),
            has_listener,
            incoming_bytes: AtomicUsize::new(0),
            noise_bytes: AtomicU64::new(0),
            dropped_messages: AtomicU64::new(0),
            dial,
        };
        (Arc::new(engine), queue, received)
    }

    /// Sends a request and waits for its outcome. `message` builds the message for the assigned id. Dropping the future
    /// cancels the request at the server.
    pub(crate) async fn call(
        &self,
        settings: CallSettings,
        message: impl FnOnce(RequestId) -> OutboundMessage,
    ) -> (Option<RequestId>, RpcOutcome) {
        let now = Instant::now();
        let deadline =
            Deadline::new(settings.started_at.unwrap_or(now), now, settings.timeout, settings.idle_timeout)
                .with_max_pause(settings.owner_hint.max_deadline_pause());
        let permit = match self.out.permits().try_acquire() {
            Ok(permit) => permit,
            Err(TryAcquireError::NoPermits) => match self.acquire_permit(deadline).await {
                Ok(permit) => permit,
                Err(expiry) => return (None, RpcOutcome::Expired(expiry)),
            },
            Err(TryAcquireError::Closed) => unreachable!("the semaphore is never closed"),
        };
        if self.out.queued_bytes() > MAX_QUEUED_BYTES {
            let error = StreamError::Refused(RequestError::InputNotRead);
            return (None, RpcOutcome::StreamFailed(error));
        }
        let started = match self.pending.insert(deadline, settings.progress, settings.owner_hint) {
            Ok(started) => started,
            Err(ended) => return (None, RpcOutcome::Closed(ended)),
        };
        let mut call = CallFuture {
            pending: &self.pending,
            out: &self.out,
            id: started.id,
            cancel_notice: settings.cancel_notice,
            exchange: None,
            was_polled: false,
            is_done: false,
            _permit: permit,
        };
        if started.rearm {
            self.deadline_notify.notify_one();
        }
        call.exchange = self.send_request(message(started.id));
        (Some(started.id), call.await)
    }

    /// Sends a request. Returns the exchange if the calling task has to drive it.
    fn send_request(&self, message: OutboundMessage) -> Option<ExchangeFuture> {
        let Some(inline_sender) = self.out.inline_sender() else {
            self.send(message);
            return None;
        };
        inline_sender.start(message).map_err(|message| self.send(*message)).ok()
    }

    /// Sends a message that has no response.
    pub(crate) fn send(&self, message: OutboundMessage) {
        self.out.send(Outbound::Send(message));
    }

    /// Responds to a server request. A response is dropped when the outbound queue is over its limit, because the
    /// server does not read.
    pub(crate) fn respond(&self, id: &ServerRequestId, outcome: &Result<RawJson, RpcError>) {
        if self.out.queued_bytes() > MAX_QUEUED_BYTES {
            self.dropped_messages.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let head = MessageHead::response(None);
        self.send(OutboundMessage { epoch: id.epoch, head, body: frame::response(&id.text, outcome) });
    }

    /// Ends all calls and refuses later ones. Returns the disconnect with the engine's evidence.
    pub(crate) fn close(&self, mut disconnect: Disconnect) -> Arc<Disconnect> {
        // The engine also counts frames that were not valid messages.
        disconnect.evidence.noise_bytes = self.counters().0;
        let disconnect = Arc::new(disconnect);
        self.pending.close(Arc::clone(&disconnect));
        self.deadline_notify.notify_one();
        self.close_notify.notify_waiters();
        disconnect
    }

    /// Resolves when the connection is closed.
    pub(crate) async fn closed(&self) {
        loop {
            let closed = self.close_notify.notified();
            if self.disconnect().is_some() {
                return;
            }
            closed.await;
        }
    }

    /// How the connection ended, if it has ended.
    pub(crate) fn disconnect(&self) -> Option<Arc<Disconnect>> {
        self.pending.disconnect()
    }

    /// The number of bytes that were not JSON-RPC, and the number of messages from the server that were dropped.
    pub(crate) fn counters(&self) -> (u64, u64) {
        (self.noise_bytes.load(Ordering::Relaxed), self.dropped_messages.load(Ordering::Relaxed))
    }

    /// Ends calls whose deadline has passed, until the connection is closed. One timer serves all calls. It is
    /// idle when there are none.
    pub(crate) async fn run_deadlines(&self) {
        loop {
            let (expired, next) = self.pending.expire(Instant::now());
            for id in expired {
                cancel(&self.out, id, "the request timed out");
            }
            if self.pending.disconnect().is_some() {
                return;
            }
            let rearmed = self.deadline_notify.notified();
            match next {
                None => rearmed.await,
                Some(at) => {
                    tokio::select! {
                        () = rearmed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }

    async fn acquire_permit(&self, deadline: Deadline) -> Result<SemaphorePermit<'_>, Expiry> {
        let acquire = async { self.out.permits().acquire().await.expect("the semaphore is never closed") };
        match deadline.next() {
            None => Ok(acquire.await),
            Some(at) => tokio::time::timeout_at(at, acquire)
                .await
                .map_err(|_| deadline.expired(Instant::now()).expect("the timeout was this deadline")),
        }
    }

    /// Queues a message from the server for the session. Returns false when the queue is full.
    fn enqueue(&self, mut incoming: IncomingMessage) -> bool {
        if let IncomingMessage::Request { frame, .. } | IncomingMessage::Notification { frame, .. } =
            &mut incoming
            && frame.len() <= MAX_COPIED_BYTES
        {
            *frame = Bytes::copy_from_slice(frame);
        }
        let bytes = incoming.bytes();
        let queued = self.incoming_bytes.fetch_add(bytes, Ordering::Relaxed);
        if queued + bytes <= MAX_INCOMING_BYTES && self.incoming.try_send(Box::new(incoming)).is_ok() {
            return true;
        }
        self.release_incoming(bytes);
        self.dropped_messages.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Counts a message from the server that was dropped.
    pub(crate) fn count_dropped(&self) {
        self.dropped_messages.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports a message that is invalid or matches nothing.
    fn report_protocol_error(&self, message: impl FnOnce() -> String) {
        self.notify_listener(|| ServerEvent::ProtocolError(message()));
    }

    /// Queues an event for the listener. Half of the queue is reserved for requests and notifications.
    fn notify_listener(&self, event: impl FnOnce() -> ServerEvent) {
        if self.has_listener && self.incoming.capacity() > MAX_INCOMING / 2 {
            self.enqueue(IncomingMessage::Event(event()));
        }
    }

    /// Releases the bytes of an [`IncomingMessage`] that the session has processed.
    pub(crate) fn release_incoming(&self, bytes: usize) {
        self.incoming_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn handle_frame(&self, stream: StreamId, frame: Bytes) -> MessageClass {
        let unsolicited = MessageClass::Unsolicited(1);
        match scan(&frame) {
            ScannedFrame::Response { id: ResponseId::Number(id), is_error, payload_start, .. } => {
                self.complete(stream, id, RpcOutcome::Response { frame, is_error, payload_start })
            }
            ScannedFrame::Response { id: ResponseId::Absent, is_error: true, payload_start, .. } => {
                match stream {
                    // The server could not read the id. The stream tells which request it was.
                    StreamId::Request(id, _) => {
                        let outcome = RpcOutcome::Response { frame, is_error: true, payload_start };
                        self.complete(stream, id, outcome)
                    }
                    StreamId::Shared | StreamId::Notifications(_) => {
                        self.unmatched("an error that belongs to no request")
                    }
                }
            }
            // A server that has a result has read the request's id, so a result without an id belongs to no request.
            ScannedFrame::Response { id: ResponseId::Absent, is_error: false, .. } => {
                self.unmatched("a result without an id")
            }
            ScannedFrame::Response { id: ResponseId::Foreign, .. } => {
                self.unmatched("a response to an unknown request")
            }
            ScannedFrame::Request { id, method, .. } => self.handle_request(stream, frame, id, method),
            ScannedFrame::Notification { method, params } if method == Method::Progress => {
                let progress = params.and_then(|it| progress::parse(&frame[it..]));
                if let Some((id, progress)) = progress {
                    self.notify_listener(|| ServerEvent::Progress {
                        request: id,
                        progress: progress.clone(),
                    });
                    self.pending.handle_progress(id, progress, Instant::now());
                }
                unsolicited
            }
            ScannedFrame::Notification { method, .. } => {
                let owner = self.pending.owner(stream);
                // Called here, before the result is delivered, so that events of a call precede its result.
                if let Some(on_event) = owner.caller().and_then(|it| it.on_event.as_ref())
                    && let Some(event) = notification::event_for_call(&method, &frame, self.dial.as_deref())
                {
                    on_event(event);
                }
                let epoch = stream.epoch();
                self.enqueue(IncomingMessage::Notification { epoch, method, frame, owner });
                unsolicited
            }
            ScannedFrame::Batch(items) => {
                // A batch inside a batch is not JSON-RPC. Accepting it would allow unbounded nesting.
                let items = items.into_iter().filter(|it| frame[it.clone()].first() == Some(&b'{'));
                items
                    .map(|it| self.handle_frame(stream, frame.slice(it)))
                    .reduce(MessageClass::combine)
                    .unwrap_or(unsolicited)
            }
            ScannedFrame::Noise => {
                self.noise(frame.len());
                unsolicited
            }
        }
    }

    /// Reports a response that belongs to no call.
    fn unmatched(&self, description: &str) -> MessageClass {
        tracing::debug!("the server sent {description}");
        self.report_protocol_error(|| description.to_owned());
        MessageClass::Unsolicited(1)
    }

    /// Delivers a response to its call.
    fn complete(&self, stream: StreamId, id: RequestId, outcome: RpcOutcome) -> MessageClass {
        // Counted before the caller can send its next request.
        self.out.count_response();
        if !self.pending.complete(id, outcome) {
            return MessageClass::Unsolicited(1);
        }
        if stream.is_foreign_to(id) {
            self.out.send(Outbound::Cancel { id, notice: None });
        }
        MessageClass::Solicited
    }

    /// Queues a server request. `id` is a range in `frame`.
    fn handle_request(
        &self,
        stream: StreamId,
        frame: Bytes,
        id: Range<usize>,
        method: MethodName,
    ) -> MessageClass {
        if id.len() > MAX_REQUEST_ID_BYTES {
            self.noise(frame.len());
            return MessageClass::Unsolicited(1);
        }
        let text = String::from_utf8_lossy(&frame[id]).into_owned();
        let id = ServerRequestId { epoch: stream.epoch(), text };
        let origin = RequestOrigin { owner: self.pending.owner(stream), stream };
        if !self.enqueue(IncomingMessage::Request { id: id.clone(), method, frame, origin }) {
            self.respond(&id, &Err(RpcError::new(code::INTERNAL_ERROR, "too many requests at once")));
        }
        MessageClass::Unsolicited(1)
    }
}

impl FrameSink for Engine {
    fn deliver(&self, stream: StreamId, frame: Bytes) -> MessageClass {
        self.handle_frame(stream, frame)
    }

    fn awaits(&self, id: RequestId) -> bool {
        self.pending.awaits(id)
    }

    fn stream_failed(&self, id: RequestId, error: StreamError) {
        self.pending.complete(id, RpcOutcome::StreamFailed(error));
    }

    fn noise(&self, bytes: usize) {
        self.noise_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.report_protocol_error(|| format!("{bytes} bytes that are not JSON-RPC"));
    }

    fn closing(&self) {
        self.close(Disconnect::new(DisconnectReason::Stopped));
    }
}

#[cfg(test)]
mod tests;

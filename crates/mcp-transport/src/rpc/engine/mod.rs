//! The JSON-RPC engine of one connection: matches responses to calls, ends calls at their deadline, and queues messages
//! from the server.
//!
//! Works over any transport. No task is spawned for a call; each call is awaited by its caller only. Ids are matched
//! before a payload is parsed, and the caller's task parses the payload once.

mod call_future;
mod incoming_message;
mod unmatched;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use mcp_host_model::internal::replace_unpaired_surrogates;
use mcp_host_model::{Method, MethodName, RawJson, RpcError, code};
use parking_lot::Mutex;
use tokio::sync::{Notify, SemaphorePermit, TryAcquireError, mpsc};
use tokio::time::Instant;

use crate::error::Expiry;
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::error::request_error::RequestError;
use crate::error::unmatched_output::UnmatchedOutput;
use crate::rpc::deadline::CallDeadlines;
use crate::rpc::handlers::ServerEvent;
use crate::rpc::outcome::RpcOutcome;
use crate::rpc::pending::{CallerRequests, InsertedCall, PendingCalls};
use crate::rpc::progress::OnProgress;
use crate::rpc::request_owner::CallOwner;
use crate::rpc::{frame, notification, progress};
use crate::transport::inline_sender::ExchangeFuture;
use crate::transport::scan::{ResponseId, ScannedFrame, scan};
use crate::transport::{
    Dial, FrameSink, MessageClass, MessageHead, Outbound, OutboundMessage, OutboundQueue, OutboundSender,
    RequestId, StreamError, StreamId,
};
use call_future::{CallFuture, send_cancel};

pub(crate) use call_future::CancelNotice;
pub(crate) use incoming_message::{IncomingMessage, RequestOrigin, ServerRequestId};

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

/// Pauses the deadlines of the calls that a server request may belong to, until it is dropped.
pub(crate) struct ServerRequestGuard {
    engine: Arc<Engine>,
    /// The calls whose deadlines are paused.
    calls: Vec<RequestId>,
}

impl ServerRequestGuard {
    /// Pauses the deadlines of the calls that a request of this origin may belong to: while a handler works, the server
    /// waits for us.
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

/// The JSON-RPC state of one connection.
pub(crate) struct Engine {
    pending: PendingCalls,
    outbound: OutboundSender,
    /// The queue of messages from the server. Boxed: a channel allocates blocks of several items, and most servers send
    /// few messages.
    incoming: mpsc::Sender<Box<IncomingMessage>>,
    /// Wakes the timer when it would wake too late for a call.
    deadline_notify: Notify,
    /// Wakes the tasks that wait for the end of the connection.
    close_notify: Notify,
    /// Whether the session has a listener for progress and protocol errors.
    has_listener: bool,
    /// The total size of the queued messages from the server.
    incoming_bytes: AtomicUsize,
    /// The number of bytes that were not JSON-RPC.
    noise_bytes: AtomicU64,
    /// The number of dropped messages from the server, and of dropped responses to it.
    dropped_messages: AtomicU64,
    /// The last output that resembles MCP but belongs to no request, and when it arrived.
    unmatched: Mutex<Option<(Instant, UnmatchedOutput)>>,
    /// Whether a message without its line break has arrived.
    has_unfinished_message: AtomicBool,
    /// The server's dialer, which redacts the secrets in messages from the server.
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
    /// Who receives the server requests that belong to the call; by default only the session.
    pub(crate) owner: CallOwner,
}

impl Engine {
    /// Creates an engine, with the queue of commands for the transport and that of messages from the server.
    pub(crate) fn new(
        has_listener: bool,
        dial: Option<Arc<dyn Dial>>,
    ) -> (Arc<Engine>, OutboundQueue, mpsc::Receiver<Box<IncomingMessage>>) {
        let (outbound, outbound_queue) = OutboundQueue::new();
        let (incoming, incoming_queue) = mpsc::channel(MAX_INCOMING);
        let engine = Engine {
            pending: PendingCalls::default(),
            outbound,
            incoming,
            deadline_notify: Notify::new(),
            close_notify: Notify::new(),
            has_listener,
            incoming_bytes: AtomicUsize::new(0),
            noise_bytes: AtomicU64::new(0),
            dropped_messages: AtomicU64::new(0),
            unmatched: Mutex::default(),
            has_unfinished_message: AtomicBool::default(),
            dial,
        };
        (Arc::new(engine), outbound_queue, incoming_queue)
    }

    /// Sends a request and waits for its outcome. `message` builds the message for the assigned id. Returns that id,
    /// which is `None` if the request was not sent. Dropping the future cancels the request at the server.
    pub(crate) async fn call(
        &self,
        settings: CallSettings,
        message: impl FnOnce(RequestId) -> OutboundMessage,
    ) -> (Option<RequestId>, RpcOutcome) {
        let now = Instant::now();
        let deadlines = CallDeadlines::new(
            settings.started_at.unwrap_or(now),
            now,
            settings.timeout,
            settings.idle_timeout,
        )
        .with_max_pause(settings.owner.max_deadline_pause());
        let permit = match self.outbound.permits().try_acquire() {
            Ok(permit) => permit,
            Err(TryAcquireError::NoPermits) => match self.acquire_permit(deadlines).await {
                Ok(permit) => permit,
                Err(expiry) => return (None, RpcOutcome::Expired(expiry)),
            },
            Err(TryAcquireError::Closed) => unreachable!("the semaphore is never closed"),
        };
        if self.outbound.queued_bytes() > MAX_QUEUED_BYTES {
            let error = StreamError::Refused(RequestError::InputNotRead);
            return (None, RpcOutcome::StreamFailed(error));
        }
        let InsertedCall { id, must_wake_timer } =
            match self.pending.insert(deadlines, settings.progress, settings.owner) {
                Ok(inserted) => inserted,
                Err(disconnect) => return (None, RpcOutcome::Closed(disconnect)),
            };
        let mut call = CallFuture {
            pending: &self.pending,
            outbound: &self.outbound,
            id,
            cancel_notice: settings.cancel_notice,
            exchange: None,
            was_polled: false,
            is_done: false,
            _permit: permit,
        };
        if must_wake_timer {
            self.deadline_notify.notify_one();
        }
        call.exchange = self.send_request(message(id));
        (Some(id), call.await)
    }

    /// Starts to send a request. Returns the exchange if the calling task must poll it; otherwise the request is
    /// queued.
    fn send_request(&self, message: OutboundMessage) -> Option<ExchangeFuture> {
        let Some(inline_sender) = self.outbound.inline_sender() else {
            self.send(message);
            return None;
        };
        inline_sender.start(message).map_err(|message| self.send(*message)).ok()
    }

    pub(crate) fn send(&self, message: OutboundMessage) {
        self.outbound.send(Outbound::Send(message));
    }

    /// Responds to a server request. A response is dropped when the outbound queue is over its limit, because the
    /// server does not read.
    pub(crate) fn respond(&self, id: &ServerRequestId, outcome: &Result<RawJson, RpcError>) {
        if self.outbound.queued_bytes() > MAX_QUEUED_BYTES {
            self.count_dropped();
            return;
        }
        let head = MessageHead::response(None);
        self.send(OutboundMessage { epoch: id.epoch, head, body: frame::response(&id.text, outcome) });
    }

    /// Ends all calls and refuses later ones. Returns `disconnect` with the number of noise bytes added to its
    /// evidence.
    pub(crate) fn close(&self, mut disconnect: Disconnect) -> Arc<Disconnect> {
        // The engine also counts frames that were not valid messages.
        disconnect.evidence.noise_bytes = self.noise_bytes();
        disconnect.evidence.unmatched = self.unmatched.lock().take().map(|(_, output)| output);
        let disconnect = Arc::new(disconnect);
        self.pending.close(Arc::clone(&disconnect));
        self.deadline_notify.notify_one();
        self.close_notify.notify_waiters();
        disconnect
    }

    /// Resolves when the connection is closed.
    pub(crate) async fn closed(&self) {
        loop {
            let notified = self.close_notify.notified();
            if self.disconnect().is_some() {
                return;
            }
            notified.await;
        }
    }

    /// How the connection ended, if it has ended.
    pub(crate) fn disconnect(&self) -> Option<Arc<Disconnect>> {
        self.pending.disconnect()
    }

    pub(crate) fn caller_requests(&self) -> CallerRequests {
        self.pending.caller_requests()
    }

    pub(crate) fn noise_bytes(&self) -> u64 {
        self.noise_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn dropped_messages(&self) -> u64 {
        self.dropped_messages.load(Ordering::Relaxed)
    }

    /// Ends calls whose deadline has passed, until the connection is closed. One timer serves all calls. It sleeps
    /// while there are none.
    pub(crate) async fn run_timer(&self) {
        loop {
            let (expired, next) = self.pending.expire(Instant::now());
            for id in expired {
                send_cancel(&self.outbound, id, "the request timed out");
            }
            if self.pending.disconnect().is_some() {
                return;
            }
            let notified = self.deadline_notify.notified();
            match next {
                None => notified.await,
                Some(at) => {
                    tokio::select! {
                        () = notified => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }

    /// Waits for a permit for a call in flight, until the call's earliest deadline.
    async fn acquire_permit(&self, deadlines: CallDeadlines) -> Result<SemaphorePermit<'_>, Expiry> {
        let acquire =
            async { self.outbound.permits().acquire().await.expect("the semaphore is never closed") };
        match deadlines.next() {
            None => Ok(acquire.await),
            Some(at) => tokio::time::timeout_at(at, acquire)
                .await
                .map_err(|_| deadlines.expiry(Instant::now()).expect("the timeout was this deadline")),
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
        let queued_before = self.incoming_bytes.fetch_add(bytes, Ordering::Relaxed);
        if queued_before + bytes <= MAX_INCOMING_BYTES && self.incoming.try_send(Box::new(incoming)).is_ok() {
            return true;
        }
        self.release_incoming(bytes);
        self.count_dropped();
        false
    }

    pub(crate) fn count_dropped(&self) {
        self.dropped_messages.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports to the listener a message that is invalid or belongs to no call.
    fn report_protocol_error(&self, description: impl FnOnce() -> String) {
        self.notify_listener(|| ServerEvent::ProtocolError(description()));
    }

    /// Queues an event for the listener, unless the queue is half full: the rest is for requests and notifications.
    fn notify_listener(&self, event: impl FnOnce() -> ServerEvent) {
        if self.has_listener && self.incoming.capacity() > MAX_INCOMING / 2 {
            self.enqueue(IncomingMessage::Event(event()));
        }
    }

    /// Subtracts the bytes of an [`IncomingMessage`] that has left the queue.
    pub(crate) fn release_incoming(&self, bytes: usize) {
        self.incoming_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Handles a frame: completes a call, reports progress, or queues a message for the session. The transport limits
    /// the rate of messages by the returned class.
    fn handle_frame(&self, stream: StreamId, frame: Bytes, scanned: ScannedFrame) -> MessageClass {
        let unsolicited = MessageClass::Unsolicited(1);
        match scanned {
            ScannedFrame::Response { id: ResponseId::Number(id), is_error, payload_start, .. } => {
                self.complete(stream, id, RpcOutcome::Response { frame, is_error, payload_start })
            }
            ScannedFrame::Response { id: ResponseId::Absent, is_error: true, payload_start, .. } => {
                match stream {
                    // The server could not read the request's id. The stream identifies the request.
                    StreamId::Request(id, _) => {
                        let outcome = RpcOutcome::Response { frame, is_error: true, payload_start };
                        self.complete(stream, id, outcome)
                    }
                    StreamId::Shared | StreamId::Notifications(_) => {
                        self.record_error_without_id(&frame[payload_start..]);
                        self.report_unmatched("an error that belongs to no request")
                    }
                }
            }
            // A server that has a result has read the request's id, so a result without an id belongs to no request.
            ScannedFrame::Response { id: ResponseId::Absent, is_error: false, .. } => {
                self.record_unmatched(UnmatchedOutput::ResultWithoutId);
                self.report_unmatched("a result without an id")
            }
            ScannedFrame::Response { id: ResponseId::Foreign, id_text, .. } => {
                self.record_unknown_id(id_text.map_or(&[], |range| &frame[range]));
                self.report_unmatched("a response to an unknown request")
            }
            ScannedFrame::EmptyResponse(id) => {
                let error = StreamError::Lost(RequestError::EmptyResponse);
                self.complete(stream, id, RpcOutcome::StreamFailed(error))
            }
            ScannedFrame::Request { id, method, .. } => {
                self.handle_request(stream, replace_unpaired_surrogates(frame), id, method)
            }
            ScannedFrame::Notification { method, params } if method == Method::Progress => {
                let frame = replace_unpaired_surrogates(frame);
                let progress = params.and_then(|it| progress::parse(&frame[it..]));
                if let Some((id, progress)) = progress {
                    self.notify_listener(|| ServerEvent::Progress {
                        request: id,
                        progress: progress.clone(),
                    });
                    if self.pending.handle_progress(id, progress, Instant::now()) {
                        return MessageClass::Progress;
                    }
                }
                unsolicited
            }
            ScannedFrame::Notification { method, .. } => {
                let frame = replace_unpaired_surrogates(frame);
                let owner = self.pending.owner(stream);
                // Not queued, so that the events of a call are delivered before its result.
                if let Some(on_event) = owner.caller().and_then(|it| it.on_event.as_ref())
                    && let Some(event) = notification::parse_call_event(&method, &frame, self.dial.as_deref())
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
                    .map(|it| self.deliver(stream, frame.slice(it)))
                    .reduce(MessageClass::combine)
                    .unwrap_or(unsolicited)
            }
            ScannedFrame::Noise => {
                self.record_noise_text(&frame);
                unsolicited
            }
        }
    }

    /// Ends a call with this outcome. If the response came on another stream than that of the request, the transport is
    /// told to end the request's stream. A response that comes late is unsolicited.
    fn complete(&self, stream: StreamId, id: RequestId, outcome: RpcOutcome) -> MessageClass {
        // Counted before the caller can send its next request.
        self.outbound.count_response();
        if !self.pending.complete(id, outcome) {
            // A late response is no mistake of the server.
            if !self.pending.was_issued(id) {
                self.record_unmatched(UnmatchedOutput::UnknownId(id.to_string()));
            }
            return MessageClass::Unsolicited(1);
        }
        if stream.is_foreign_to(id) {
            self.outbound.send(Outbound::Cancel { id, notice: None });
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
            self.record_noise(frame.len());
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
        let scanned = scan(&frame);
        self.handle_frame(stream, frame, scanned)
    }

    fn deliver_scanned(&self, stream: StreamId, frame: Bytes, scanned: ScannedFrame) -> MessageClass {
        self.handle_frame(stream, frame, scanned)
    }

    fn is_pending(&self, id: RequestId) -> bool {
        self.pending.is_pending(id)
    }

    fn fail_stream(&self, id: RequestId, error: StreamError) {
        self.pending.complete(id, RpcOutcome::StreamFailed(error));
    }

    fn record_noise(&self, bytes: usize) {
        self.noise_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.report_protocol_error(|| format!("{bytes} bytes that are not JSON-RPC"));
    }

    fn record_noise_text(&self, text: &[u8]) {
        if let Some(output) = UnmatchedOutput::from_noise(text) {
            self.record_unmatched(output);
        }
        self.record_noise(text.len());
    }

    fn set_unfinished_message(&self, is_unfinished: bool) {
        self.has_unfinished_message.store(is_unfinished, Ordering::Relaxed);
    }

    fn end_calls(&self) {
        self.close(Disconnect::new(DisconnectReason::Stopped));
    }
}

#[cfg(test)]
mod tests;

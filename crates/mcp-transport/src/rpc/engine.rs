//! JSON-RPC over any wire: matches answers to calls, ends calls that must end, and hands on what the peer asks.
//!
//! Nothing is spawned for a call, and nobody but the call itself awaits a peer here. Ids are matched before a payload is
//! parsed; the payload is parsed once, by the caller, in the caller's task.

mod waiting;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use mcp_model::{RawJson, RpcError, code};
use tokio::sync::{Notify, SemaphorePermit, TryAcquireError, mpsc};
use tokio::time::Instant;

use crate::error::end::{Disconnect, RequestError};
use crate::rpc::deadline::{Deadline, Expiry};
use crate::rpc::inline_sender::Exchange;
use crate::rpc::pending::{Outcome, Pending};
use crate::rpc::progress::{OnProgress, Progress};
use crate::rpc::request_owner::{Stake, Whose};
use crate::rpc::scan::{Id, Scanned, scan};
use crate::rpc::{frame, progress};
use crate::session::notification_router;
use crate::transport::OutboundSender;
use crate::transport::{
    Dial, Epoch, FrameSink, MessageClass, MessageHead, Outbound, OutboundMessage, OutboundQueue, RequestId,
    StreamError, StreamId,
};
use waiting::Waiting;

/// How many frames of the peer's own may wait for us. A peer that floods loses notifications, and its requests are
/// refused; calls do not notice.
const MOST_INCOMING: usize = 1024;

/// And how many bytes they may hold together.
const MOST_INCOMING_BYTES: usize = 64 << 20;

/// How many bytes may wait to be sent before calls are refused: a peer that does not read is not fed for ever.
const MOST_QUEUED_BYTES: usize = 64 << 20;

/// The longest id of a peer's request, in bytes: we send it back.
const LONGEST_FOREIGN_ID: usize = 1024;

/// Frames up to this size are copied before they wait, so that they do not keep the buffer of a larger one alive.
const COPIED: usize = 64 << 10;

/// A message of the peer that is no answer.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// It wants an answer under this id.
    Request { id: ForeignId, method: String, frame: Bytes, asker: Asker },
    /// It wants none.
    Notification { epoch: Epoch, method: String, frame: Bytes, whose: Whose },
    /// How far one of our requests is. Only where somebody listens.
    Progress { request: RequestId, progress: Progress },
    /// Something that is no message, or belongs to nothing; in words. Only where somebody listens.
    Fault(String),
}

impl Incoming {
    /// How much memory it keeps, about.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Incoming::Request { frame, .. } | Incoming::Notification { frame, .. } => frame.len(),
            Incoming::Progress { request: _, progress } => progress.message.as_ref().map_or(0, String::len),
            Incoming::Fault(what) => what.len(),
        }
    }
}

/// Which call a request of the peer's is about, as it stood when the request arrived.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) whose: Whose,
    lane: StreamId,
}

/// A question that is with somebody here. Dropped when it is over.
pub(crate) struct Asked {
    engine: Arc<Engine>,
    calls: Vec<RequestId>,
}

impl Asked {
    /// The calls that it may be about are not silent until it is over.
    pub(crate) fn begin(engine: &Arc<Engine>, asker: &Asker) -> Asked {
        let calls = engine.pending.ask(asker.lane, &asker.whose);
        Asked { engine: Arc::clone(engine), calls }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.engine.pending.asked(&self.calls, Instant::now()) {
            self.engine.timer.notify_one();
        }
    }
}

/// Who hears what the peer says besides notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Nobody: progress goes to its call alone, and faults are counted.
    Nobody,
    /// The session's listener.
    Listening,
}

/// The id of a request of the peer's. Ids begin anew in each session of a connection, so the same number may be given
/// twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ForeignId {
    /// The session that the request belongs to, and its answer.
    pub(crate) epoch: Epoch,
    /// The id's JSON text, to be sent back as it is.
    pub(crate) text: String,
}

/// One connection's JSON-RPC.
pub(crate) struct Engine {
    pending: Pending,
    out: OutboundSender,
    /// Boxed, for a channel sets room for many aside, and most servers say little by themselves.
    incoming: mpsc::Sender<Box<Incoming>>,
    timer: Notify,
    over: Notify,
    audience: Audience,
    waiting_bytes: AtomicUsize,
    noise: AtomicU64,
    dropped: AtomicU64,
    /// Knows what must not be repeated of what the peer says.
    dial: Option<Arc<dyn Dial>>,
}

/// What comes with a call besides its message.
#[derive(Clone, Default)]
pub(crate) struct CallTerms {
    pub(crate) deadline: Option<std::time::Duration>,
    pub(crate) idle: Option<std::time::Duration>,
    pub(crate) progress: Option<OnProgress>,
    /// When the call began for its caller; now where `None`.
    pub(crate) begun: Option<Instant>,
    /// Whether the peer hears that nobody waits any more.
    pub(crate) given_up: GivenUp,
    /// Who has a stake in it.
    pub(crate) stake: Stake,
}

/// What the peer is told about a call that is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum GivenUp {
    /// That it is.
    #[default]
    Told,
    /// Nothing: `initialize` must not be cancelled.
    Silent,
}

impl Engine {
    pub(crate) fn new(
        audience: Audience,
        dial: Option<Arc<dyn Dial>>,
    ) -> (Arc<Engine>, OutboundQueue, mpsc::Receiver<Box<Incoming>>) {
        let (out, queue) = OutboundQueue::new();
        let (incoming, received) = mpsc::channel(MOST_INCOMING);
        let engine = Engine {
            pending: Pending::default(),
            out,
            incoming,
            timer: Notify::new(),
            over: Notify::new(),
            audience,
            waiting_bytes: AtomicUsize::new(0),
            noise: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            dial,
        };
        (Arc::new(engine), queue, received)
    }

    /// Sends a request and waits for its outcome. `message` makes the message for the id it is given. Dropping the
    /// future cancels the request on the wire.
    pub(crate) async fn call(
        &self,
        terms: CallTerms,
        message: impl FnOnce(RequestId) -> OutboundMessage,
    ) -> (Option<RequestId>, Outcome) {
        let now = Instant::now();
        let deadline = Deadline::new(terms.begun.unwrap_or(now), now, terms.deadline, terms.idle)
            .with_patience(terms.stake.patience());
        let permit = match self.out.permits().try_acquire() {
            Ok(permit) => permit,
            Err(TryAcquireError::NoPermits) => match self.queue(deadline).await {
                Ok(permit) => permit,
                Err(expiry) => return (None, Outcome::Expired(expiry)),
            },
            Err(TryAcquireError::Closed) => unreachable!("the semaphore is never closed"),
        };
        if self.out.queued_bytes() > MOST_QUEUED_BYTES {
            let message = "the server does not read what is sent to it".to_owned();
            let fault = RequestError { status: None, message, error: None };
            return (None, Outcome::LaneEnded(StreamError::Refused(fault)));
        }
        let begun = match self.pending.begin(deadline, terms.progress, terms.stake) {
            Ok(begun) => begun,
            Err(ended) => return (None, Outcome::Closed(ended)),
        };
        let given_up = terms.given_up;
        let mut waiting = Waiting::new(self, begun.id, given_up, permit);
        if begun.rearm {
            self.timer.notify_one();
        }
        waiting.carried = self.begin(message(begun.id));
        (Some(begun.id), waiting.await)
    }

    /// Puts a request on its way: what its caller has to carry himself, where he has to.
    fn begin(&self, message: OutboundMessage) -> Option<Exchange> {
        let Some(carrier) = self.out.inline_sender() else {
            self.send(message);
            return None;
        };
        carrier.start(message).map_err(|message| self.send(*message)).ok()
    }

    /// Sends a message that has no answer.
    pub(crate) fn send(&self, message: OutboundMessage) {
        self.out.send(Outbound::Send(message));
    }

    /// Answers a request of the peer's. A peer that asks and does not read gets no answers piled up for it.
    pub(crate) fn answer(&self, id: &ForeignId, outcome: &Result<RawJson, RpcError>) {
        if self.out.queued_bytes() > MOST_QUEUED_BYTES {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let head = MessageHead::new(None, Cow::Borrowed(""), None);
        self.send(OutboundMessage { epoch: id.epoch, head, body: frame::answer(&id.text, outcome) });
    }

    /// Ends all calls, those to come included.
    pub(crate) fn close(&self, ended: Arc<Disconnect>) {
        self.pending.close(ended);
        self.timer.notify_one();
        self.over.notify_waiters();
    }

    /// Resolves when the connection is closed.
    pub(crate) async fn gone(&self) {
        loop {
            let told = self.over.notified();
            if self.ended().is_some() {
                return;
            }
            told.await;
        }
    }

    /// How the connection ended, if it has.
    pub(crate) fn ended(&self) -> Option<Arc<Disconnect>> {
        self.pending.closed()
    }

    /// Bytes that were no protocol, so far, and messages of the peer that were dropped because it sent too many.
    pub(crate) fn counters(&self) -> (u64, u64) {
        (self.noise.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed))
    }

    /// Ends calls whose deadline has passed, until the connection is closed. One timer serves all calls, and rests
    /// when there are none.
    pub(crate) async fn keep_time(&self) {
        loop {
            let (expired, next) = self.pending.expire(Instant::now());
            for id in expired {
                self.abandon(id, "the request timed out");
            }
            if self.pending.closed().is_some() {
                return;
            }
            let rearmed = self.timer.notified();
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

    async fn queue(&self, deadline: Deadline) -> Result<SemaphorePermit<'_>, Expiry> {
        let acquire = async { self.out.permits().acquire().await.expect("the semaphore is never closed") };
        match deadline.next() {
            None => Ok(acquire.await),
            Some(at) => tokio::time::timeout_at(at, acquire)
                .await
                .map_err(|_| deadline.expired(Instant::now()).expect("that is why it ended")),
        }
    }

    /// Puts a message of the peer's own where the session takes it from. False when there are too many.
    fn hand_on(&self, mut incoming: Incoming) -> bool {
        match &mut incoming {
            Incoming::Request { frame, .. } | Incoming::Notification { frame, .. }
                if frame.len() <= COPIED =>
            {
                *frame = Bytes::copy_from_slice(frame);
            }
            Incoming::Request { .. }
            | Incoming::Notification { .. }
            | Incoming::Progress { .. }
            | Incoming::Fault(_) => {}
        }
        let bytes = incoming.bytes();
        let waiting = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if waiting + bytes <= MOST_INCOMING_BYTES && self.incoming.try_send(Box::new(incoming)).is_ok() {
            return true;
        }
        self.taken(bytes);
        self.dropped.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// A message of the peer's was dropped, for nobody had room for it.
    pub(crate) fn dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Something arrived that is of no use. `what` says so in words.
    fn fault(&self, what: impl FnOnce() -> String) {
        self.tell(|| Incoming::Fault(what()));
    }

    /// Tells a listener what it is good to know. Half of the room is left to what the peer says on purpose.
    fn tell(&self, what: impl FnOnce() -> Incoming) {
        if self.audience == Audience::Listening && self.incoming.capacity() > MOST_INCOMING / 2 {
            self.hand_on(what());
        }
    }

    /// The session is done with an [`Incoming`] of this many bytes.
    pub(crate) fn taken(&self, bytes: usize) {
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn abandon(&self, id: RequestId, reason: &str) {
        self.out.send(Outbound::Cancel { id, notice: Some(frame::cancelled(id, reason)) });
    }

    fn take(&self, lane: StreamId, frame: Bytes) -> MessageClass {
        let idle = MessageClass::Unsolicited(1);
        match scan(&frame) {
            Scanned::Response { id: Id::Number(id), is_error, payload } => {
                self.answered(id, Outcome::Answer { frame, is_error, payload })
            }
            // The peer could not read whose it was: it can only be the request whose lane it came by.
            Scanned::Response { id: Id::Absent, is_error: true, payload } => match lane {
                StreamId::Request(id, _) => {
                    self.answered(id, Outcome::Answer { frame, is_error: true, payload })
                }
                StreamId::Shared | StreamId::Notifications(_) => {
                    tracing::debug!("the server sent an error that belongs to no request");
                    self.fault(|| "an error that belongs to no request".to_owned());
                    idle
                }
            },
            // Whoever has a result has read the request, and its id: a result without one is nobody's.
            Scanned::Response { id: Id::Absent, is_error: false, payload: _ } => {
                tracing::debug!("the server sent a result without an id");
                self.fault(|| "a result without an id".to_owned());
                idle
            }
            Scanned::Response { id: Id::Foreign, .. } => {
                tracing::debug!("the server answered a request that is not ours");
                self.fault(|| "an answer to a request that is not ours".to_owned());
                idle
            }
            Scanned::Request { id, method } => self.asked(lane, frame, id, method),
            Scanned::Notification { method, params } => {
                match method_name(&frame[method]) {
                    None => self.noise(frame.len()),
                    Some(method) if method != "notifications/progress" => {
                        let whose = self.pending.whose(lane);
                        // At once, so that nothing is heard of a call behind its result.
                        if let Some(hears) = whose.caller().and_then(|it| it.on_event.as_ref())
                            && let Some(event) =
                                notification_router::of_call(&method, &frame, self.dial.as_deref())
                        {
                            hears(event);
                        }
                        self.hand_on(Incoming::Notification { epoch: lane.epoch(), method, frame, whose });
                    }
                    Some(_) => {
                        let Some((id, progress)) = params.and_then(|it| progress::read(&frame[it..])) else {
                            return idle;
                        };
                        self.tell(|| Incoming::Progress { request: id, progress: progress.clone() });
                        self.pending.heard(id, progress, Instant::now());
                    }
                }
                idle
            }
            Scanned::Batch(items) => {
                // A batch inside a batch is no JSON-RPC; taking it would let a peer nest without end.
                let items = items.into_iter().filter(|it| frame[it.clone()].first() == Some(&b'{'));
                items.map(|it| self.take(lane, frame.slice(it))).reduce(MessageClass::combine).unwrap_or(idle)
            }
            Scanned::Noise => {
                self.noise(frame.len());
                idle
            }
        }
    }

    /// An answer came.
    fn answered(&self, id: RequestId, answer: Outcome) -> MessageClass {
        // Before whoever waits for it can send something.
        self.out.count_response();
        match self.pending.tell(id, answer) {
            true => MessageClass::Solicited,
            false => MessageClass::Unsolicited(1),
        }
    }

    /// A request of the peer's came. `id` and `method` say where they stand in it.
    fn asked(&self, lane: StreamId, frame: Bytes, id: Range<usize>, method: Range<usize>) -> MessageClass {
        let is_short = id.len() <= LONGEST_FOREIGN_ID;
        let Some(method) = method_name(&frame[method]).filter(|_| is_short) else {
            self.noise(frame.len());
            return MessageClass::Unsolicited(1);
        };
        let text = String::from_utf8_lossy(&frame[id]).into_owned();
        let id = ForeignId { epoch: lane.epoch(), text };
        let asker = Asker { whose: self.pending.whose(lane), lane };
        if !self.hand_on(Incoming::Request { id: id.clone(), method, frame, asker }) {
            self.answer(&id, &Err(RpcError::new(code::INTERNAL_ERROR, "too many requests at once")));
        }
        MessageClass::Unsolicited(1)
    }
}

fn method_name(json: &[u8]) -> Option<String> {
    serde_json::from_slice(json).ok()
}

impl FrameSink for Engine {
    fn deliver(&self, lane: StreamId, frame: Bytes) -> MessageClass {
        self.take(lane, frame)
    }

    fn stream_failed(&self, id: RequestId, why: StreamError) {
        self.pending.tell(id, Outcome::LaneEnded(why));
    }

    fn noise(&self, bytes: usize) {
        self.noise.fetch_add(bytes as u64, Ordering::Relaxed);
        self.fault(|| format!("{bytes} bytes that are no protocol"));
    }
}

#[cfg(test)]
mod tests;

//! The seam between the engine and a wire.
//!
//! A wire is a driver, not a pair of send and receive: Streamable HTTP answers each message on a lane of its own,
//! and a pipe has only one. The contract, as a procedure:
//!
//! 1. The engine calls [`Transport::run`] once, in a task of its own, and joins it.
//! 2. The wire connects, then takes [`Out`]s from [`Link::out`] in order until it ends. It may write several at once. A wire
//!    on which each request has a lane of its own may let the caller's task carry it (`carrier`); a pipe takes what is sent
//!    in the task that sends it (`Outlet`).
//! 3. Each complete frame that arrives goes to [`FrameSink::deliver`], on the lane it came by. Bytes that are no frame
//!    are counted with [`FrameSink::noise`]. A wire that hears much that nobody waits for reads more slowly, so that its
//!    peer does not take the processor away from others: [`FrameSink::deliver`] says what a frame was worth.
//! 4. A lane of its own that ends without an answer is reported with [`FrameSink::stream_failed`]. A pipe never reports
//!    lanes: when it ends, `run` returns, and that ends every call.
//! 5. When [`Stop::requested`] resolves, the wire closes politely and returns before the deadline it gives.
//! 6. Dropping the future of `run` at any point must release everything the wire holds, processes included.
//!
//! Absent on purpose: what only one wire has. Session ids, resumption and headers stay inside the HTTP wire, which
//! learns what it needs from [`Head`] without reading a body.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use bytes::Bytes;
use mcp_model::ProtocolVersion;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

use crate::error::end::{Disconnect, RequestError};
use crate::redact::walked;
use crate::rpc::inline_sender::InlineSender;
use crate::rpc::pending::MAX_CALLS;

/// One wire, not yet connected.
#[async_trait]
pub trait Transport: Send + 'static {
    /// Connects, carries messages both ways, and ends. See the module's contract.
    async fn run(self: Box<Self>, link: Link) -> Disconnect;
}

/// Where a wire can be had, as often as needed: a connection that was lost is never revived, a new one is dialled.
pub trait Dial: Send + Sync {
    /// A wire that has done nothing yet.
    fn dial(&self) -> Box<dyn Transport>;
    /// What messages call the place: the command, or the URL without what may be secret in it.
    fn label(&self) -> String;
    /// A text of the peer's without the secrets that it was given, and short: for messages.
    fn redact(&self, text: &str) -> String;
    /// JSON of the peer's without the secrets that it was given, and otherwise what it was; `None` where it holds none. By
    /// default each of its texts is as [`Dial::redact`] leaves it.
    fn redact_json(&self, json: &str) -> Option<String> {
        let clean = walked(json, |it| Some(self.redact(it)).filter(|clean| clean != it));
        (clean != walked(json, |_| None)).then_some(clean)
    }
    /// Whether a connection begins by negotiating, or takes up a session that exists.
    fn handshake_mode(&self) -> HandshakeMode;
    /// Where the same server may be had instead, after a handshake on this wire was refused like this. By default
    /// nowhere.
    fn fallback(&self, refusal: &RequestError) -> Option<Arc<dyn Dial>> {
        let _ = refusal;
        None
    }
    /// A wire that is not to be used here, and that the same server may speak all the same, after a handshake on this one
    /// was refused like this: it is tried only to be able to say so. By default none.
    fn diagnostic_probe(&self, refusal: &RequestError) -> Option<Arc<dyn Dial>> {
        let _ = refusal;
        None
    }

    /// Is the server kept waiting by us, for a login or a new token is under way? Its silence says nothing then. By
    /// default never.
    fn is_authorizing(&self) -> bool {
        false
    }
}

/// How a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeMode {
    /// With the handshake of the peer's era.
    Negotiate,
    /// With a session id from the configuration: no handshake unless the server has forgotten the session.
    Resume,
}

/// A wire's ends of the connection to its engine.
pub struct Link {
    /// What to send.
    pub outbound: OutboundQueue,
    /// Where to put what arrives.
    pub inbound: Arc<dyn FrameSink>,
    /// When to end.
    pub shutdown: ShutdownSignal,
}

/// The id of one of our requests.
pub type RequestId = u64;

/// Which handshake a message belongs to. A session that the server has forgotten is opened again under the next epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// Something for the wire to do.
#[derive(Debug, Clone)]
pub enum Outbound {
    /// Send this.
    Send(OutboundMessage),
    /// Nobody waits for the answer to this request any more.
    Cancel {
        /// The request.
        id: RequestId,
        /// The `notifications/cancelled` that tells the peer, for wires that have no better way to say it; `None`
        /// where the peer must not be told, and the wire only lets go of what it holds for the request.
        notice: Option<Bytes>,
    },
}

/// A message on its way out. `Debug` shows its head and its length: a body may hold secrets.
#[derive(Clone)]
pub struct OutboundMessage {
    /// The handshake it belongs to.
    pub epoch: Epoch,
    /// What a wire may need to know about it.
    pub head: MessageHead,
    /// The complete JSON-RPC message, on one line unless a caller's own JSON has line breaks.
    pub body: Bytes,
}

impl fmt::Debug for OutboundMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundMessage")
            .field("epoch", &self.epoch)
            .field("head", &self.head)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// What there is to know about a message without reading it. Pipes ignore it, HTTP makes headers of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageHead {
    /// The id of our request; `None` for a notification and for an answer to the peer.
    pub id: Option<RequestId>,
    /// The method; empty for an answer.
    pub method: Cow<'static, str>,
    /// The tool, prompt or URI that the request names; see [`OutboundMessage::name`].
    pub name: Option<TargetName>,
    /// The negotiated version; `None` until there is one.
    pub version: Option<ProtocolVersion>,
    /// Arguments of the tool that its server wants to see outside of the body too.
    pub header_params: Vec<HeaderParam>,
}

/// Where the name is that a request names. Most wires never look at it, so it is not copied for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetName {
    /// The JSON string that stands here in the body.
    InBody(Range<usize>),
    /// This.
    Text(Box<str>),
}

/// An argument of a tool that goes beside the body: `Mcp-Param-<name>` over HTTP. `Debug` shows no value.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderParam {
    /// The name that the tool's schema gives it. Invariant: an HTTP token.
    pub name: Box<str>,
    /// The argument as text, not encoded.
    pub value: Box<str>,
}

impl fmt::Debug for HeaderParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderParam").field("name", &self.name).finish_non_exhaustive()
    }
}

impl OutboundMessage {
    /// The tool, prompt or URI that the request names.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        match self.head.name.as_ref()? {
            TargetName::Text(text) => Some(Cow::Borrowed(text)),
            TargetName::InBody(range) => {
                let json = str::from_utf8(self.body.get(range.clone())?).ok()?;
                let inner = json.strip_prefix('"')?.strip_suffix('"')?;
                match inner.contains('\\') {
                    false => Some(Cow::Borrowed(inner)),
                    true => serde_json::from_str(json).ok().map(Cow::Owned),
                }
            }
        }
    }
}

impl MessageHead {
    /// A message with nothing special about it.
    pub(crate) fn new(
        id: Option<RequestId>,
        method: Cow<'static, str>,
        version: Option<ProtocolVersion>,
    ) -> MessageHead {
        MessageHead { id, method, name: None, version, header_params: Vec::new() }
    }
}

/// The engine's end, as a wire sees it. Nothing here waits: whether its reader is to pause is for the wire to decide.
pub trait FrameSink: Send + Sync {
    /// Takes one complete frame. A wire whose peer cannot flood it may leave what is returned.
    fn deliver(&self, lane: StreamId, frame: Bytes) -> MessageClass;
    /// The lane of request `id` ended without an answer.
    fn stream_failed(&self, id: RequestId, why: StreamError);
    /// Bytes arrived that are no frame.
    fn noise(&self, bytes: usize);
}

/// What a frame was worth to the one who took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageClass {
    /// Somebody waited for it: an answer to a call. There is one for each, so nobody can flood with them.
    Solicited,
    /// It held so many messages of which a server may send as many as it likes: announcements, progress, requests, late
    /// answers, what was dropped, what is no message.
    Unsolicited(usize),
}

impl MessageClass {
    /// Of what holds both.
    pub(crate) fn combine(self, other: MessageClass) -> MessageClass {
        match (self, other) {
            (MessageClass::Solicited, MessageClass::Solicited) => MessageClass::Solicited,
            (MessageClass::Unsolicited(one), MessageClass::Unsolicited(other)) => {
                MessageClass::Unsolicited(one.saturating_add(other))
            }
            (MessageClass::Unsolicited(idle), MessageClass::Solicited)
            | (MessageClass::Solicited, MessageClass::Unsolicited(idle)) => MessageClass::Unsolicited(idle),
        }
    }
}

/// The way a frame came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamId {
    /// The one that everything shares: a pipe, a socket.
    Shared,
    /// The stream on which the server says what nobody asked for, in the session of this epoch.
    Notifications(Epoch),
    /// The response to this request, which was sent in the session of this epoch.
    Request(RequestId, Epoch),
}

impl StreamId {
    /// The session that its frames belong to: what answers a request of the peer's goes there, and nowhere else.
    pub fn epoch(self) -> Epoch {
        match self {
            // A pipe is its own session, and has one only.
            StreamId::Shared => Epoch(0),
            StreamId::Notifications(epoch) | StreamId::Request(_, epoch) => epoch,
        }
    }
}

/// Why a lane ended without an answer.
#[derive(Debug, Clone)]
pub enum StreamError {
    /// The response broke off, or never came: the request may have run.
    Lost(RequestError),
    /// The peer did not run the request, for it has forgotten the session of this epoch.
    NotExecuted(Epoch),
    /// The peer refused the request before it ran.
    Refused(RequestError),
    /// The peer has answered, with more than this many bytes, which is what a message may have: the answer was let go.
    TooLarge(usize),
}

/// The queue of things to send. Only the engine puts something in; when too many bytes wait, it refuses calls and
/// drops answers.
pub struct OutboundQueue {
    receiver: mpsc::UnboundedReceiver<Outbound>,
    pub(crate) flow: Arc<FlowState>,
}

/// The engine's end of an [`OutboundQueue`].
pub(crate) struct OutboundSender {
    sender: mpsc::UnboundedSender<Outbound>,
    flow: Arc<FlowState>,
}

/// What both ends know: how much is under way, and who carries it.
pub(crate) struct FlowState {
    queued_bytes: AtomicUsize,
    /// A permit for each call that may be in flight.
    permits: Semaphore,
    inline_sender: OnceLock<Box<dyn InlineSender>>,
    direct_sink: OnceLock<Arc<dyn DirectSink>>,
    /// How many calls have got their answers since something was taken.
    responses_since_write: AtomicUsize,
}

/// Where a wire takes what is sent, in the task that sends it.
pub(crate) trait DirectSink: Send + Sync {
    /// Takes it; what is put here by one task stays in its order.
    fn put(&self, out: Outbound);
}

/// One in so many of the calls that are on their way is done at a time. At least and at most so many, for each turn costs a
/// wake-up, and a write for itself.
const BATCH_DIVISOR: usize = 3;
const MIN_BATCH: usize = 4;
const MAX_BATCH: usize = 64;

impl FlowState {
    /// How many messages are written, or answers handed over, before others have their turn.
    pub(crate) fn batch_size(&self) -> usize {
        match self.in_flight() {
            // They are counted elsewhere.
            0 => MAX_BATCH,
            calls => (calls / BATCH_DIVISOR).clamp(MIN_BATCH, MAX_BATCH),
        }
    }

    /// Are so many messages enough to keep the peer at work, or as many as those send who were answered since the last were
    /// taken? A call that stands for long sends nothing.
    pub(crate) fn is_full_batch(&self, messages: usize) -> bool {
        messages >= self.responses_since_write.load(Ordering::Relaxed).min(self.batch_size())
    }

    /// What was to be sent is taken.
    pub(crate) fn start_batch(&self) {
        self.responses_since_write.store(0, Ordering::Relaxed);
    }

    /// How many calls are on their way.
    fn in_flight(&self) -> usize {
        MAX_CALLS - self.permits.available_permits()
    }
}

impl OutboundQueue {
    pub(crate) fn new() -> (OutboundSender, OutboundQueue) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let load = Arc::new(FlowState {
            queued_bytes: AtomicUsize::new(0),
            permits: Semaphore::new(MAX_CALLS),
            inline_sender: OnceLock::new(),
            direct_sink: OnceLock::new(),
            responses_since_write: AtomicUsize::new(0),
        });
        (OutboundSender { sender, flow: Arc::clone(&load) }, OutboundQueue { receiver, flow: load })
    }

    /// From now on requests are offered to `carrier` before they are put here. Once in a queue's life.
    #[cfg(feature = "http")]
    pub(crate) fn set_inline_sender(&self, carrier: Box<dyn InlineSender>) {
        let lent = self.flow.inline_sender.set(carrier);
        debug_assert!(lent.is_ok(), "a queue has one wire");
    }

    /// From now on all is put into `outlet`, and nothing here but by who is about to: what is here comes before what the same
    /// task puts there. Once in a queue's life.
    #[cfg(feature = "stdio")]
    pub(crate) fn set_direct_sink(&self, outlet: Arc<dyn DirectSink>) {
        let lent = self.flow.direct_sink.set(outlet);
        debug_assert!(lent.is_ok(), "a queue has one wire");
    }

    /// So many bytes do not wait any more.
    pub(crate) fn release_bytes(&self, bytes: usize) {
        self.flow.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The next thing to do; `None` when the engine is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<Outbound> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outbound>> {
        let out = ready!(self.receiver.poll_recv(cx));
        self.release_bytes(out.as_ref().map_or(0, Outbound::bytes));
        Poll::Ready(out)
    }

    /// The next thing to do, where one is there.
    pub(crate) fn try_next(&mut self) -> Option<Outbound> {
        let out = self.receiver.try_recv().ok()?;
        self.release_bytes(out.bytes());
        Some(out)
    }

    /// Waits for at least one thing to do, then takes up to `limit`. Returns how many; 0 when the engine is gone.
    /// Cancel-safe.
    pub async fn next_many(&mut self, into: &mut Vec<Outbound>, limit: usize) -> usize {
        let count = self.receiver.recv_many(into, limit).await;
        let taken = into[into.len() - count..].iter().map(Outbound::bytes).sum();
        self.release_bytes(taken);
        count
    }

    /// Takes what others send who have their turn now, up to `limit` in all: who sends a message wakes the wire before them,
    /// and a write for each costs them more than the wait. A call that is alone waits for nobody, and what is enough to keep
    /// the peer at work is written at once. Not cancel-safe: what was taken is in `into`.
    pub async fn fill_batch(&mut self, into: &mut Vec<Outbound>, limit: usize) {
        if !self.flow.is_full_batch(into.len()) {
            yield_once().await;
            while into.len() < limit
                && let Some(out) = self.try_next()
            {
                into.push(out);
            }
        }
        self.flow.start_batch();
    }
}

/// Lets those have their turn who are ready by now. Unlike Tokio's way to yield it does not wait until the runtime has
/// looked for input and output, before which everybody who is ready would have had a turn, again and again.
pub(crate) async fn yield_once() {
    let mut has_passed = false;
    poll_fn(|context| {
        if mem::replace(&mut has_passed, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl OutboundSender {
    /// Puts something into the queue. A wire that is gone takes nothing more; the calls hear of it elsewhere.
    pub(crate) fn send(&self, out: Outbound) {
        self.flow.queued_bytes.fetch_add(out.bytes(), Ordering::Relaxed);
        match self.flow.direct_sink.get() {
            Some(outlet) => outlet.put(out),
            None => drop(self.sender.send(out)),
        }
    }

    /// A call has got its answer, and whoever made it may send something again.
    pub(crate) fn count_response(&self) {
        self.flow.responses_since_write.fetch_add(1, Ordering::Relaxed);
    }

    /// How many bytes wait to be sent.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.flow.queued_bytes.load(Ordering::Relaxed)
    }

    /// Who may carry requests without the queue, where the wire lends itself for that.
    pub(crate) fn inline_sender(&self) -> Option<&dyn InlineSender> {
        self.flow.inline_sender.get().map(|it| &**it)
    }

    /// The permits for calls: as many as may be in flight.
    pub(crate) fn permits(&self) -> &Semaphore {
        &self.flow.permits
    }
}

impl Outbound {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Outbound::Send(message) => message.body.len(),
            Outbound::Cancel { id: _, notice } => notice.as_ref().map_or(0, Bytes::len),
        }
    }
}

/// The request to end, with the moment by which it must be over.
#[derive(Clone)]
pub struct ShutdownSignal(watch::Receiver<Option<Instant>>);

impl ShutdownSignal {
    pub(crate) fn new() -> (watch::Sender<Option<Instant>>, ShutdownSignal) {
        let (sender, receiver) = watch::channel(None);
        (sender, ShutdownSignal(receiver))
    }

    /// Resolves when the connection is to end, with the deadline for that. Cancel-safe.
    pub async fn requested(&mut self) -> Instant {
        match self.0.wait_for(Option::is_some).await {
            Ok(deadline) => deadline.expect("that is what was waited for"),
            // The engine is gone: nobody waits for a polite end.
            Err(_) => Instant::now(),
        }
    }
}

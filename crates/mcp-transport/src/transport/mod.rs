//! The `Transport` trait and the types that a transport and the engine exchange.
//!
//! Not here: anything that only one transport has. Session ids, resumption and headers stay inside the HTTP
//! transport, which reads what it needs from [`MessageHead`] instead of the body.

pub(crate) mod inline_sender;
mod message;
mod outbound;
pub(crate) mod process_id;
/// Public for the fuzz targets and benchmarks.
pub mod scan;
pub(crate) mod stderr_tail;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use mcp_host_model::TransportKind;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::disconnect::Disconnect;
use crate::error::request_error::RequestError;
use crate::redact::map_json_strings;
use scan::ScannedFrame;

pub use message::{Epoch, HeaderParam, MessageHead, Outbound, OutboundMessage, RequestId};
pub(crate) use outbound::MAX_CALLS;
#[cfg(feature = "stdio")]
pub(crate) use outbound::{DirectSink, FlowState, yield_once};
pub use outbound::{OutboundQueue, OutboundSender};

/// The part of a grace period that is reserved for ending a server by force: the last quarter.
const FORCE_DIVISOR: u32 = 4;
/// The maximum of that part.
const MAX_FORCE_TIME: Duration = Duration::from_millis(500);

/// The time at the end of a grace period that is reserved for ending the server by force. It begins at the deadline of
/// the [`ShutdownSignal`].
pub fn force_time(grace: Duration) -> Duration {
    (grace / FORCE_DIVISOR).min(MAX_FORCE_TIME)
}

/// A transport that is not yet connected.
///
/// A transport drives a whole connection; it is not a pair of `send` and `receive`. Over Streamable HTTP each
/// request has its own response stream, over a pipe all messages share one stream. The feature `testing`
/// checks a transport of your own against this contract: `testing::check_transport`.
///
/// - **Who calls:** the engine of a [`Session`](crate::Session) calls [`Transport::run`] once, in a task of
///   its own, and joins that task. The runtime is Tokio with time and I/O.
/// - **Sending:** the transport connects, then takes [`Outbound`] commands from [`Link::outbound`] in order until the
///   connection ends. Messages are sent in this order; it may write several at once. It handles both
///   commands: a message with a body, and the end of interest in a response. A transport with one message per
///   line replaces line breaks in a body by blanks.
/// - **Receiving:** each complete frame is passed to [`FrameSink::deliver`] in the order of its stream, with
///   that stream. Bytes that are not a frame are skipped; they end nothing. The sink counts them if they are
///   delivered; a transport that recognizes them itself passes them to [`FrameSink::record_noise_text`]. Over lines,
///   a frame is a line that begins with `{` or `[`; the rest of a line at the end of the stream is not a frame.
/// - **Bounds:** a frame has at most [`Limits::message_bytes`](mcp_host_model::Limits); the transport
///   discards a larger one as it arrives, or ends the connection. The link has no limits: the dial gets those
///   of the session when it is made. The outbound queue is bounded by the engine. `deliver` returns the class
///   of the message: a transport slows its reader down when a server sends many unsolicited messages, so that
///   one server cannot occupy a processor.
/// - **Errors:** a failure of the whole connection ends `run` with a [`Disconnect`], which ends every call. A response
///   stream that ends without a response is reported with [`FrameSink::fail_stream`], which ends its call
///   only. A pipe has one stream and reports none.
/// - **End:** when [`ShutdownSignal::requested`] resolves, the transport closes the connection, also while it
///   connects or sends, and returns. Until that deadline it may close gracefully, after it by force; soon
///   after it, its future is dropped. Messages that are not sent by then may be lost; their calls end with
///   the connection. If each call has an HTTP exchange of its own, it calls [`FrameSink::end_calls`] first, so
///   that the calls drop these. When the queue ends (`None`), it returns too.
/// - **Cancellation:** dropping the future of `run` at any point releases everything that the transport
///   holds, processes and tasks included.
#[async_trait]
pub trait Transport: Send + 'static {
    /// Connects, carries messages in both directions, and returns how the connection ended.
    async fn run(self: Box<Self>, link: Link) -> Disconnect;
}

/// A factory of transports to one server. A lost connection is never revived; a new one is dialled.
///
/// A session calls [`Dial::dial`] for its connection, and again if the server refuses the handshake of one
/// era and the other is tried. The other methods may be called at any time and from any thread; none of them
/// blocks or fails. What is wrong with an endpoint is an error of [`Transport::run`].
pub trait Dial: Send + Sync {
    /// Returns a transport that has not done anything yet.
    fn dial(&self) -> Box<dyn Transport>;
    /// The server's name for messages: the command, or the URL without parts that may be secret. The errors of this
    /// crate do not contain it.
    fn label(&self) -> String;
    /// Returns a server's text for use in messages: shortened, and without the secrets that the server received.
    fn redact(&self, text: &str) -> String;
    /// Returns a server's JSON without the secrets that the server received; `None` when it contains none. The default
    /// applies [`Dial::redact`] to each string in it.
    fn redact_json(&self, json: &str) -> Option<String> {
        let redacted =
            map_json_strings(json, |text| Some(self.redact(text)).filter(|redacted| redacted != text));
        (redacted != map_json_strings(json, |_| None)).then_some(redacted)
    }
    /// Whether a connection starts with a handshake, which is the default, or resumes an existing session.
    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
    /// Another way to reach the same server, after a handshake over this transport was refused with
    /// `refusal`. The default is `None`.
    fn fallback(&self, refusal: &RequestError) -> Option<Arc<dyn Dial>> {
        let _ = refusal;
        None
    }
    /// A transport that must not be used but that the server may speak, after a handshake was refused with
    /// `refusal`. It is tried only to improve the error message. The default is `None`.
    fn diagnostic_probe(&self, refusal: &RequestError) -> Option<TransportProbe> {
        let _ = refusal;
        None
    }

    /// Whether the server may lose a session while the connection lasts, as over Streamable HTTP. The default is
    /// `false`.
    fn can_lose_session(&self) -> bool {
        false
    }

    /// Whether a login or a token refresh is in progress. The server has not received the request then, so
    /// its silence must not count as a timeout. The default is `false`.
    fn is_authorizing(&self) -> bool {
        false
    }
}

/// Another transport that a server may speak.
#[non_exhaustive]
pub struct TransportProbe {
    /// The transport.
    pub kind: TransportKind,
    /// Dials it.
    pub dial: Arc<dyn Dial>,
}

/// How a connection starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeMode {
    /// With the handshake of the server's era.
    Negotiate,
    /// With a session id from the configuration: no handshake, unless the server no longer knows the session.
    Resume,
}

/// A transport's ends of the connection to its engine.
///
/// They belong to one [`Transport::run`]. All of them stay usable until it returns: after the engine has
/// ended, the queue returns `None`, frames are dropped, and the shutdown is requested.
#[non_exhaustive]
pub struct Link {
    /// Commands from the engine.
    pub outbound: OutboundQueue,
    /// The receiver of frames.
    pub inbound: Arc<dyn FrameSink>,
    /// The request to shut down.
    pub shutdown: ShutdownSignal,
}

impl Link {
    /// The ends for a transport; for a caller of [`Transport::run`] that is not the engine.
    pub fn new(outbound: OutboundQueue, inbound: Arc<dyn FrameSink>, shutdown: ShutdownSignal) -> Link {
        Link { outbound, inbound, shutdown }
    }
}

/// The receiver of what a transport reads: usually the engine. No method blocks; the transport decides when to pause
/// its reader.
pub trait FrameSink: Send + Sync {
    /// Takes one complete frame. A transport whose server cannot flood it may ignore the result.
    fn deliver(&self, stream: StreamId, frame: Bytes) -> MessageClass;
    /// Takes one complete frame that the transport has classified already.
    #[doc(hidden)]
    fn deliver_scanned(&self, stream: StreamId, frame: Bytes, scanned: ScannedFrame) -> MessageClass {
        let _ = scanned;
        self.deliver(stream, frame)
    }
    /// Whether request `id` still waits for its response.
    fn is_pending(&self, id: RequestId) -> bool;
    /// Reports that the response stream of request `id` ended without a response. Ends the call.
    fn fail_stream(&self, id: RequestId, error: StreamError);
    /// Counts received bytes that are not a frame.
    fn record_noise(&self, bytes: usize);
    /// Counts received bytes that are not a frame, and keeps what they say about a server that does not respond. The
    /// default is [`FrameSink::record_noise`].
    fn record_noise_text(&self, text: &[u8]) {
        self.record_noise(text.len());
    }
    /// Sets whether a message has arrived whose end is missing, such as its line break. The default ignores it.
    fn set_unfinished_message(&self, is_unfinished: bool) {
        let _ = is_unfinished;
    }
    /// Ends all calls, because the transport will deliver nothing more. Closing the connection may take longer.
    fn end_calls(&self);
}

/// Whether a frame answers a call. Other frames count against the rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a transport limits by class; a wildcard would not limit")]
pub enum MessageClass {
    /// A response to a call in flight. There is one for each call, so a server cannot flood with them.
    Solicited,
    /// Progress that the caller of a call in flight asked for. It has a limit of its own, because a server may send any
    /// number of them.
    Progress,
    /// This number of messages that a server may send at any time: notifications, other progress, requests, late
    /// responses, and messages that are dropped or invalid.
    Unsolicited(usize),
}

impl MessageClass {
    /// The class of a frame that contains messages of both classes.
    pub fn combine(self, other: MessageClass) -> MessageClass {
        match (self, other) {
            (MessageClass::Solicited, MessageClass::Solicited) => MessageClass::Solicited,
            (MessageClass::Unsolicited(one), MessageClass::Unsolicited(other)) => {
                MessageClass::Unsolicited(one.saturating_add(other))
            }
            (MessageClass::Unsolicited(count), MessageClass::Solicited | MessageClass::Progress)
            | (MessageClass::Solicited | MessageClass::Progress, MessageClass::Unsolicited(count)) => {
                MessageClass::Unsolicited(count)
            }
            (MessageClass::Progress, MessageClass::Solicited | MessageClass::Progress)
            | (MessageClass::Solicited, MessageClass::Progress) => MessageClass::Progress,
        }
    }
}

/// The stream that a frame arrived on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a sink handles each stream; a wildcard would give a message to no call"
)]
pub enum StreamId {
    /// The only stream of a pipe or socket.
    Shared,
    /// The stream for notifications and server requests in the session of this epoch.
    Notifications(Epoch),
    /// The response stream of this request, which was sent in the session of this epoch.
    Request(RequestId, Epoch),
}

impl StreamId {
    /// The request that the stream responds to.
    pub fn request(self) -> Option<RequestId> {
        match self {
            StreamId::Request(id, _) => Some(id),
            StreamId::Shared | StreamId::Notifications(_) => None,
        }
    }

    /// Whether request `id` has a response stream of its own and this is another stream. After a response on this
    /// stream, the receiver cancels the request without a notice, so that the transport ends the other stream.
    pub fn is_foreign_to(self, id: RequestId) -> bool {
        match self {
            StreamId::Shared => false,
            StreamId::Notifications(_) => true,
            StreamId::Request(own, _) => own != id,
        }
    }

    /// The session that the stream's frames belong to. A response to a server request is sent to that session only.
    pub fn epoch(self) -> Epoch {
        match self {
            // A pipe has exactly one session.
            StreamId::Shared => Epoch(0),
            StreamId::Notifications(epoch) | StreamId::Request(_, epoch) => epoch,
        }
    }
}

/// Why a response stream ended without a response.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The response was interrupted or was not received. The request may have run.
    #[error("the response was lost, and it is not known whether the request ran: {0}")]
    Lost(RequestError),
    /// The server did not run the request, because it no longer knows the session of this epoch.
    #[error("the server no longer knows the session")]
    NotExecuted(Epoch),
    /// There is no connection to the server, so it did not run the request.
    #[error("there is no connection to the server: {0}")]
    Unreachable(RequestError),
    /// The server refused the request before running it.
    #[error("the server refused the request: {0}")]
    Refused(RequestError),
    /// The response is larger than this limit in bytes and was discarded.
    #[error("the response exceeds the message size limit of {0} bytes")]
    TooLarge(usize),
}

/// The engine's end of a [`ShutdownSignal`]. Dropping its last clone requests the end at once.
#[derive(Debug, Clone)]
pub struct ShutdownSender(watch::Sender<Option<Instant>>);

impl ShutdownSender {
    /// Whether the transport still holds its signal.
    #[cfg(feature = "testing")]
    pub(crate) fn has_receiver(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Requests the end of the connection before `deadline`. Of several deadlines, the earliest counts.
    pub fn request(&self, deadline: Instant) {
        self.0.send_if_modified(|it| {
            let is_sooner = it.is_none_or(|earlier| deadline < earlier);
            if is_sooner {
                *it = Some(deadline);
            }
            is_sooner
        });
    }
}

/// The request to end a connection, with its deadline.
#[derive(Clone)]
pub struct ShutdownSignal(watch::Receiver<Option<Instant>>);

impl ShutdownSignal {
    /// A signal with its sender.
    pub fn new() -> (ShutdownSender, ShutdownSignal) {
        let (sender, receiver) = watch::channel(None);
        (ShutdownSender(sender), ShutdownSignal(receiver))
    }

    /// Resolves when the connection is to end, and returns the deadline for that. Cancel-safe.
    pub async fn requested(&mut self) -> Instant {
        match self.0.wait_for(Option::is_some).await {
            Ok(deadline) => deadline.expect("`wait_for` returned because it is set"),
            // The engine has ended, so there is no reason to close gracefully.
            Err(_) => Instant::now(),
        }
    }
}

//! The `Transport` trait and the types that a transport and the engine exchange.
//!
//! A transport drives a whole connection; it is not a pair of `send` and `receive`. Over Streamable HTTP each request has its
//! own response stream, over a pipe all messages share one stream. The contract:
//!
//! 1. The engine calls [`Transport::run`] once, in its own task, and joins that task.
//! 2. The transport connects, then takes [`Outbound`] commands from [`Link::outbound`] in order until the connection ends.
//!    It may write several at once. Streamable HTTP also lets the calling task send its own request (`inline_sender`), and a
//!    pipe takes messages directly in the sending task (`DirectSink`).
//! 3. Each complete frame is passed to [`FrameSink::deliver`] with the stream that it arrived on. Bytes that are not a frame
//!    are counted with [`FrameSink::noise`]. `deliver` returns the class of the message. A transport slows its reader down
//!    when a server sends many unsolicited messages, so that one server cannot occupy a processor.
//! 4. A response stream that ends without a response is reported with [`FrameSink::stream_failed`]. A pipe reports none:
//!    when it ends, `run` returns, and that ends every call.
//! 5. When [`ShutdownSignal::requested`] resolves, the transport closes the connection and returns before the deadline. If
//!    callers have exchanges of their own, it calls [`FrameSink::closing`] first, so that they drop these.
//! 6. Dropping the future of `run` at any point releases everything that the transport holds, processes included.
//!
//! Not here: anything that only one transport has. Session ids, resumption and headers stay inside the HTTP transport, which
//! reads what it needs from [`MessageHead`] instead of the body.

pub(crate) mod inline_sender;
mod outbound;
pub(crate) mod process_id;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use mcp_model::{ProtocolVersion, TransportKind};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::disconnect::{Disconnect, RequestError};
use crate::redact::map_json_strings;

pub(crate) use outbound::MAX_CALLS;
#[cfg(feature = "stdio")]
pub(crate) use outbound::{DirectSink, FlowState, yield_once};
pub use outbound::{OutboundQueue, OutboundSender};

/// A transport that is not yet connected.
#[async_trait]
pub trait Transport: Send + 'static {
    /// Connects, carries messages in both directions, and returns how the connection ended. See the module's contract.
    async fn run(self: Box<Self>, link: Link) -> Disconnect;
}

/// A factory of transports to one server. A lost connection is never revived; a new one is dialled.
pub trait Dial: Send + Sync {
    /// Returns a transport that has not done anything yet.
    fn dial(&self) -> Box<dyn Transport>;
    /// The server's name in messages: the command, or the URL without parts that may be secret.
    fn label(&self) -> String;
    /// Returns a server's text for use in messages: shortened, and without the secrets that the server was given.
    fn redact(&self, text: &str) -> String;
    /// Returns a server's JSON without the secrets that the server was given; `None` when it contains none. The default
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
    /// Another way to reach the same server, after a handshake over this transport was refused with `refusal`. The default
    /// is `None`.
    fn fallback(&self, refusal: &RequestError) -> Option<Arc<dyn Dial>> {
        let _ = refusal;
        None
    }
    /// A transport that must not be used but that the server may speak, after a handshake was refused with `refusal`. It is
    /// tried only to improve the error message. The default is `None`.
    fn diagnostic_probe(&self, refusal: &RequestError) -> Option<TransportProbe> {
        let _ = refusal;
        None
    }

    /// Whether a login or a token refresh is in progress. The server has not received the request then, so its silence must
    /// not count as a timeout. The default is `false`.
    fn is_authorizing(&self) -> bool {
        false
    }
}

/// Another transport that a server may speak.
pub struct TransportProbe {
    /// The transport.
    pub kind: TransportKind,
    /// Dials it.
    pub dial: Arc<dyn Dial>,
}

/// How a connection starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeMode {
    /// With the handshake of the server's era.
    Negotiate,
    /// With a session id from the configuration: no handshake, unless the server no longer knows the session.
    Resume,
}

/// A transport's ends of the connection to its engine.
pub struct Link {
    /// Commands from the engine.
    pub outbound: OutboundQueue,
    /// The receiver of frames.
    pub inbound: Arc<dyn FrameSink>,
    /// The request to shut down.
    pub shutdown: ShutdownSignal,
}

/// The JSON-RPC id of one of our requests.
pub type RequestId = u64;

/// The number of the handshake that a message belongs to. When a server no longer knows the session, a new session is
/// opened under the next epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// A command for the transport.
#[derive(Debug, Clone)]
pub enum Outbound {
    /// Send this message.
    Send(OutboundMessage),
    /// The response to this request is no longer needed.
    Cancel {
        /// The request.
        id: RequestId,
        /// The `notifications/cancelled` message, for transports that cancel by sending it. `None` when the server must not
        /// be notified; the transport then only releases what it holds for the request.
        notice: Option<Bytes>,
    },
}

/// A message to send. `Debug` prints its head and length only: a body may contain secrets.
#[derive(Clone)]
pub struct OutboundMessage {
    /// The handshake that the message belongs to.
    pub epoch: Epoch,
    /// What a transport may need to know about the message.
    pub head: MessageHead,
    /// The complete JSON-RPC message, on one line unless a caller's own JSON contains line breaks.
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

/// Facts about a message that a transport can use without reading its body. Pipes ignore it; HTTP makes headers of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageHead {
    /// The id of our request; `None` for a notification and for a response to the server.
    pub id: Option<RequestId>,
    /// The method; empty for a response.
    pub method: Cow<'static, str>,
    /// The tool, prompt or URI that a request of the modern era names.
    pub name: Option<Box<str>>,
    /// The negotiated protocol version; `None` before the handshake is done.
    pub version: Option<ProtocolVersion>,
    /// Arguments of the tool that the server wants as headers too.
    pub header_params: Vec<HeaderParam>,
}

/// A tool argument that is sent as a header too: `Mcp-Param-<name>` over HTTP. `Debug` does not print the value.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderParam {
    /// The name in the tool's schema. Invariant: an HTTP token.
    pub name: Box<str>,
    /// The argument as text, not encoded.
    pub value: Box<str>,
}

impl fmt::Debug for HeaderParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderParam").field("name", &self.name).finish_non_exhaustive()
    }
}

impl MessageHead {
    /// A head without a name and header parameters.
    pub fn new(
        id: Option<RequestId>,
        method: Cow<'static, str>,
        version: Option<ProtocolVersion>,
    ) -> MessageHead {
        MessageHead { id, method, name: None, version, header_params: Vec::new() }
    }
}

/// The engine as a transport sees it. No method blocks; the transport itself decides when to pause its reader.
pub trait FrameSink: Send + Sync {
    /// Takes one complete frame. A transport whose server cannot flood it may ignore the result.
    fn deliver(&self, stream: StreamId, frame: Bytes) -> MessageClass;
    /// Whether request `id` still waits for its response.
    fn awaits(&self, id: RequestId) -> bool;
    /// The response stream of request `id` ended without a response.
    fn stream_failed(&self, id: RequestId, error: StreamError);
    /// Bytes arrived that are not a frame.
    fn noise(&self, bytes: usize);
    /// The transport delivers nothing more, although closing the connection may take a while. Ends the calls.
    fn closing(&self);
}

/// Whether a frame was expected; decides whether it counts against the rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageClass {
    /// A response to a call in flight. There is one for each call, so a server cannot flood with them.
    Solicited,
    /// This number of messages that a server may send at any time: notifications, progress, requests, late responses, and
    /// messages that are dropped or invalid.
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
            (MessageClass::Unsolicited(count), MessageClass::Solicited)
            | (MessageClass::Solicited, MessageClass::Unsolicited(count)) => MessageClass::Unsolicited(count),
        }
    }
}

/// The stream that a frame arrived on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// Whether request `id` has its own response stream that is not this one. A response here makes that stream
    /// superfluous: the receiver cancels the request without a notice.
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
#[derive(Debug, Clone)]
pub enum StreamError {
    /// The response was interrupted or was not received. The request may have run.
    Lost(RequestError),
    /// The server did not run the request, because it no longer knows the session of this epoch.
    NotExecuted(Epoch),
    /// There is no connection to the server, so it did not run the request.
    Unreachable(RequestError),
    /// The server refused the request before running it.
    Refused(RequestError),
    /// The response is larger than this limit in bytes and was discarded.
    TooLarge(usize),
}

/// The request to end a connection, with its deadline.
#[derive(Clone)]
pub struct ShutdownSignal(watch::Receiver<Option<Instant>>);

impl ShutdownSignal {
    /// A signal with its sender.
    pub fn new() -> (watch::Sender<Option<Instant>>, ShutdownSignal) {
        let (sender, receiver) = watch::channel(None);
        (sender, ShutdownSignal(receiver))
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

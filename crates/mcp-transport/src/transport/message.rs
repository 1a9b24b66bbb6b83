//! Messages from the engine to a transport.

use std::fmt;

use bytes::Bytes;
use mcp_host_model::{Method, MethodName, ProtocolVersion};

/// The JSON-RPC id of one of our requests.
pub type RequestId = u64;

/// The number of the MCP session on a connection that a message belongs to, counted from 0. When a server no longer
/// knows the session, a new one is opened with the next number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a counter without other parts")]
pub struct Epoch(pub u32);

/// A command for the transport.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "a transport handles each command; a wildcard would drop one")]
pub enum Outbound {
    /// Send this message.
    Send(OutboundMessage),
    /// The response to this request is no longer needed.
    Cancel {
        /// The request.
        id: RequestId,
        /// The `notifications/cancelled` message, for transports that cancel by sending it. `None` when the
        /// server must not be notified; the transport then only releases what it holds for the request.
        notice: Option<Bytes>,
    },
}

impl Outbound {
    /// The size of the message in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Outbound::Send(message) => message.body.len(),
            Outbound::Cancel { id: _, notice } => notice.as_ref().map_or(0, Bytes::len),
        }
    }
}

/// A message to send. `Debug` prints its head and length only: a body may contain secrets.
#[derive(Clone)]
#[non_exhaustive]
pub struct OutboundMessage {
    /// The MCP session that the message belongs to.
    pub epoch: Epoch,
    /// What a transport may need to know about the message.
    pub head: MessageHead,
    /// The complete JSON-RPC message, on one line unless a caller's own JSON contains line breaks.
    pub body: Bytes,
}

impl OutboundMessage {
    /// A message; for a caller of [`Transport::run`](crate::Transport::run) that is not the engine.
    pub fn new(epoch: Epoch, head: MessageHead, body: Bytes) -> OutboundMessage {
        OutboundMessage { epoch, head, body }
    }
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

/// The parts of a message that a transport can use without parsing its body. HTTP sends them as headers; pipes ignore
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageHead {
    /// The id of our request; `None` for a notification and for a response to the server.
    pub id: Option<RequestId>,
    /// The method; `None` for a response.
    pub method: Option<MethodName>,
    /// The tool, prompt or URI that a request of the modern era names.
    pub name: Option<Box<str>>,
    /// The negotiated protocol version; `None` before the handshake is done.
    pub version: Option<ProtocolVersion>,
    /// Arguments of the tool that the server wants as headers too.
    pub header_params: Vec<HeaderParam>,
    /// Whether the server has responded to an earlier request in the session of the message.
    pub in_established_session: bool,
}

/// A tool argument that is sent as a header too: `Mcp-Param-<name>` over HTTP. `Debug` does not print the value.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
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
    /// The head of a request or notification without a name and header parameters.
    pub fn new(
        id: Option<RequestId>,
        method: impl Into<MethodName>,
        version: Option<ProtocolVersion>,
    ) -> MessageHead {
        MessageHead { id, method: Some(method.into()), ..MessageHead::response(version) }
    }

    /// The head of a response to a server request.
    pub fn response(version: Option<ProtocolVersion>) -> MessageHead {
        MessageHead {
            id: None,
            method: None,
            name: None,
            version,
            header_params: Vec::new(),
            in_established_session: false,
        }
    }

    /// The name of the method; `None` for a response.
    pub fn method_name(&self) -> Option<&str> {
        self.method.as_ref().map(MethodName::as_str)
    }

    /// Whether the message has this method.
    pub fn has_method(&self, method: Method) -> bool {
        self.method.as_ref().is_some_and(|it| *it == method)
    }
}

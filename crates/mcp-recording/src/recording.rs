//! The data of a recording.

use std::sync::Arc;

use mcp_host_model::{Method, MethodName, ProtocolVersion, RawJson};

/// The recorded sessions of several servers, in the order of their first connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    pub(crate) servers: Vec<Arc<ServerRecording>>,
    pub(crate) omitted: usize,
}

/// The recording of one server; its connections follow each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerRecording {
    /// The server's name in the configuration.
    pub server: String,
    /// The last negotiated version; `None` if there was none.
    pub version: Option<ProtocolVersion>,
    /// The requests in order.
    pub exchanges: Vec<Exchange>,
}

/// A client request and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange {
    /// The method.
    pub method: MethodName,
    /// The canonical parameters without `_meta`; `None` if there are none, and for requests that are matched by method.
    pub params: Option<RawJson>,
    /// Messages from the server before the response.
    pub before_response: Vec<ServerMessage>,
    /// The result or error as received; `None` if there was none.
    pub response: Option<Result<RawJson, RawJson>>,
    /// Messages from the server after the response and before the next request.
    pub after_response: Vec<ServerMessage>,
}

/// A message that a server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerMessage {
    /// Whether the server expects a response.
    pub kind: ServerMessageKind,
    /// The method.
    pub method: MethodName,
    /// The parameters as received. In a notification, progress tokens and subscription ids are `0`.
    pub params: Option<RawJson>,
}

/// The kind of a message that a server sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerMessageKind {
    /// A notification.
    Notification,
    /// A server request.
    Request,
}

impl Recording {
    /// The recorded servers.
    pub fn servers(&self) -> &[Arc<ServerRecording>] {
        &self.servers
    }

    /// The recording of the server with this name.
    pub fn server(&self, server: &str) -> Option<&Arc<ServerRecording>> {
        self.servers.iter().find(|it| it.server == server)
    }

    /// The number of messages that did not fit into the recording.
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

/// Whether requests of this method are matched by method only: their parameters only describe the client, or are empty.
pub(crate) fn is_matched_by_method(method: &MethodName) -> bool {
    let is_matched =
        |it: Method| it.is_handshake() || matches!(it, Method::Ping | Method::SetLevel | Method::Listen);
    method.as_known().is_some_and(is_matched)
}

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
    /// The response; `None` if there was none.
    pub response: Option<RecordedResponse>,
    /// Messages from the server after the response and before the next request.
    pub after_response: Vec<ServerMessage>,
}

/// A message that a server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerMessage {
    /// A notification.
    Notification {
        /// The method.
        method: MethodName,
        /// The parameters as received, except progress tokens and subscription ids, which are `0`.
        params: Option<RawJson>,
    },
    /// A server request.
    Request {
        /// The method.
        method: MethodName,
        /// The parameters as received.
        params: Option<RawJson>,
    },
}

/// A response as received.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordedResponse {
    /// A result.
    Result(RawJson),
    /// An error.
    Error(RawJson),
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
pub(crate) fn is_found_by_method(method: &MethodName) -> bool {
    let is_found =
        |it: Method| it.is_handshake() || matches!(it, Method::Ping | Method::SetLevel | Method::Listen);
    method.known().is_some_and(is_found)
}

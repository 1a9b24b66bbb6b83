//! A recording as a value: servers, and what was asked and answered.

use std::sync::Arc;

use mcp_model::{ProtocolVersion, RawJson};

/// Sessions with some servers, in the order in which they were first reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    pub(crate) servers: Vec<Arc<ServerRecording>>,
    pub(crate) omitted: usize,
}

/// Everything that was recorded of one server, all its connections one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerRecording {
    /// The server's name in the configuration.
    pub server: String,
    /// The version that was spoken last; `None` where none was settled.
    pub version: Option<ProtocolVersion>,
    /// What was asked, in its order.
    pub exchanges: Vec<Exchange>,
}

/// One request of the client, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The method.
    pub method: String,
    /// The parameters, canonical and without `_meta`; `None` where there are none, and for the requests that are found by
    /// their method.
    pub params: Option<RawJson>,
    /// What the server said while it answered.
    pub before_response: Vec<ServerMessage>,
    /// The answer; `None` where none came.
    pub response: Option<RecordedResponse>,
    /// What the server said after that, before anything else was asked.
    pub after_response: Vec<ServerMessage>,
}

/// Something that a server said unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerMessage {
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// The parameters as they came, but for progress tokens and subscriptions, which are `0`.
        params: Option<RawJson>,
    },
    /// A request, which wants an answer.
    Request {
        /// The method.
        method: String,
        /// The parameters as they came.
        params: Option<RawJson>,
    },
}

/// An answer, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedResponse {
    /// A result.
    Result(RawJson),
    /// An error.
    Error(RawJson),
}

impl Recording {
    /// The servers.
    pub fn servers(&self) -> &[Arc<ServerRecording>] {
        &self.servers
    }

    /// The server of this name.
    pub fn server(&self, server: &str) -> Option<&Arc<ServerRecording>> {
        self.servers.iter().find(|it| it.server == server)
    }

    /// How many messages the recording has no room for.
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

/// Requests that are found by their method alone: what they carry is who asks, or nothing.
pub(crate) fn is_found_by_method(method: &str) -> bool {
    matches!(method, "initialize" | "server/discover" | "ping" | "logging/setLevel" | crate::message::LISTEN)
}

//! Who answers what a server asks, and who hears what it says.
//!
//! Each part is there or it is not, and a server is told of a capability only where its part is there. Everything here
//! runs beside the connection, never in its way: a handler may take its time, and may call back into the session. When
//! the server takes its question back, or the connection ends, the future that answers it is dropped.

use std::sync::Arc;

use async_trait::async_trait;
use mcp_model::{LogLevel, RawJson, RpcError};

use super::server_request::{ElicitRequest, ElicitResult, Root, SamplingRequest, SamplingResult};
use crate::rpc::progress::Progress;
use crate::transport::RequestId;

/// The parts of a session's handler. Nothing by default: questions are declined, log messages go to `tracing`.
#[derive(Clone, Default)]
pub struct Handlers {
    /// Answers what a server wants a model to say. Without it the server hears that sampling is denied (HD-138, SK-17).
    pub sampling: Option<Arc<dyn Sampling>>,
    /// Answers what a server wants to know of the user.
    pub elicitation: Option<Arc<dyn Elicitation>>,
    /// Says in which places a server may work.
    pub roots: Option<Arc<dyn Roots>>,
    /// Hears what the server says on its own (HD-FR028).
    pub listener: Option<Arc<dyn Listener>>,
    /// Answers questions as bytes: those that it takes never get to the parts above.
    pub raw_requests: Option<Arc<dyn RawRequestHandler>>,
}

/// Somebody who hands questions on to where they are answered, without understanding them.
#[async_trait]
pub trait RawRequestHandler: Send + Sync {
    /// Whether questions of this method (`sampling/createMessage`, `elicitation/create`, `roots/list`, or one that this
    /// version does not know) are answered here.
    fn handles(&self, method: &str) -> bool;
    /// Answers; the result goes to the server byte for byte, and so does the error. Dropped when the server takes its
    /// question back.
    async fn handle(&self, question: RawServerRequest) -> Result<RawJson, RpcError>;
}

/// A question of a server's as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawServerRequest {
    /// Its method.
    pub method: String,
    /// Its parameters; an empty object where it has none.
    pub params: RawJson,
}

/// A model, or somebody who decides whether a server may use one.
#[async_trait]
pub trait Sampling: Send + Sync {
    /// Lets the model speak. The server is told the error as it is; a panic refuses (SK-17).
    async fn sample(&self, request: SamplingRequest) -> Result<SamplingResult, RpcError>;
}

/// A user, or somebody who speaks for one.
#[async_trait]
pub trait Elicitation: Send + Sync {
    /// The ways in which the user can be asked; a request of another kind never arrives.
    fn modes(&self) -> &[ElicitMode];
    /// Asks the user.
    async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError>;
}

/// A way to ask a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElicitMode {
    /// With a form, for what a host may know.
    Form,
    /// With a page of the server's own, for what it may not.
    Url,
}

/// The places in which a server may work.
#[async_trait]
pub trait Roots: Send + Sync {
    /// The places as they are now.
    async fn roots(&self) -> Result<Vec<Root>, RpcError>;
}

/// Somebody who hears what a server says on its own.
#[async_trait]
pub trait Listener: Send + Sync {
    /// Hears one event. Called for one after another, in the order in which they came. What comes much faster than it
    /// is heard is dropped and counted; a panic costs the event that caused it.
    async fn on_event(&self, event: ServerEvent);
}

/// Something that a server says on its own. Texts are the server's, and may hold anything.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A log message. It went to `tracing` as well.
    Log(LogMessage),
    /// Progress of one of our requests; who made the call hears it by [`CallOptions::progress`](crate::session::CallOptions).
    Progress {
        /// The request.
        request: RequestId,
        /// How far it is.
        progress: Progress,
    },
    /// Its list of tools changed.
    ToolsChanged,
    /// Its list of prompts changed.
    PromptsChanged,
    /// Its list of resources changed.
    ResourcesChanged,
    /// A resource that was subscribed to changed.
    ResourceUpdated {
        /// Its URI.
        uri: String,
    },
    /// Any other notification.
    Notification {
        /// Its method.
        method: String,
        /// Its parameters.
        params: Option<RawJson>,
    },
    /// Something arrived that is no protocol, or belongs to nothing; in words (SK-21).
    ProtocolError(String),
}

/// A server's log message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// How grave it is; `None` where the server's word is none of the eight.
    pub level: Option<LogLevel>,
    /// Which part of the server says it.
    pub logger: Option<String>,
    /// What it says: any JSON.
    pub data: Option<RawJson>,
    /// The whole parameters.
    pub raw: RawJson,
}

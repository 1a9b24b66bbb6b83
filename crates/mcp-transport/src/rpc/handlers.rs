//! Handler traits for server requests and events.
//!
//! Each handler is optional; the client declares a capability only if it has a handler for it. Handlers run in
//! their own tasks: they may be slow and may call back into the session. When the server cancels its request, or
//! the connection ends, the handler's future is dropped.

use std::sync::Arc;

use async_trait::async_trait;
use mcp_host_model::{LogLevel, Method, MethodName, RawJson, RpcError, code};

use crate::rpc::progress::Progress;
use crate::rpc::server_request::{
    ElicitMode, ElicitRequest, ElicitResult, Root, SamplingRequest, SamplingResult,
};
use crate::transport::RequestId;

/// The handlers of a session. The default has none: requests are declined, and log messages go to `tracing`.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Handlers {
    /// Handles `sampling/createMessage`. Without it sampling is denied (HD-138, SK-17).
    pub sampling: Option<Arc<dyn Sampling>>,
    /// Handles `elicitation/create`.
    pub elicitation: Option<Arc<dyn Elicitation>>,
    /// Handles `roots/list`.
    pub roots: Option<Arc<dyn Roots>>,
    /// Receives the server's events (HD-FR028).
    pub listener: Option<Arc<dyn Listener>>,
    /// Handles requests as bytes. Requests that it accepts are not passed to the handlers above.
    pub raw_requests: Option<Arc<dyn RawRequestHandler>>,
}

impl Handlers {
    /// Handlers with this raw handler only.
    pub fn with_raw_requests(raw_requests: Arc<dyn RawRequestHandler>) -> Handlers {
        Handlers { raw_requests: Some(raw_requests), ..Handlers::default() }
    }

    /// Whether these handlers accept `method`.
    pub(crate) fn handles(&self, method: &MethodName) -> bool {
        let Handlers { sampling, elicitation, roots, listener: _, raw_requests } = self;
        raw_requests.as_ref().is_some_and(|it| it.handles(method))
            || match method.as_known() {
                Some(Method::CreateMessage) => sampling.is_some(),
                Some(Method::Elicit) => elicitation.is_some(),
                Some(Method::ListRoots) => roots.is_some(),
                _ => false,
            }
    }
}

/// A handler that forwards requests without interpreting them.
#[async_trait]
pub trait RawRequestHandler: Send + Sync {
    /// Whether requests of this method are handled here: `sampling/createMessage`, `elicitation/create`, `roots/list`,
    /// or a method that this version does not know.
    fn handles(&self, method: &MethodName) -> bool;
    /// Handles a request. The result or error is sent to the server byte for byte. Dropped when the server cancels its
    /// request.
    async fn handle(&self, request: RawServerRequest) -> Result<RawJson, RpcError>;
}

/// A server request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawServerRequest {
    /// The method.
    pub method: MethodName,
    /// The parameters; an empty object if there are none.
    pub params: RawJson,
}

impl RawServerRequest {
    /// A request with its parameters.
    pub fn new(method: impl Into<MethodName>, params: RawJson) -> RawServerRequest {
        RawServerRequest { method: method.into(), params }
    }
}

/// Handles `sampling/createMessage`: generates a message with a model, or refuses the request.
#[async_trait]
pub trait Sampling: Send + Sync {
    /// Generates a message. An error is sent to the server unchanged; a panic refuses the request (SK-17).
    async fn sample(&self, request: SamplingRequest) -> Result<SamplingResult, RpcError>;
}

/// Handles `elicitation/create`: asks the user for data.
///
/// ```
/// use std::sync::Arc;
///
/// use mcp_host_model::{RawJson, RpcError};
/// use mcp_host_transport::{
///     ElicitMode, ElicitParams, ElicitRequest, ElicitResult, Elicitation, SessionOptions, async_trait,
/// };
///
/// struct Terminal;
///
/// #[async_trait]
/// impl Elicitation for Terminal {
///     fn modes(&self) -> &[ElicitMode] {
///         &[ElicitMode::Form]
///     }
///
///     async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError> {
///         let ElicitParams::Form { schema } = &request.params else { return Ok(ElicitResult::Decline) };
///         println!("{}\n{}", request.message, schema.as_str());
///         // Read the values that the user enters, without blocking the thread.
///         let values = RawJson::parse(r#"{"name": "ada"}"#.into()).expect("it is JSON");
///         Ok(ElicitResult::Accept(Some(values)))
///     }
/// }
///
/// let mut options = SessionOptions::default();
/// options.handlers.elicitation = Some(Arc::new(Terminal));
/// ```
#[async_trait]
pub trait Elicitation: Send + Sync {
    /// The supported modes. A request of another mode is refused before it arrives here.
    fn modes(&self) -> &[ElicitMode];
    /// Asks the user for data and returns the answer. An error is sent to the server unchanged.
    async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError>;
}

/// Handles `roots/list`: returns the directories that a server may work in.
#[async_trait]
pub trait Roots: Send + Sync {
    /// The current roots.
    async fn roots(&self) -> Result<Vec<Root>, RpcError>;
}

/// A receiver of a server's events.
#[async_trait]
pub trait Listener: Send + Sync {
    /// Receives one event. Events are delivered one after another, in order. When they arrive much faster than they are
    /// processed, some are dropped and counted. A panic loses only the event that caused it.
    async fn on_event(&self, event: ServerEvent);
}

/// Answers `roots/list` on a connection that several clients share: without roots, because the clients have different
/// ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoRoots {
    /// Returns an empty list. For a session that declares the capability `roots`.
    Empty,
    /// Refuses the request. For a session that does not declare the capability.
    Refused,
}

#[async_trait]
impl Roots for NoRoots {
    async fn roots(&self) -> Result<Vec<Root>, RpcError> {
        match self {
            NoRoots::Empty => Ok(Vec::new()),
            NoRoots::Refused => Err(RpcError::new(
                code::METHOD_NOT_FOUND,
                "Method not found: several clients share this server, so it gets no roots (`sharing: shared`)",
            )),
        }
    }
}

/// An event from a server. Its texts come from the server and are not trusted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A log message. It was sent to `tracing` as well.
    Log(LogMessage),
    /// Progress of one of our requests. The caller also receives it through
    /// [`CallContext::progress`](crate::CallContext::progress).
    Progress {
        /// The request.
        request: RequestId,
        /// The progress.
        progress: Progress,
    },
    /// The tool list changed.
    ToolsChanged,
    /// The prompt list changed.
    PromptsChanged,
    /// The resource list changed.
    ResourcesChanged,
    /// A subscribed resource changed.
    ResourceUpdated {
        /// The URI.
        uri: String,
    },
    /// Any other notification.
    Notification {
        /// The method.
        method: MethodName,
        /// The parameters.
        params: Option<RawJson>,
    },
    /// A message was received that is invalid or answers no pending request (SK-21). The text describes it.
    ProtocolError(String),
}

/// A server's log message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogMessage {
    /// The level; `None` if it is not one of the eight levels.
    pub level: Option<LogLevel>,
    /// The name of the logger.
    pub logger: Option<String>,
    /// The content: any JSON.
    pub data: Option<RawJson>,
    /// The complete parameters.
    pub raw: RawJson,
}

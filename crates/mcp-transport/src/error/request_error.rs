//! The failure of one request, or of opening the connection for it.

use std::fmt;

use mcp_host_model::RpcError;
use tokio::time::Instant;

use crate::error::net_failure::NetFailure;
use crate::error::retry_after::RetryAfter;

/// Why a request has no usable response. No text contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server could not be connected to.
    #[error("cannot connect to {server}: {failure}")]
    NotConnected {
        /// The server's URL.
        server: String,
        /// The failure.
        failure: NetFailure,
    },
    /// The connection failed before the response was received.
    #[error("{server} did not respond: {failure}")]
    NoResponse {
        /// The server's URL.
        server: String,
        /// The failure.
        failure: NetFailure,
    },
    /// The connection failed before the WebSocket was open.
    #[error("{server} did not open a WebSocket: {failure}")]
    NoWebSocket {
        /// The server's URL.
        server: String,
        /// The failure.
        failure: NetFailure,
    },
    /// The server answered with an error status.
    #[error("{0}")]
    Response(Box<ErrorResponse>),
    /// The server answered a request for an event stream with something else.
    #[error("{}", .0.describe(" (this is not an event stream)"))]
    NotEventStream(Box<ErrorResponse>),
    /// The response has a success status, but nothing of it is MCP.
    #[error("{problem}")]
    InvalidResponse {
        /// The HTTP status.
        status: u16,
        /// What is wrong.
        problem: String,
    },
    /// The response of an MCP server is incomplete, or does not answer the request.
    #[error("{problem}")]
    UnusableResponse {
        /// The HTTP status.
        status: u16,
        /// What is wrong.
        problem: String,
    },
    /// The response has neither a result nor an error.
    #[error("the response has neither a result nor an error")]
    EmptyResponse,
    /// The server redirects, and the redirect is not followed.
    #[error("the server redirects {}", .problem.describe(.status))]
    Redirected {
        /// The HTTP status.
        status: u16,
        /// Why it is not followed.
        problem: RedirectProblem,
    },
    /// There is no authorization for the request: the reason, and what to do.
    #[error("not authorized: {0}")]
    NotAuthorized(String),
    /// The server speaks HTTP with server-sent events at this URL. Contains its refusal of Streamable HTTP.
    #[error("it speaks HTTP with server-sent events at this URL, and not Streamable HTTP: {0}")]
    SpeaksSse(Box<RequestError>),
    /// The server speaks Streamable HTTP at this URL. Contains its refusal of HTTP with server-sent events.
    #[error("it speaks Streamable HTTP at this URL, and not HTTP with server-sent events: {0}")]
    SpeaksHttp(Box<RequestError>),
    /// The server refused both HTTP transports.
    #[error("{http}; and with server-sent events: {sse}")]
    BothRefused {
        /// The refusal of Streamable HTTP.
        http: Box<RequestError>,
        /// The refusal of HTTP with server-sent events.
        sse: Box<RequestError>,
    },
    /// The server does not read its input, so the queue is full.
    #[error("the server does not read its input")]
    InputNotRead,
    /// The server loses the session as soon as it is opened.
    #[error("the server loses the session as soon as it is opened")]
    SessionLost,
    /// Any other failure.
    #[error("{0}")]
    Other(String),
}

/// A response with an error status, or with another content than requested.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorResponse {
    /// The HTTP status.
    pub status: u16,
    /// The name of the status; empty if it has none.
    pub reason: &'static str,
    /// When the request may be repeated.
    pub retry_after: Option<RetryAfter>,
    /// How the server refuses access, if the status is 401 or 403.
    pub access: Option<AccessRefusal>,
    /// The meaning of the server's text, if it is a known one.
    pub sign: Option<ResponseSign>,
    /// The JSON-RPC error in the body.
    pub error: Option<RpcError>,
    /// The text of a body without a JSON-RPC error.
    pub text: String,
}

/// How a server refuses access.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessRefusal {
    /// It requires authorization, by one of these schemes if it names any.
    Challenge(Vec<String>),
    /// It forbids the request, and no credential is configured.
    NoCredential,
}

/// A cause that only the text of a response shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseSign {
    /// It expects TLS on this port.
    WantsTls,
    /// It requires a session, or does not know the session of the request.
    WantsSession,
}

/// Why a redirect is not followed. A target is shown without its query, and one on another host without its path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedirectProblem {
    /// It has no valid location.
    NoLocation,
    /// It leads to this other origin.
    OtherOrigin(String),
    /// It leads to this URL, and its status changes the method.
    LosesMessage(String),
    /// There were too many redirects.
    TooMany,
}

impl RequestError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> RequestError {
        RequestError::Other(message.into())
    }

    /// The HTTP status, if there was a response. [`RequestError::NotAuthorized`] counts as 401.
    pub fn status(&self) -> Option<u16> {
        match self {
            RequestError::Response(response) | RequestError::NotEventStream(response) => {
                Some(response.status)
            }
            RequestError::InvalidResponse { status, .. }
            | RequestError::UnusableResponse { status, .. }
            | RequestError::Redirected { status, .. } => Some(*status),
            // Also if the status was 403: a login is missing.
            RequestError::NotAuthorized(_) => Some(401),
            RequestError::SpeaksSse(refusal) | RequestError::SpeaksHttp(refusal) => refusal.status(),
            RequestError::BothRefused { http, sse } => decisive_refusal(http, sse).status(),
            RequestError::NotConnected { .. }
            | RequestError::NoResponse { .. }
            | RequestError::NoWebSocket { .. }
            | RequestError::EmptyResponse
            | RequestError::InputNotRead
            | RequestError::SessionLost
            | RequestError::Other(_) => None,
        }
    }

    /// The JSON-RPC error in the response body, if any.
    pub fn rpc_error(&self) -> Option<&RpcError> {
        match self {
            RequestError::Response(response) | RequestError::NotEventStream(response) => {
                response.error.as_ref()
            }
            RequestError::SpeaksSse(refusal) | RequestError::SpeaksHttp(refusal) => refusal.rpc_error(),
            _ => None,
        }
    }

    /// When the server accepts another request, if it says so.
    pub fn retry_after(&self) -> Option<&RetryAfter> {
        match self {
            RequestError::Response(response) | RequestError::NotEventStream(response) => {
                response.retry_after.as_ref()
            }
            RequestError::SpeaksSse(refusal) | RequestError::SpeaksHttp(refusal) => refusal.retry_after(),
            RequestError::BothRefused { http, sse } => decisive_refusal(http, sse).retry_after(),
            _ => None,
        }
    }

    /// When a request may be repeated, by the `Retry-After` of its refusal. `None` if the server does not say so, if
    /// the wait is too long ([`RetryAfter::request_wait`]), or if it ends after `deadline`.
    pub(crate) fn end_of_requested_wait(&self, deadline: Instant) -> Option<Instant> {
        let end = Instant::now() + self.retry_after()?.request_wait()?;
        (end < deadline).then_some(end)
    }

    /// Whether the server refuses a request because it has no session, or an unknown one.
    #[cfg(all(feature = "http", feature = "sse"))]
    pub(crate) fn wants_session(&self) -> bool {
        match self {
            RequestError::Response(response) | RequestError::NotEventStream(response) => {
                response.sign == Some(ResponseSign::WantsSession)
            }
            _ => false,
        }
    }
}

/// Returns the refusal that the user should act on. It is that of Streamable HTTP, unless the other one is a request
/// for authorization, which proves that there is a server.
pub(crate) fn decisive_refusal<'a>(http: &'a RequestError, sse: &'a RequestError) -> &'a RequestError {
    if matches!(sse.status(), Some(401 | 403)) { sse } else { http }
}

impl RedirectProblem {
    /// The rest of a sentence that begins with "the server redirects".
    fn describe(&self, status: &u16) -> String {
        match self {
            RedirectProblem::NoLocation => format!("(HTTP {status}) without a valid location"),
            RedirectProblem::OtherOrigin(target) => {
                format!("to {target} (HTTP {status}), which is not followed")
            }
            RedirectProblem::LosesMessage(target) => {
                format!("to {target} (HTTP {status}), which loses the message")
            }
            RedirectProblem::TooMany => "too often".to_owned(),
        }
    }
}

impl From<ErrorResponse> for RequestError {
    fn from(response: ErrorResponse) -> RequestError {
        RequestError::Response(Box::new(response))
    }
}

impl ErrorResponse {
    /// A response with this status and nothing else.
    pub fn new(status: u16) -> ErrorResponse {
        let text = String::new();
        ErrorResponse { status, reason: "", retry_after: None, access: None, sign: None, error: None, text }
    }

    /// A sentence with the status, its details, the text, `note`, and the JSON-RPC error.
    fn describe(&self, note: &str) -> String {
        let mut res =
            format!("the server answered HTTP {} {}", self.status, self.reason).trim_end().to_owned();
        if let Some(after) = &self.retry_after {
            res.push_str(&format!(" (try again {after})"));
        }
        match &self.access {
            Some(AccessRefusal::NoCredential) => {
                res.push_str(": it refuses access, and no credential is configured");
            }
            Some(AccessRefusal::Challenge(schemes)) => {
                res.push_str(": it requires authorization");
                if !schemes.is_empty() {
                    res.push_str(&format!(" ({})", schemes.join(", ")));
                }
            }
            None => {}
        }
        if !self.text.is_empty() {
            res.push_str(&format!(": {}", self.text));
        }
        res.push_str(note);
        if let Some(error) = &self.error {
            res.push_str(&format!(": {error}"));
        }
        res
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(""))
    }
}

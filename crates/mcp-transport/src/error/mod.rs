//! Errors of connecting and of calls.
//!
//! An error contains what happened and the evidence. It does not contain the name of the server, which the caller adds.

pub(crate) mod disconnect;
pub(crate) mod evidence;
mod headline;
pub(crate) mod help;
pub(crate) mod net_failure;
pub(crate) mod request_error;
pub(crate) mod retry_after;
pub(crate) mod sandbox_error;
pub(crate) mod session_words;
mod stderr_sign;
pub(crate) mod unmatched_output;
pub(crate) mod windows;

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{ErrorKind, RpcError, TransportKind};

use crate::error::disconnect::{Disconnect, DisconnectReason, StartError};
use crate::error::request_error::RequestError;
use crate::error::retry_after::RetryAfter;
use crate::error::unmatched_output::UnmatchedOutput;

const NOT_STARTED: &str = "the server could not be started: ";
const UNAVAILABLE: &str = "the server is no longer available: ";

/// Why a session could not be established.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// This build does not contain the transport.
    #[error("the {} transport is not part of this build", .0.as_str())]
    Unsupported(TransportKind),
    /// The endpoint is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The connection ended before the handshake was done.
    #[error("{NOT_STARTED}{0}")]
    Disconnected(Arc<Disconnect>),
    /// The handshake timed out.
    #[error("the server did not finish its handshake within {} s{}", .after.as_secs_f64(), evidence_text(.disconnect))]
    TimedOut {
        /// The time limit.
        after: Duration,
        /// How the connection ended, with the evidence.
        disconnect: Arc<Disconnect>,
    },
    /// The handshake timed out, and the server sent nothing.
    #[error("the server is silent: it sent no response within {} s{}", .after.as_secs_f64(),
        evidence_text(.disconnect))]
    Silent {
        /// The time limit.
        after: Duration,
        /// How the connection ended, with the evidence.
        disconnect: Arc<Disconnect>,
    },
    /// The server answered the handshake with a JSON-RPC error.
    #[error("the server refused the handshake: {error}{}", .disconnect.evidence)]
    Rejected {
        /// The server's error.
        error: RpcError,
        /// How the connection ended, with the evidence.
        disconnect: Arc<Disconnect>,
    },
    /// A request of the handshake failed in the transport: there was no connection, the response was lost, or the
    /// server refused the request, for example by an HTTP status.
    #[error("{0}")]
    Refused(RequestError),
    /// The server supports no version that this client supports.
    #[error("the server supports protocol version {offered}, which this client does not support")]
    UnsupportedVersion {
        /// The versions that it offered.
        offered: String,
    },
    /// The server's response is not a valid handshake.
    #[error("the server's response to the handshake is invalid: {0}")]
    InvalidResponse(String),
}

impl ConnectError {
    /// The error for a connection that ended before its handshake was done.
    pub(crate) fn from_disconnect(disconnect: Arc<Disconnect>) -> ConnectError {
        if let DisconnectReason::NotStarted(StartError::Refused(error)) = &disconnect.reason {
            return ConnectError::Refused(error.clone());
        }
        ConnectError::Disconnected(disconnect)
    }

    /// This error, with an earlier refusal of another transport added if this is a refusal too.
    pub(crate) fn after_refusal(self, first_refusal: Option<RequestError>) -> ConnectError {
        match (self, first_refusal) {
            (ConnectError::Refused(sse), Some(http)) => {
                ConnectError::Refused(RequestError::BothRefused { http: Box::new(http), sse: Box::new(sse) })
            }
            (error, _) => error,
        }
    }

    /// The beginning of the message that says what failed, but not why; empty if there is none. A narrow column omits
    /// it.
    pub fn message_opening(&self) -> &'static str {
        if let ConnectError::Disconnected(_) = self { NOT_STARTED } else { "" }
    }

    /// How long the server asks to wait before the next attempt, at most ten minutes; zero if it does not ask.
    pub fn retry_wait(&self) -> Duration {
        match self {
            ConnectError::Refused(error) => error.retry_after().map(RetryAfter::wait).unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ConnectError::TimedOut { .. } | ConnectError::Silent { .. } => ErrorKind::Timeout,
            ConnectError::Rejected { .. }
            | ConnectError::UnsupportedVersion { .. }
            | ConnectError::InvalidResponse(_) => ErrorKind::Protocol,
            ConnectError::Invalid(_) => ErrorKind::McpConfig,
            ConnectError::Unsupported(_) | ConnectError::Disconnected(_) | ConnectError::Refused(_) => {
                ErrorKind::Connection
            }
        }
    }
}

/// The evidence about a server that did not complete its handshake, as the end of a message. A known failure is first.
fn evidence_text(disconnect: &Disconnect) -> String {
    match disconnect.evidence.summary() {
        Some(summary) => format!(": {summary}{}", disconnect.evidence),
        None => disconnect.evidence.to_string(),
    }
}

/// Why a call has no result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The connection ended. If it ended during the call, it is not known whether the call ran.
    #[error("{UNAVAILABLE}{0}")]
    Closed(Arc<Disconnect>),
    /// The connection had ended before the call was sent, so the call did not run.
    #[error("{UNAVAILABLE}{0}")]
    NotSent(Arc<Disconnect>),
    /// A deadline passed. The request was cancelled at the server.
    #[error("{}", expiry_text(.0))]
    TimedOut(Expiry),
    /// A deadline passed, and the server sent something meanwhile that resembles MCP but belongs to no request.
    #[error("{}; {output}", expiry_text(.expiry))]
    TimedOutUnmatched {
        /// The deadline.
        expiry: Expiry,
        /// What the server sent.
        output: UnmatchedOutput,
    },
    /// The server responded with an error.
    #[error("the server responded with an error: {0}")]
    Rpc(RpcError),
    /// The server's response does not match the method.
    #[error("the server's response is invalid: {0}")]
    InvalidResponse(String),
    /// The server's response is not UTF-8.
    #[error("the server's response is invalid: it is not valid UTF-8 (byte {byte} of the response)")]
    NotUtf8 {
        /// The number of the first invalid byte.
        byte: usize,
    },
    /// The response was lost; the call may or may not have run.
    #[error("the response was lost ({0}), and it is not known whether the call ran")]
    OutcomeUnknown(RequestError),
    /// The response to a request that only reads was lost; it can be repeated safely.
    #[error("the response was lost ({0})")]
    ResponseLost(RequestError),
    /// The server could not be connected to, or refuses both the session and a new one. The call did not run.
    #[error("{0}")]
    Unreachable(RequestError),
    /// The call was refused before it ran.
    #[error("{0}")]
    Refused(RequestError),
    /// The server lost the session, and reopening it failed.
    #[error("the server lost the session, and reopening it failed: {0}")]
    Reopen(Arc<ConnectError>),
    /// The request is invalid.
    #[error("{0}")]
    InvalidParams(String),
    /// The server requires input that could not be provided. The text says which input, and why.
    #[error("{0}")]
    InputRequired(String),
    /// The task of the call was cancelled, with the server's status message.
    #[error("the task was cancelled{}", .0.as_ref().map(|it| format!(": {it}")).unwrap_or_default())]
    TaskCancelled(Option<String>),
    /// The resource does not exist, with the server's error.
    #[error("the server has no such resource: {0}")]
    ResourceNotFound(RpcError),
    /// Not supported by the server or by its protocol version.
    #[error("{0}")]
    Unsupported(String),
    /// The response exceeds this message size limit in bytes.
    #[error("the server's response exceeds the message size limit of {0} bytes")]
    ResponseTooLarge(usize),
}

impl CallError {
    /// The beginning of the message about a connection that ended.
    pub const UNAVAILABLE: &str = UNAVAILABLE;

    /// The beginning of the message that says what failed, but not why; empty if there is none. A narrow column omits
    /// it.
    pub fn message_opening(&self) -> &'static str {
        if let CallError::Closed(_) | CallError::NotSent(_) = self { CallError::UNAVAILABLE } else { "" }
    }

    /// Whether the server may be down although the session has not ended: it could not be connected to, it closed the
    /// connection of one request without a response, or it lost the session and no new one could be opened.
    pub fn suggests_outage(&self) -> bool {
        match self {
            CallError::Unreachable(_) | CallError::Reopen(_) => true,
            CallError::ResponseLost(error) | CallError::OutcomeUnknown(error) => {
                error.status().is_none() && *error != RequestError::EmptyResponse
            }
            CallError::Closed(_)
            | CallError::NotSent(_)
            | CallError::TimedOut(_)
            | CallError::TimedOutUnmatched { .. }
            | CallError::Rpc(_)
            | CallError::InvalidResponse(_)
            | CallError::NotUtf8 { .. }
            | CallError::Refused(_)
            | CallError::InvalidParams(_)
            | CallError::InputRequired(_)
            | CallError::TaskCancelled(_)
            | CallError::ResourceNotFound(_)
            | CallError::Unsupported(_)
            | CallError::ResponseTooLarge(_) => false,
        }
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            CallError::Closed(_) | CallError::NotSent(_) | CallError::ResponseLost(_) => {
                ErrorKind::Connection
            }
            CallError::Unreachable(_) | CallError::Refused(_) | CallError::Reopen(_) => ErrorKind::Connection,
            CallError::TimedOut(_) | CallError::TimedOutUnmatched { .. } => ErrorKind::Timeout,
            CallError::Rpc(_)
            | CallError::InvalidResponse(_)
            | CallError::NotUtf8 { .. }
            | CallError::InputRequired(_)
            | CallError::ResourceNotFound(_)
            | CallError::Unsupported(_)
            | CallError::ResponseTooLarge(_) => ErrorKind::Protocol,
            CallError::TaskCancelled(_) => ErrorKind::Tool,
            CallError::OutcomeUnknown(_) => ErrorKind::OutcomeUnknown,
            CallError::InvalidParams(_) => ErrorKind::Validation,
        }
    }
}

/// The deadline that passed, with its time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expiry {
    /// The whole call took longer than this.
    Absolute(Duration),
    /// No response and no progress for this long.
    Idle(Duration),
}

fn expiry_text(expiry: &Expiry) -> String {
    match expiry {
        Expiry::Absolute(after) => format!("no response within {} s", after.as_secs_f64()),
        Expiry::Idle(after) => format!("no response and no progress for {} s", after.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::{TransportKind, code};

    use super::*;
    use crate::error::net_failure::{NetFailure, TlsFailure};
    use crate::error::request_error::ErrorResponse;
    use crate::error::sandbox_error::SandboxError;

    fn request_error(status: Option<u16>) -> RequestError {
        status.map_or(RequestError::new("no"), |status| ErrorResponse::new(status).into())
    }

    fn disconnect(reason: DisconnectReason) -> Arc<Disconnect> {
        Arc::new(Disconnect::new(reason))
    }

    /// One error of each kind, and several for kinds with several messages.
    fn connect_errors() -> Vec<ConnectError> {
        let after = Duration::from_secs(1);
        let starts = [
            StartError::CommandNotFound,
            StartError::NoInterpreter { script: "/x".to_owned(), interpreter: "/y\r".to_owned() },
            StartError::IsDirectory("/x".to_owned()),
            StartError::NotExecutable("/x".to_owned()),
            StartError::NoDirectory("/x".to_owned()),
            StartError::Sandbox(SandboxError::NoSystem),
            StartError::Sandbox(SandboxError::NoLandlock("no".to_owned())),
            StartError::Sandbox(SandboxError::Refused("no".to_owned())),
            StartError::Sandbox(SandboxError::TooManyEntries("/x".to_owned())),
            StartError::Sandbox(SandboxError::ProgramOutside {
                program: "/x".to_owned(),
                sandbox: "project".to_owned(),
            }),
            StartError::System("no".to_owned()),
            StartError::Invalid("no".to_owned()),
        ];
        let statuses =
            [None, Some(200), Some(302), Some(400), Some(401), Some(404), Some(407), Some(429), Some(503)];
        let reasons = [
            DisconnectReason::PeerClosed,
            DisconnectReason::Stalled(after),
            DisconnectReason::Broken("no".to_owned()),
        ];
        let mut res = vec![
            ConnectError::Unsupported(TransportKind::Http),
            ConnectError::Invalid("no".to_owned()),
            ConnectError::TimedOut { after, disconnect: disconnect(DisconnectReason::Stopped) },
            ConnectError::Silent { after, disconnect: disconnect(DisconnectReason::Stopped) },
            ConnectError::Rejected {
                error: RpcError::new(-1, "no"),
                disconnect: disconnect(DisconnectReason::Stopped),
            },
            ConnectError::UnsupportedVersion { offered: "1".to_owned() },
            ConnectError::InvalidResponse("no".to_owned()),
            ConnectError::Refused(RequestError::NotConnected {
                server: "x".to_owned(),
                failure: NetFailure::Proxy("the proxy y:1 refused the tunnel".to_owned()),
            }),
        ];
        res.extend(statuses.map(|it| ConnectError::Refused(request_error(it))));
        let ends = starts.into_iter().map(DisconnectReason::NotStarted).chain(reasons);
        res.extend(ends.map(|it| ConnectError::Disconnected(disconnect(it))));
        res
    }

    fn call_errors() -> Vec<CallError> {
        let expiries = [Expiry::Absolute(Duration::ZERO), Expiry::Idle(Duration::ZERO)];
        let mut res = vec![
            CallError::Closed(disconnect(DisconnectReason::PeerClosed)),
            CallError::NotSent(disconnect(DisconnectReason::PeerClosed)),
            CallError::Rpc(RpcError::new(code::METHOD_NOT_FOUND, "no")),
            CallError::InvalidResponse("no".to_owned()),
            CallError::NotUtf8 { byte: 1 },
            CallError::OutcomeUnknown(request_error(None)),
            CallError::ResponseLost(request_error(None)),
            CallError::ResponseLost(request_error(Some(503))),
            CallError::Refused(request_error(Some(401))),
            CallError::Reopen(Arc::new(ConnectError::InvalidResponse("no".to_owned()))),
            CallError::InvalidParams("no".to_owned()),
            CallError::InputRequired("no".to_owned()),
            CallError::TaskCancelled(None),
            CallError::ResourceNotFound(RpcError::new(-1, "no")),
            CallError::Unsupported("no".to_owned()),
            CallError::ResponseTooLarge(1),
        ];
        res.extend(expiries.map(CallError::TimedOut));
        let output = UnmatchedOutput::SeveralLines;
        res.push(CallError::TimedOutUnmatched { expiry: Expiry::Absolute(Duration::ZERO), output });
        res.push(CallError::ResponseLost(RequestError::EmptyResponse));
        res
    }

    #[test]
    fn help_depends_on_the_cause_of_a_refusal() {
        let status = |status| Box::new(request_error(Some(status)));
        let net = |failure| RequestError::NotConnected { server: "x".to_owned(), failure };
        let tls =
            |failure| NetFailure::Tls { failure: Some(failure), detail: "as rustls reports it".to_owned() };
        let through_proxy = |failure| {
            net(NetFailure::ProxyConnection { proxy: "the proxy y:1".to_owned(), failure: Box::new(failure) })
        };
        let mut busy = ErrorResponse::new(429);
        busy.retry_after = Some(RetryAfter::new(Duration::from_secs(30)));
        for (error, help) in [
            (RequestError::SpeaksSse(status(405)), "configure the transport `sse`"),
            (RequestError::SpeaksHttp(status(404)), "configure the transport `http`"),
            (RequestError::BothRefused { http: status(404), sse: status(401) }, "the server requires auth"),
            (RequestError::BothRefused { http: status(404), sse: status(500) }, "check the path of the URL"),
            (RequestError::NotAuthorized("no login".to_owned()), "if it accepts a token instead"),
            (busy.into(), "wait as long as the server requests"),
            (net(tls(TlsFailure::Expired)), "renew the server's certificate"),
            (through_proxy(tls(TlsFailure::WrongName)), "use the name of the certificate"),
            (through_proxy("connection refused".into()), "check the proxy in HTTPS_PROXY"),
            (net(NetFailure::SpeaksTls("no response".to_owned())), "write https:// instead"),
            (net("connection refused".into()), "check that the server is running"),
        ] {
            let error = ConnectError::Refused(error);
            assert!(error.help().unwrap().starts_with(help), "{error}: {:?}", error.help());
        }
    }

    #[test]
    fn hd_sc3_nearly_every_error_has_a_message_and_help() {
        let texts = connect_errors().into_iter().map(|it| (it.to_string(), it.help()));
        let texts: Vec<_> =
            texts.chain(call_errors().into_iter().map(|it| (it.to_string(), it.help()))).collect();
        let without: Vec<&str> =
            texts.iter().filter(|it| it.0.is_empty() || it.1.is_none()).map(|it| it.0.as_str()).collect();
        assert!(texts.len() >= 38, "{}", texts.len());
        assert!(without.len() * 20 <= texts.len(), "{} of {}: {without:?}", without.len(), texts.len());
    }
}

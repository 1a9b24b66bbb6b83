//! Why a connection could not be made, and why a call did not succeed.
//!
//! Each error says what happened and what was seen; whose server it was is known to whoever holds the error, and is
//! said once, there.

use std::sync::Arc;
use std::time::Duration;

use mcp_model::{Kind, RpcError, TransportKind, code};

use crate::{EndReason, Ended, Expiry, Fault, StartFailure};

/// Why there is no session.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// This build does not have the wire.
    #[error("the {} transport is not part of this build", .0.as_str())]
    Unsupported(TransportKind),
    /// The endpoint cannot be used as it is.
    #[error("{0}")]
    Invalid(String),
    /// The connection ended before the handshake was over.
    #[error("the server could not be started: {0}")]
    Ended(Arc<Ended>),
    /// The handshake took too long.
    #[error("the server did not finish its handshake within {} s{}", .after.as_secs_f64(), .ended.evidence)]
    TimedOut {
        /// The time it was given.
        after: Duration,
        /// How it was ended, with what was seen.
        ended: Arc<Ended>,
    },
    /// The server answered the handshake with an error.
    #[error("the server refused the handshake: {error}{}", .ended.evidence)]
    Rejected {
        /// The server's words.
        error: RpcError,
        /// How the connection was ended, with what was seen.
        ended: Arc<Ended>,
    },
    /// The answer to the handshake's request never came, or was no answer.
    #[error("{0}")]
    Refused(Fault),
    /// The server speaks no version that we do.
    #[error("the server speaks protocol version {offered}, which this client does not")]
    Version {
        /// What it offered, in its own words.
        offered: String,
    },
    /// The server's answer is no handshake.
    #[error("the server's answer to the handshake cannot be read: {0}")]
    Unreadable(String),
}

impl ConnectError {
    /// A connection that ended before its handshake was over; where the peer would not have us, that says it best.
    pub(crate) fn ended(ended: Arc<Ended>) -> ConnectError {
        match &ended.reason {
            EndReason::NotStarted(StartFailure::Refused(fault)) => ConnectError::Refused(fault.clone()),
            EndReason::NotStarted(
                StartFailure::CommandNotFound
                | StartFailure::NoDirectory(_)
                | StartFailure::System(_)
                | StartFailure::Invalid(_),
            )
            | EndReason::Stopped
            | EndReason::PeerClosed
            | EndReason::Stalled(_)
            | EndReason::Broken(_) => ConnectError::Ended(ended),
        }
    }

    /// The same after another wire to the server was refused, which is told, too. A server that was reached in the end
    /// is told about alone.
    pub(crate) fn after(self, before: Option<Fault>) -> ConnectError {
        match (self, before) {
            (ConnectError::Refused(fault), Some(before)) => {
                // A path may well be wrong when both ways are refused; who wants authorization is there.
                let status = match fault.status {
                    Some(401 | 403) => fault.status,
                    _ => before.status,
                };
                let message = format!("{before}; and with server-sent events: {fault}");
                ConnectError::Refused(Fault { status, message, error: None })
            }
            (error, _) => error,
        }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        match self {
            ConnectError::TimedOut { .. } => Kind::Timeout,
            ConnectError::Rejected { .. } | ConnectError::Version { .. } | ConnectError::Unreadable(_) => {
                Kind::Protocol
            }
            ConnectError::Invalid(_) => Kind::McpConfig,
            ConnectError::Unsupported(_) | ConnectError::Ended(_) | ConnectError::Refused(_) => {
                Kind::Connection
            }
        }
    }

    /// What to try, where there is something to try.
    pub fn help(&self) -> Option<String> {
        match self {
            ConnectError::Ended(ended) => match &ended.reason {
                EndReason::NotStarted(StartFailure::CommandNotFound) => {
                    Some("check that the program is installed and on the PATH that the server is given".to_owned())
                }
                EndReason::NotStarted(StartFailure::NoDirectory(_)) => Some("create the directory, or correct `cwd`".to_owned()),
                // Only a process can be run by hand, and has a standard output.
                EndReason::PeerClosed | EndReason::Stalled(_) | EndReason::Broken(_)
                    if ended.evidence.pid.is_none() =>
                {
                    Some("see what the server itself says of it, in its log".to_owned())
                }
                _ if ended.evidence.noise_bytes > 0 => Some(
                    "a stdio server may write nothing but protocol to its standard output; logs belong on standard error"
                        .to_owned(),
                ),
                _ => Some("run the command by hand to see what it says".to_owned()),
            },
            ConnectError::TimedOut { .. } => {
                Some("a first `npx` or `uvx` downloads the package: run the command once by hand, or give it longer".to_owned())
            }
            ConnectError::Refused(fault) => match fault.status {
                Some(401 | 403) => Some("the server wants authorization: check the `Authorization` header".to_owned()),
                Some(404 | 405) => Some("check the path of the URL: Streamable HTTP servers usually listen at /mcp, those with server-sent events at /sse, WebSocket servers at /ws".to_owned()),
                Some(_) => None,
                None => Some(tls_help(fault).unwrap_or_else(|| {
                    "check that the server is running, and that host and port are right".to_owned()
                })),
            },
            ConnectError::Unsupported(_)
            | ConnectError::Invalid(_)
            | ConnectError::Rejected { .. }
            | ConnectError::Version { .. }
            | ConnectError::Unreadable(_) => None,
        }
    }
}

/// Why a call brought no result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The connection is over. When it ended during the call, it is not known whether the call ran.
    #[error("the server is no longer available: {0}")]
    Closed(Arc<Ended>),
    /// The connection was over before the call was sent, which therefore did not run.
    #[error("the server is no longer available: {0}")]
    NotSent(Arc<Ended>),
    /// A deadline passed; the server was told.
    #[error("{}", expiry_text(.0))]
    TimedOut(Expiry),
    /// The server answered with an error.
    #[error("the server answered with an error: {0}")]
    Rpc(RpcError),
    /// The server's answer is not what the method answers.
    #[error("the server's answer cannot be read: {0}")]
    Unreadable(String),
    /// The answer was lost, and the call may or may not have run.
    #[error("the answer was lost ({0}), and it is not known whether the call ran")]
    OutcomeUnknown(Fault),
    /// The call was refused before it ran.
    #[error("{0}")]
    Refused(Fault),
    /// The server forgot the session, and opening it again failed.
    #[error("the server had forgotten the session, and it could not be opened again: {0}")]
    Reopen(Arc<ConnectError>),
    /// What was to be sent is no request.
    #[error("{0}")]
    InvalidParams(String),
    /// The server asks for something before it answers, and does not get it: names what was asked for, and why not.
    #[error("{0}")]
    InputRequired(String),
    /// There is no such resource; the server's words.
    #[error("the server has no such resource: {0}")]
    ResourceNotFound(RpcError),
    /// The server, or the version of the protocol that it speaks, does not have this.
    #[error("{0}")]
    NotOffered(String),
    /// A list has no end, or more items than are kept.
    #[error("{0}")]
    TooMuch(String),
}

impl CallError {
    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        match self {
            CallError::Closed(_) | CallError::NotSent(_) | CallError::Refused(_) | CallError::Reopen(_) => {
                Kind::Connection
            }
            CallError::TimedOut(_) => Kind::Timeout,
            CallError::Rpc(_)
            | CallError::Unreadable(_)
            | CallError::InputRequired(_)
            | CallError::ResourceNotFound(_)
            | CallError::NotOffered(_)
            | CallError::TooMuch(_) => Kind::Protocol,
            CallError::OutcomeUnknown(_) => Kind::OutcomeUnknown,
            CallError::InvalidParams(_) => Kind::Validation,
        }
    }

    /// What to try, where there is something to try.
    pub fn help(&self) -> Option<String> {
        match self {
            CallError::Rpc(error) => error_help(error),
            CallError::Refused(fault) => match (&fault.error, fault.status) {
                (Some(error), _) if error_help(error).is_some() => error_help(error),
                (_, Some(401 | 403)) => {
                    Some("the server wants authorization: check the `Authorization` header".to_owned())
                }
                _ => tls_help(fault),
            },
            CallError::InputRequired(_) => Some(
                "give the session a handler for what is asked, or call a tool that asks for nothing"
                    .to_owned(),
            ),
            CallError::OutcomeUnknown(_) => {
                Some("look whether it was done before it is done again".to_owned())
            }
            CallError::ResourceNotFound(_) => Some("list the resources again: it may be gone".to_owned()),
            CallError::Closed(_)
            | CallError::NotSent(_)
            | CallError::TimedOut(_)
            | CallError::Unreadable(_)
            | CallError::Reopen(_)
            | CallError::InvalidParams(_)
            | CallError::NotOffered(_)
            | CallError::TooMuch(_) => None,
        }
    }
}

/// What to do where TLS failed.
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
fn tls_help(fault: &Fault) -> Option<String> {
    crate::web::tls::help(&fault.message).map(str::to_owned)
}

/// A build without TLS has no trouble with it.
#[cfg(not(any(feature = "http", feature = "sse", feature = "websocket")))]
fn tls_help(_: &Fault) -> Option<String> {
    None
}

/// What to do about an error of the server's, as far as its number says.
fn error_help(error: &RpcError) -> Option<String> {
    match error.code {
        code::METHOD_NOT_FOUND => Some("the server does not know this method: it is older, or has less, than it says".to_owned()),
        code::HEADER_MISMATCH => Some(
            "headers and body disagree: something between here and the server changes headers, or the tool's schema has changed"
                .to_owned(),
        ),
        code::MISSING_CLIENT_CAPABILITY => {
            let needed = error.data.as_ref().and_then(|it| it.read::<Needed>().ok()).map(|it| it.names());
            let needed = needed.filter(|it| !it.is_empty()).unwrap_or_else(|| "something".to_owned());
            Some(format!("the server needs {needed} of its client: give the session a handler for that"))
        }
        code::UNSUPPORTED_PROTOCOL_VERSION => {
            Some("the server speaks another version by now: connect again".to_owned())
        }
        code::URL_ELICITATION_REQUIRED => {
            Some("the server wants a page to be opened first: its error names the page".to_owned())
        }
        _ => None,
    }
}

/// The capabilities that a server misses.
#[derive(serde::Deserialize)]
struct Needed {
    #[serde(rename = "requiredCapabilities")]
    required: std::collections::BTreeMap<String, serde::de::IgnoredAny>,
}

impl Needed {
    fn names(&self) -> String {
        let short = self.required.keys().take(8).map(|it| it.chars().take(40).collect::<String>());
        short.collect::<Vec<_>>().join(", ")
    }
}

fn expiry_text(expiry: &Expiry) -> String {
    match expiry {
        Expiry::Absolute(after) => format!("no answer within {} s", after.as_secs_f64()),
        Expiry::Idle(after) => format!("no answer and no progress for {} s", after.as_secs_f64()),
    }
}

//! Errors of connecting and of calls.
//!
//! An error contains what happened and the evidence. It does not name the server; its holder knows that.

pub(crate) mod cause;
pub(crate) mod disconnect;
use std::sync::Arc;
use std::time::Duration;

use mcp_model::{ErrorKind, ProtocolVersion, RpcError, TransportKind, code};

use crate::error::disconnect::{Disconnect, DisconnectReason, RequestError, StartError};

/// Why a session could not be established.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// This build does not contain the transport.
    #[error("the {} transport is not part of this build", .0.as_str())]
    Unsupported(TransportKind),
    /// The endpoint is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The connection ended before the handshake was done.
    #[error("the server could not be started: {0}")]
    Disconnected(Arc<Disconnect>),
    /// The handshake timed out.
    #[error("the server did not finish its handshake within {} s{}", .after.as_secs_f64(), seen(.disconnect))]
    TimedOut {
        /// The time limit.
        after: Duration,
        /// How the connection ended, with the evidence.
        disconnect: Arc<Disconnect>,
    },
    /// The handshake timed out, and the server sent nothing.
    #[error("the server is silent: it answered nothing within {} s{}", .after.as_secs_f64(), seen(.disconnect))]
    Silent {
        /// The time limit.
        after: Duration,
        /// How the connection ended, with the evidence.
        disconnect: Arc<Disconnect>,
    },
    /// The server answered the handshake with an error.
    #[error("the server refused the handshake: {error}{}", .disconnect.evidence)]
    Rejected {
        /// The server's error.
        error: RpcError,
        /// How the connection ended, with the evidence.
        disconnect: Arc<Disconnect>,
    },
    /// The response to the handshake did not come, or was a refusal.
    #[error("{0}")]
    Refused(RequestError),
    /// The server supports no version that this client supports.
    #[error("the server speaks protocol version {offered}, which this client does not")]
    UnsupportedVersion {
        /// The versions that it offered.
        offered: String,
    },
    /// The server's response is not a valid handshake.
    #[error("the server's answer to the handshake cannot be read: {0}")]
    InvalidResponse(String),
}

impl ConnectError {
    /// The error for a connection that ended before its handshake was done. A refusal describes it best.
    pub(crate) fn ended(ended: Arc<Disconnect>) -> ConnectError {
        match &ended.reason {
            DisconnectReason::NotStarted(StartError::Refused(fault)) => ConnectError::Refused(fault.clone()),
            DisconnectReason::NotStarted(
                StartError::CommandNotFound
                | StartError::NoDirectory(_)
                | StartError::System(_)
                | StartError::Invalid(_),
            )
            | DisconnectReason::Stopped
            | DisconnectReason::PeerClosed
            | DisconnectReason::Stalled(_)
            | DisconnectReason::Broken(_) => ConnectError::Disconnected(ended),
        }
    }

    /// The same after another transport to the server was refused; both refusals are in the message. If the server was
    /// reached in the end, only that counts.
    pub(crate) fn after(self, before: Option<RequestError>) -> ConnectError {
        match (self, before) {
            (ConnectError::Refused(fault), Some(before)) => {
                // The path may be wrong if both transports are refused, but a server that requires authorization is
                // there.
                let status = match fault.status {
                    Some(401 | 403) => fault.status,
                    _ => before.status,
                };
                let message = format!("{before}; and with server-sent events: {fault}");
                ConnectError::Refused(RequestError { status, message, error: None })
            }
            (error, _) => error,
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

    /// What to try.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            ConnectError::Disconnected(ended) => end_help(ended),
            ConnectError::TimedOut { after: _, disconnect: ended } | ConnectError::Silent { after: _, disconnect: ended } => {
                match cause::of(&ended.evidence) {
                    Some(cause) => cause.help.to_owned(),
                    None if ended.evidence.pid.is_some() => {
                        "a first `npx` or `uvx` downloads the package: run the command once by hand, or give it longer; a \
                         program that keeps silent there, too, is no stdio server, or waits for something"
                            .to_owned()
                    }
                    None => "see what the server does meanwhile, in its log, or give it longer; what listens at that port \
                             may be no MCP server"
                        .to_owned(),
                }
            }
            ConnectError::Refused(fault) => refusal_help(fault),
            ConnectError::Rejected { .. } => {
                "the server is there and will not have us: its words say why; see that its version and its settings are right"
                    .to_owned()
            }
            ConnectError::UnsupportedVersion { .. } => {
                format!("update the server, or this program: the versions spoken here are {}", versions())
            }
            ConnectError::InvalidResponse(what) => unreadable_help(what),
            ConnectError::Invalid(_) => "correct the server's entry in the configuration".to_owned(),
            ConnectError::Unsupported(_) => {
                "take a build with this transport, or another transport of the server's".to_owned()
            }
        })
    }
}

/// The evidence about a server that did not complete its handshake; a known cause comes first.
fn seen(ended: &Disconnect) -> String {
    match cause::of(&ended.evidence) {
        Some(cause) => format!(": {}{}", cause.words, ended.evidence),
        None => ended.evidence.to_string(),
    }
}

/// Help for a connection that ended.
fn end_help(ended: &Disconnect) -> String {
    if let Some(cause) = ended.cause() {
        return cause.help.to_owned();
    }
    match &ended.reason {
        DisconnectReason::NotStarted(StartError::CommandNotFound) => {
            "check that the program is installed and on the PATH that the server is given".to_owned()
        }
        DisconnectReason::NotStarted(StartError::NoDirectory(_)) => {
            "create the directory, or correct `cwd`".to_owned()
        }
        DisconnectReason::NotStarted(StartError::Refused(fault)) => refusal_help(fault),
        // Only a process can be run by hand and has a standard output.
        DisconnectReason::PeerClosed | DisconnectReason::Stalled(_) | DisconnectReason::Broken(_)
            if ended.evidence.pid.is_none() =>
        {
            "see what the server itself says of it, in its log".to_owned()
        }
        DisconnectReason::PeerClosed | DisconnectReason::Stalled(_) | DisconnectReason::Broken(_)
            if ended.evidence.noise_bytes > 0 =>
        {
            cause::NOISE.help.to_owned()
        }
        DisconnectReason::PeerClosed
        | DisconnectReason::Stalled(_)
        | DisconnectReason::Broken(_)
        | DisconnectReason::Stopped
        | DisconnectReason::NotStarted(StartError::System(_) | StartError::Invalid(_)) => {
            "run the command by hand to see what it says".to_owned()
        }
    }
}

/// Help for a server that refused the connection or could not be reached.
fn refusal_help(fault: &RequestError) -> String {
    let help = match fault.status {
        _ if fault.message.contains(OLDER) => {
            "say that its transport is `sse`, or take the URL at which it speaks Streamable HTTP, usually /mcp"
        }
        Some(401 | 403) => authorization_help(fault),
        Some(404 | 405) => {
            "check the path of the URL: Streamable HTTP servers usually listen at /mcp, those with server-sent events at \
             /sse, WebSocket servers at /ws"
        }
        Some(407) => "the proxy wants authorization: put user and password into the variable that names it",
        Some(429) => "it is asked too often: wait, or ask for a higher limit",
        Some(200..=299 | 101) => "what answers there is no MCP server, or not at this path: check the URL",
        Some(300..=399) => "if that place is to be trusted, write its URL into the configuration",
        Some(500..) => {
            "the server, or a gateway before it, fails by itself: see its log, and try again later"
        }
        Some(_) => "check the URL and the headers; the server's own words say what it misses",
        None => {
            if let Some(help) = tls_help(fault) {
                return help;
            }
            match fault.message.contains(": the proxy ") {
                true => {
                    "check the proxy in HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; NO_PROXY names the hosts that need none"
                }
                false => "check that the server is running, and that host and port are right",
            }
        }
    };
    help.to_owned()
}

/// Help for a response that cannot be read.
fn unreadable_help(what: &str) -> String {
    match what.starts_with(NOT_UTF8) {
        true => "let the server write UTF-8 (for Python: PYTHONUTF8=1 in its `env`), or name its encoding where the \
                 configuration has a key for that"
            .to_owned(),
        false => "see that this is an MCP server, and a current version of it; else only its authors can mend it".to_owned(),
    }
}

/// The supported versions.
fn versions() -> String {
    ProtocolVersion::ALL.map(|it| it.as_str()).join(", ")
}

/// The start of messages about text in a wrong encoding.
pub(crate) const NOT_UTF8: &str = "it is not valid UTF-8";

/// The message for a server that speaks HTTP with server-sent events at this URL.
pub(crate) const OLDER: &str = "it speaks HTTP with server-sent events";

/// Why a call has no result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The connection ended. If it ended during the call, it is not known whether the call ran.
    #[error("the server is no longer available: {0}")]
    Closed(Arc<Disconnect>),
    /// The connection had ended before the call was sent, so the call did not run.
    #[error("the server is no longer available: {0}")]
    NotSent(Arc<Disconnect>),
    /// A deadline passed; the server was notified.
    #[error("{}", expiry_text(.0))]
    TimedOut(Expiry),
    /// The server responded with an error.
    #[error("the server answered with an error: {0}")]
    Rpc(RpcError),
    /// The server's response does not match the method.
    #[error("the server's answer cannot be read: {0}")]
    InvalidResponse(String),
    /// The response was lost; the call may or may not have run.
    #[error("the answer was lost ({0}), and it is not known whether the call ran")]
    OutcomeUnknown(RequestError),
    /// The response to a request that only reads was lost; it can be repeated safely.
    #[error("the answer was lost ({0})")]
    ResponseLost(RequestError),
    /// The call was refused before it ran.
    #[error("{0}")]
    Refused(RequestError),
    /// The server lost the session, and reopening it failed.
    #[error("the server had forgotten the session, and it could not be opened again: {0}")]
    Reopen(Arc<ConnectError>),
    /// The request is invalid.
    #[error("{0}")]
    InvalidParams(String),
    /// The server requires input and does not get it: which input, and why not.
    #[error("{0}")]
    InputRequired(String),
    /// The resource does not exist, with the server's error.
    #[error("the server has no such resource: {0}")]
    ResourceNotFound(RpcError),
    /// Not supported by the server or by its protocol version.
    #[error("{0}")]
    Unsupported(String),
    /// A list does not end or exceeds a limit.
    #[error("{0}")]
    ListTooLarge(String),
    /// The response exceeds this message size limit in bytes.
    #[error("the server has answered, and its answer is larger than the {0} bytes that a message may have")]
    ResponseTooLarge(usize),
}

impl CallError {
    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            CallError::Closed(_) | CallError::NotSent(_) | CallError::ResponseLost(_) => {
                ErrorKind::Connection
            }
            CallError::Refused(_) | CallError::Reopen(_) => ErrorKind::Connection,
            CallError::TimedOut(_) => ErrorKind::Timeout,
            CallError::Rpc(_)
            | CallError::InvalidResponse(_)
            | CallError::InputRequired(_)
            | CallError::ResourceNotFound(_)
            | CallError::Unsupported(_)
            | CallError::ListTooLarge(_)
            | CallError::ResponseTooLarge(_) => ErrorKind::Protocol,
            CallError::OutcomeUnknown(_) => ErrorKind::OutcomeUnknown,
            CallError::InvalidParams(_) => ErrorKind::Validation,
        }
    }

    /// What to try, if there is something to try.
    pub fn help(&self) -> Option<String> {
        match self {
            CallError::Rpc(error) => error_help(error),
            CallError::Refused(fault) => {
                fault.error.as_ref().and_then(error_help).or_else(|| Some(refusal_help(fault)))
            }
            CallError::InputRequired(_) => Some(
                "give the session a handler for what is asked, or call a tool that asks for nothing"
                    .to_owned(),
            ),
            CallError::OutcomeUnknown(_) => {
                Some("look whether it was done before it is done again".to_owned())
            }
            CallError::ResponseLost(RequestError { status: None, .. }) => {
                Some("ask again, or see its log".to_owned())
            }
            CallError::ResponseLost(fault) => Some(refusal_help(fault)),
            CallError::ResourceNotFound(_) => Some("list the resources again: it may be gone".to_owned()),
            // A connection that we closed needs no remedy.
            CallError::Closed(ended) | CallError::NotSent(ended)
                if ended.reason == DisconnectReason::Stopped =>
            {
                None
            }
            CallError::Closed(ended) | CallError::NotSent(ended) => Some(match ended.cause() {
                Some(cause) => cause.help.to_owned(),
                None => "see what it said last, and its log; what crashes a server only its authors can mend"
                    .to_owned(),
            }),
            CallError::TimedOut(Expiry::Absolute(_) | Expiry::Idle(_)) => {
                Some("ask for less, or raise the time that the server has for a request".to_owned())
            }
            CallError::Reopen(error) => error.help(),
            CallError::InvalidResponse(what) => Some(unreadable_help(what)),
            CallError::ListTooLarge(_) => Some("let the server offer less, or raise the limit".to_owned()),
            CallError::ResponseTooLarge(_) => {
                Some("ask the server for less: for a part, for a page, or with a filter".to_owned())
            }
            CallError::Unsupported(_) => {
                Some("take another server, or another version of it, that has this".to_owned())
            }
            CallError::InvalidParams(_) => None,
        }
    }
}

/// Help for a server that requires authorization. After a login attempt the message already contains the help.
fn authorization_help(fault: &RequestError) -> &'static str {
    #[cfg(any(feature = "http", feature = "sse"))]
    if fault.message.starts_with(crate::net::authorization::NOT_AUTHORIZED) {
        return "if it takes a token of yours instead, put that into an `Authorization` header";
    }
    let _ = fault;
    "the server wants authorization: check the `Authorization` header"
}

/// Help for a TLS failure.
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
fn tls_help(fault: &RequestError) -> Option<String> {
    crate::net::tls::help(&fault.message).map(str::to_owned)
}

/// A build without TLS has none of these failures.
#[cfg(not(any(feature = "http", feature = "sse", feature = "websocket")))]
fn tls_help(_: &RequestError) -> Option<String> {
    None
}

/// Help for a server's error, by its code.
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

/// Which deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expiry {
    /// The whole call took longer than this.
    Absolute(Duration),
    /// No response and no progress for this long.
    Idle(Duration),
}

/// The capabilities that a server requires.
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

#[cfg(test)]
mod tests {
    use mcp_model::TransportKind;

    use super::*;

    fn fault(status: Option<u16>, message: &str) -> RequestError {
        RequestError { status, message: message.to_owned(), error: None }
    }

    fn ended(reason: DisconnectReason) -> Arc<Disconnect> {
        Arc::new(Disconnect::new(reason))
    }

    /// One error of each kind, and several for kinds with several messages.
    fn connecting() -> Vec<ConnectError> {
        let after = Duration::from_secs(1);
        let starts = [
            StartError::CommandNotFound,
            StartError::NoDirectory("/x".to_owned()),
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
            ConnectError::TimedOut { after, disconnect: ended(DisconnectReason::Stopped) },
            ConnectError::Silent { after, disconnect: ended(DisconnectReason::Stopped) },
            ConnectError::Rejected {
                error: RpcError::new(-1, "no"),
                disconnect: ended(DisconnectReason::Stopped),
            },
            ConnectError::UnsupportedVersion { offered: "1".to_owned() },
            ConnectError::InvalidResponse("no".to_owned()),
            ConnectError::InvalidResponse(NOT_UTF8.to_owned()),
            ConnectError::Refused(fault(None, "cannot connect to x: the proxy y:1: no")),
        ];
        res.extend(statuses.map(|it| ConnectError::Refused(fault(it, "no"))));
        let ends = starts.into_iter().map(DisconnectReason::NotStarted).chain(reasons);
        res.extend(ends.map(|it| ConnectError::Disconnected(ended(it))));
        res
    }

    fn calling() -> Vec<CallError> {
        let expiries = [Expiry::Absolute(Duration::ZERO), Expiry::Idle(Duration::ZERO)];
        let mut res = vec![
            CallError::Closed(ended(DisconnectReason::PeerClosed)),
            CallError::NotSent(ended(DisconnectReason::PeerClosed)),
            CallError::Rpc(RpcError::new(code::METHOD_NOT_FOUND, "no")),
            CallError::InvalidResponse("no".to_owned()),
            CallError::OutcomeUnknown(fault(None, "no")),
            CallError::ResponseLost(fault(None, "no")),
            CallError::ResponseLost(fault(Some(503), "no")),
            CallError::Refused(fault(Some(401), "no")),
            CallError::Reopen(Arc::new(ConnectError::InvalidResponse("no".to_owned()))),
            CallError::InvalidParams("no".to_owned()),
            CallError::InputRequired("no".to_owned()),
            CallError::ResourceNotFound(RpcError::new(-1, "no")),
            CallError::Unsupported("no".to_owned()),
            CallError::ListTooLarge("no".to_owned()),
            CallError::ResponseTooLarge(1),
        ];
        res.extend(expiries.map(CallError::TimedOut));
        res
    }

    #[test]
    fn hd_sc3_nearly_every_error_has_a_message_and_help() {
        let told = connecting().into_iter().map(|it| (it.to_string(), it.help()));
        let told: Vec<_> = told.chain(calling().into_iter().map(|it| (it.to_string(), it.help()))).collect();
        let without: Vec<&str> =
            told.iter().filter(|it| it.0.is_empty() || it.1.is_none()).map(|it| it.0.as_str()).collect();
        assert!(told.len() >= 38, "{}", told.len());
        assert!(without.len() * 20 <= told.len(), "{} of {}: {without:?}", without.len(), told.len());
    }
}

//! What to try after an error.

use mcp_model::{ProtocolVersion, RpcError, code};

use crate::error::disconnect::{Disconnect, DisconnectReason, RequestError, StartError};
use crate::error::{CallError, ConnectError, Expiry, NOT_UTF8, SPEAKS_SSE, cause};

impl ConnectError {
    /// What to try.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            ConnectError::Disconnected(ended) => end_help(ended),
            ConnectError::TimedOut { after: _, disconnect: ended } | ConnectError::Silent { after: _, disconnect: ended } => {
                match cause::find_cause(&ended.evidence) {
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

impl CallError {
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
        _ if fault.message.contains(SPEAKS_SSE) => {
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

/// Help for a server that requires authorization. After a login attempt the message already contains the help.
fn authorization_help(fault: &RequestError) -> &'static str {
    #[cfg(any(feature = "http", feature = "sse"))]
    if fault.message.starts_with(crate::error::NOT_AUTHORIZED) {
        return "if it takes a token of yours instead, put that into an `Authorization` header";
    }
    let _ = fault;
    "the server wants authorization: check the `Authorization` header"
}

/// Help for a TLS failure.
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
fn tls_help(fault: &RequestError) -> Option<String> {
    crate::error::tls_failure::help(&fault.message).map(str::to_owned)
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
            let needed = error.data.as_ref().and_then(|it| it.read::<RequiredCapabilities>().ok()).map(|it| it.names());
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

/// The capabilities that a server requires.
#[derive(serde::Deserialize)]
struct RequiredCapabilities {
    #[serde(rename = "requiredCapabilities")]
    required: std::collections::BTreeMap<String, serde::de::IgnoredAny>,
}

impl RequiredCapabilities {
    fn names(&self) -> String {
        let short = self.required.keys().take(8).map(|it| it.chars().take(40).collect::<String>());
        short.collect::<Vec<_>>().join(", ")
    }
}

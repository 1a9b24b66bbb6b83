//! What to try after an error.

use mcp_model::{ProtocolVersion, RpcError, code};

use crate::error::disconnect::{Disconnect, DisconnectReason, RequestError, StartError};
use crate::error::{CallError, ConnectError, Expiry, NOT_UTF8, SPEAKS_SSE, cause};

impl ConnectError {
    /// What to try.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            ConnectError::Disconnected(disconnect) => end_help(disconnect),
            ConnectError::TimedOut { after: _, disconnect } | ConnectError::Silent { after: _, disconnect } => {
                match cause::find_cause(&disconnect.evidence) {
                    Some(cause) => cause.help.to_owned(),
                    None if disconnect.evidence.pid.is_some() => {
                        "the first run of `npx` or `uvx` downloads the package: run the command once by hand, or raise the startup timeout; a program that prints nothing there either is not a stdio server, or waits for input"
                            .to_owned()
                    }
                    None => "check the server's log, or raise the startup timeout; the program at that port may not be an MCP server"
                        .to_owned(),
                }
            }
            ConnectError::Refused(error) => refusal_help(error),
            ConnectError::Rejected { .. } => {
                "the server runs but refuses this client: its error says why; check its version and its settings"
                    .to_owned()
            }
            ConnectError::UnsupportedVersion { .. } => {
                format!("update the server, or this program, which supports the versions {}", versions())
            }
            ConnectError::InvalidResponse(what) => unreadable_help(what),
            ConnectError::Invalid(_) => "correct the server's entry in the configuration".to_owned(),
            ConnectError::Unsupported(_) => {
                "use a build with this transport, or another transport of the server".to_owned()
            }
        })
    }
}

impl CallError {
    /// What to try, if there is something to try.
    pub fn help(&self) -> Option<String> {
        match self {
            CallError::Rpc(error) => error_help(error),
            CallError::Refused(error) => {
                error.error.as_ref().and_then(error_help).or_else(|| Some(refusal_help(error)))
            }
            CallError::InputRequired(_) => {
                Some("configure a handler for this input, or call a tool that needs no input".to_owned())
            }
            CallError::OutcomeUnknown(_) => {
                Some("check whether the call took effect before repeating it".to_owned())
            }
            CallError::ResponseLost(RequestError { status: None, .. }) => {
                Some("try again, or check the server's log".to_owned())
            }
            CallError::ResponseLost(error) => Some(refusal_help(error)),
            CallError::ResourceNotFound(_) => {
                Some("list the resources again: it may have been removed".to_owned())
            }
            // A connection that we closed needs no remedy.
            CallError::Closed(disconnect) | CallError::NotSent(disconnect)
                if disconnect.reason == DisconnectReason::Stopped =>
            {
                None
            }
            CallError::Closed(disconnect) | CallError::NotSent(disconnect) => {
                Some(match disconnect.cause() {
                    Some(cause) => cause.help.to_owned(),
                    None => "check its last output and its log; a crash is a bug of the server".to_owned(),
                })
            }
            CallError::TimedOut(Expiry::Absolute(_) | Expiry::Idle(_)) => {
                Some("request less, or raise the request timeout".to_owned())
            }
            CallError::Reopen(error) => error.help(),
            CallError::InvalidResponse(what) => Some(unreadable_help(what)),
            CallError::ListTooLarge(_) => {
                Some("make the server offer fewer items, or raise the limit".to_owned())
            }
            CallError::ResponseTooLarge(_) => {
                Some("request less: a part, a page, or with a filter".to_owned())
            }
            CallError::Unsupported(_) => {
                Some("use a server, or a version of it, that supports this".to_owned())
            }
            CallError::InvalidParams(_) => None,
        }
    }
}

/// Help for a connection that ended.
fn end_help(disconnect: &Disconnect) -> String {
    if let Some(cause) = disconnect.cause() {
        return cause.help.to_owned();
    }
    match &disconnect.reason {
        DisconnectReason::NotStarted(StartError::CommandNotFound) => {
            "check that the program is installed, and that its folder is in the server's PATH".to_owned()
        }
        DisconnectReason::NotStarted(StartError::NoDirectory(_)) => {
            "create the directory, or correct `cwd`".to_owned()
        }
        DisconnectReason::NotStarted(StartError::Refused(error)) => refusal_help(error),
        // Only a process can be run by hand and has a standard output.
        DisconnectReason::PeerClosed | DisconnectReason::Stalled(_) | DisconnectReason::Broken(_)
            if disconnect.evidence.pid.is_none() =>
        {
            "check the server's log".to_owned()
        }
        DisconnectReason::PeerClosed | DisconnectReason::Stalled(_) | DisconnectReason::Broken(_)
            if disconnect.evidence.noise_bytes > 0 =>
        {
            cause::NOISE.help.to_owned()
        }
        DisconnectReason::PeerClosed
        | DisconnectReason::Stalled(_)
        | DisconnectReason::Broken(_)
        | DisconnectReason::Stopped
        | DisconnectReason::NotStarted(StartError::System(_) | StartError::Invalid(_)) => {
            "run the command by hand to see its output".to_owned()
        }
    }
}

/// Help for a server that refused the connection or could not be reached.
fn refusal_help(error: &RequestError) -> String {
    let help = match error.status {
        _ if error.message.contains(SPEAKS_SSE) => {
            "configure the transport `sse`, or use the URL of its Streamable HTTP endpoint, usually /mcp"
        }
        Some(401 | 403) => authorization_help(error),
        Some(404 | 405) => {
            "check the path of the URL: Streamable HTTP servers usually use /mcp, servers with server-sent events /sse, WebSocket servers /ws"
        }
        Some(407) => {
            "the proxy requires authorization: put user and password into the proxy URL in the environment variable"
        }
        Some(429) => "it received too many requests: wait, or get a higher limit",
        Some(200..=299 | 101) => "there is no MCP server at this URL: check its host, port and path",
        Some(300..=399) => "if you trust the new location, put its URL into the configuration",
        Some(500..) => "the server, or a gateway in front of it, fails: check its log, and try again later",
        Some(_) => "check the URL and the headers; the server's message says what is missing",
        None => {
            if let Some(help) = tls_help(error) {
                return help;
            }
            match error.message.contains(": the proxy ") {
                true => {
                    "check the proxy in HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; NO_PROXY lists the hosts that need no proxy"
                }
                false => "check that the server is running, and that host and port are correct",
            }
        }
    };
    help.to_owned()
}

/// Help for a response that cannot be read.
fn unreadable_help(what: &str) -> String {
    match what.starts_with(NOT_UTF8) {
        true => "make the server write UTF-8 (for Python: PYTHONUTF8=1 in its `env`), or set its encoding if the configuration has a key for it"
            .to_owned(),
        false => "check that this is an MCP server, and a current version of it; otherwise it is a bug of the server".to_owned(),
    }
}

/// The supported versions.
fn versions() -> String {
    ProtocolVersion::ALL.map(|it| it.as_str()).join(", ")
}

/// Help for a server that requires authorization. After a login attempt the message already contains the help.
fn authorization_help(error: &RequestError) -> &'static str {
    #[cfg(any(feature = "http", feature = "sse"))]
    if error.message.starts_with(crate::error::NOT_AUTHORIZED) {
        return "if it accepts a token instead, put the token into an `Authorization` header";
    }
    let _ = error;
    "the server requires authorization: check the `Authorization` header"
}

/// Help for a TLS failure.
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
fn tls_help(error: &RequestError) -> Option<String> {
    crate::error::tls_failure::help(&error.message).map(str::to_owned)
}

/// A build without TLS has none of these failures.
#[cfg(not(any(feature = "http", feature = "sse", feature = "websocket")))]
fn tls_help(_: &RequestError) -> Option<String> {
    None
}

/// Help for a server's error, by its code.
fn error_help(error: &RpcError) -> Option<String> {
    match error.code {
        code::METHOD_NOT_FOUND => Some(
            "the server does not know this method, although its version or capabilities include it"
                .to_owned(),
        ),
        code::HEADER_MISMATCH => Some(
            "headers and body differ: a proxy changes headers, or the tool's schema has changed".to_owned(),
        ),
        code::MISSING_CLIENT_CAPABILITY => {
            let capabilities = error
                .data
                .as_ref()
                .and_then(|it| it.read::<RequiredCapabilities>().ok())
                .map(|it| it.names());
            let capabilities =
                capabilities.filter(|it| !it.is_empty()).unwrap_or_else(|| "something".to_owned());
            Some(format!("the server needs {capabilities} from its client: configure a handler for it"))
        }
        code::UNSUPPORTED_PROTOCOL_VERSION => {
            Some("the server now uses another protocol version: connect again".to_owned())
        }
        code::URL_ELICITATION_REQUIRED => {
            Some("the server requires a page to be opened first: its error contains the URL".to_owned())
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

//! What to try after an error.

use mcp_host_model::{ProtocolVersion, RpcError, code};

use crate::error::disconnect::{Disconnect, DisconnectReason, Evidence, RequestError, StartError};
use crate::error::{
    CallError, ConnectError, NO_CREDENTIAL, NOT_UTF8, RETRY_AFTER, SPEAKS_HTTP, SPEAKS_SSE, SPEAKS_TLS, cause,
};

impl ConnectError {
    /// What to try.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            ConnectError::Disconnected(disconnect) => disconnect_help(disconnect),
            ConnectError::TimedOut { after: _, disconnect }
            | ConnectError::Silent { after: _, disconnect } => {
                match cause::find_cause(&disconnect.evidence) {
                    Some(cause) => cause.help,
                    None if disconnect.evidence.pid.is_some() => {
                        "the first run of `npx` or `uvx` downloads the package: run the command once by hand, or \
                         raise the startup timeout; a program that prints nothing there either is not a stdio \
                         server, or waits for input"
                    }
                    None => {
                        "check the server's log, or raise the startup timeout; the program at that port may not \
                         be an MCP server"
                    }
                }
            }
            ConnectError::Refused(error) => refusal_help(error),
            ConnectError::Rejected { .. } => {
                "the server runs but refuses this client: see its error, and check its version and its settings"
            }
            ConnectError::UnsupportedVersion { .. } => {
                let versions: Vec<&str> = ProtocolVersion::ALL.iter().map(|it| it.as_str()).collect();
                let versions = versions.join(", ");
                return Some(format!(
                    "update the server, or this program, which supports the versions {versions}"
                ));
            }
            ConnectError::InvalidResponse(message) => invalid_response_help(message),
            ConnectError::Invalid(_) => "correct the server's entry in the configuration",
            ConnectError::Unsupported(_) => {
                "use a build with this transport, or another transport of the server"
            }
        };
        Some(help.to_owned())
    }
}

impl CallError {
    /// What to try, if there is something to try.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            CallError::Rpc(error) => return error_help(error),
            CallError::Refused(RequestError { error: Some(error), .. }) if error_help(error).is_some() => {
                return error_help(error);
            }
            CallError::Unreachable(error) | CallError::Refused(error) => refusal_help(error),
            CallError::InputRequired(_) => {
                "configure a handler for this input, or call a tool that needs no input"
            }
            CallError::TaskCancelled(_) => "call the tool again, or check the server's log for the reason",
            CallError::OutcomeUnknown(_) => "check whether the call took effect before repeating it",
            CallError::ResponseLost(RequestError { status: None, .. }) => {
                "try again, or check the server's log"
            }
            CallError::ResponseLost(error) => refusal_help(error),
            CallError::ResourceNotFound(_) => "list the resources again: it may have been removed",
            CallError::Closed(disconnect) | CallError::NotSent(disconnect) => match disconnect.cause() {
                // A connection that we closed needs no remedy.
                _ if disconnect.reason == DisconnectReason::Stopped => return None,
                Some(cause) => cause.help,
                None => "check its last output and its log; a crash is a bug of the server",
            },
            CallError::TimedOut(_) => "request less, or raise the request timeout",
            CallError::Reopen(error) => return error.help(),
            CallError::InvalidResponse(message) => invalid_response_help(message),
            CallError::ListTooLarge(_) => "make the server offer fewer items, or raise the limit",
            CallError::ResponseTooLarge(_) => "request less: a part, a page, or with a filter",
            CallError::Unsupported(_) => "use a server, or a version of it, that supports this",
            CallError::InvalidParams(_) => return None,
        };
        Some(help.to_owned())
    }
}

impl StartError {
    /// What to try.
    pub fn help(&self) -> &'static str {
        match self {
            StartError::CommandNotFound => {
                "check that the program is installed, and that its folder is in the server's PATH"
            }
            StartError::NoInterpreter { script: _, interpreter } => interpreter_help(interpreter),
            StartError::IsDirectory(_) => {
                "write the path of the program in that directory, or an interpreter as the command and the directory as its argument"
            }
            StartError::NotExecutable(_) => {
                "make the file executable (`chmod +x FILE`), or write its interpreter as the command and the file as its argument"
            }
            StartError::NoDirectory(_) => "create the directory, or correct `cwd`",
            StartError::Refused(error) => refusal_help(error),
            StartError::System(_) | StartError::Invalid(_) => RUN_BY_HAND,
        }
    }
}

/// Help for a connection that ended.
fn disconnect_help(disconnect: &Disconnect) -> &'static str {
    if let Some(cause) = disconnect.cause() {
        return cause.help;
    }
    let Evidence { pid, noise_bytes, .. } = disconnect.evidence;
    match &disconnect.reason {
        DisconnectReason::NotStarted(failure) => failure.help(),
        DisconnectReason::Stopped => RUN_BY_HAND,
        // Only a process can be run by hand and has a standard output.
        DisconnectReason::PeerClosed | DisconnectReason::Stalled(_) | DisconnectReason::Broken(_) => {
            match (pid, noise_bytes) {
                (None, _) => "check the server's log",
                (Some(_), 0) => RUN_BY_HAND,
                (Some(_), _) => cause::NOISE.help,
            }
        }
    }
}

/// Help for a script whose interpreter does not exist.
fn interpreter_help(interpreter: &str) -> &'static str {
    if interpreter.trim_end() != interpreter {
        "the file has the line endings of Windows: convert it (`sed -i 's/\\r$//' FILE`), or write its interpreter as the command"
    } else if interpreter.contains('/') {
        "a virtual environment cannot be moved: create it again and install the server there, or write an existing \
         interpreter as the command and the script as its argument"
    } else {
        "install the interpreter, or add its folder to `PATH` of `env`; your shell may use another PATH than this program"
    }
}

const RUN_BY_HAND: &str = "run the command by hand to see its output";

/// Help for a server that refused the connection or could not be reached.
fn refusal_help(error: &RequestError) -> &'static str {
    let message = &error.message;
    match error.status {
        _ if message.contains(SPEAKS_SSE) => {
            "configure the transport `sse`, or use the URL of its Streamable HTTP endpoint, usually /mcp"
        }
        _ if message.contains(SPEAKS_HTTP) => {
            "configure the transport `http` (Streamable HTTP), or use the URL of its event stream, usually /sse"
        }
        _ if message.contains(SPEAKS_TLS) || is_https_refusal(message) => {
            "write https:// instead of http:// in the URL (wss:// instead of ws://)"
        }
        Some(403) if message.contains(NO_CREDENTIAL) => {
            "if the server needs a credential, log in to it or configure an `Authorization` header; otherwise it \
             may refuse the host name in the URL, or this network: check its lists of allowed hosts, origins and addresses"
        }
        Some(400 | 401 | 404 | 422) if wants_session(error) => {
            "this URL belongs to sessions that were opened elsewhere: use the URL where they begin, usually /mcp, or /sse with \
             the transport `sse`; remove a configured session id that has expired"
        }
        Some(401 | 403) => authorization_help(error),
        Some(404 | 405) => {
            "check the path of the URL: Streamable HTTP servers usually use /mcp, servers with server-sent events /sse, WebSocket servers /ws"
        }
        Some(407) => {
            "the proxy requires authorization: put user and password into the proxy URL in the environment variable"
        }
        Some(_) if message.contains(RETRY_AFTER) => {
            "wait as long as the server requests, then try again; a higher limit needs another account or plan of the server"
        }
        Some(429) => "it received too many requests: wait, or get a higher limit",
        Some(200..=299 | 101) => "there is no MCP server at this URL: check its host, port and path",
        Some(300..=399) => "if you trust the new location, put its URL into the configuration",
        Some(500..) => "the server, or a gateway in front of it, fails: check its log, and try again later",
        Some(_) => "see the server's message, and check the URL and the headers",
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
    }
}

/// Whether a server on a TLS port answered a request without TLS in words.
fn is_https_refusal(message: &str) -> bool {
    [
        "HTTP request to an HTTPS server",
        "HTTP request was sent to HTTPS port",
        "speaking plain HTTP to an SSL",
    ]
    .iter()
    .any(|text| message.contains(text))
}

/// Whether a server refuses a request because it has no session, or an unknown one.
pub(crate) fn wants_session(error: &RequestError) -> bool {
    let text = error.to_string().to_ascii_lowercase();
    ["session id", "session-id", "sessionid", "no transport found"].iter().any(|part| text.contains(part))
}

/// Help for an invalid response.
fn invalid_response_help(message: &str) -> &'static str {
    if message.starts_with(NOT_UTF8) {
        "make the server write UTF-8 (for Python: PYTHONUTF8=1 in its `env`), or set its encoding if the \
         configuration has a key for it"
    } else {
        "check that this is an MCP server, and a current version of it; otherwise it is a bug of the server"
    }
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
fn tls_help(error: &RequestError) -> Option<&'static str> {
    crate::error::tls_failure::help(&error.message)
}

/// A build without TLS has none of these failures.
#[cfg(not(any(feature = "http", feature = "sse", feature = "websocket")))]
fn tls_help(_: &RequestError) -> Option<&'static str> {
    None
}

/// Help for a server's error, by its code.
fn error_help(error: &RpcError) -> Option<String> {
    match error.code {
        code::METHOD_NOT_FOUND => Some(
            "the server does not know this method: see the capabilities that it declares, or update it"
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

//! Help texts of errors: what the user can try.

use mcp_host_model::{ProtocolVersion, RpcError, StartLimit, code};

use crate::error::disconnect::{Disconnect, DisconnectReason, StartError};
use crate::error::evidence::Evidence;
use crate::error::net_failure::{HTTPS_HELP, UNREACHABLE_HELP};
use crate::error::request_error::{
    AccessRefusal, ErrorResponse, RequestError, ResponseSign, decisive_refusal,
};
use crate::error::windows;
use crate::error::{CallError, ConnectError, stderr_sign};

/// Whether this program runs on Windows.
const IS_WINDOWS: bool = matches!(std::env::consts::FAMILY.as_bytes(), b"windows");

/// What is known about a server whose start may have been slow.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct StartFacts<'a> {
    /// The command, if its first start downloads a package.
    pub launcher: Option<&'a str>,
    /// What limits the start in its configuration.
    pub limit: Option<StartLimit>,
    /// Its command, if it is a program.
    pub command: Option<&'a str>,
}

impl StartFacts<'_> {
    /// Help for a process whose start took too long, for no known reason.
    fn process_help(&self) -> String {
        let download = self.launcher.map(|it| format!("the first run of `{it}` downloads the package: "));
        let scanner =
            if IS_WINDOWS { "; a virus scanner may delay the first start of a program" } else { "" };
        format!(
            "{}run the command once by hand, or raise {}; a program that prints nothing there either is not a stdio \
             server, or waits for input{scanner}",
            download.unwrap_or_default(),
            self.limit_text()
        )
    }

    /// Help for a server with a URL whose start took too long, for no known reason.
    fn remote_help(&self) -> String {
        format!(
            "check the server's log, or raise {}; the program at that port may not be an MCP server",
            self.limit_text()
        )
    }

    /// The name of the startup timeout, with the value that limits it in the configuration, for a help text.
    fn limit_text(&self) -> String {
        let own = self.limit.map(|it| format!(" with {it}"));
        format!("the startup timeout{}", own.unwrap_or_default())
    }
}

impl ConnectError {
    /// What the user can try.
    pub fn help(&self) -> Option<String> {
        self.help_for(StartFacts::default())
    }

    /// What the user can try, in words of the server's configuration.
    pub fn help_for(&self, facts: StartFacts<'_>) -> Option<String> {
        let help = match self {
            ConnectError::Disconnected(disconnect) => match (&disconnect.reason, facts.command) {
                (DisconnectReason::NotStarted(StartError::CommandNotFound), Some(command)) => {
                    return Some(missing_command_help(command));
                }
                (_, _) => return Some(disconnect_help(disconnect)),
            },
            ConnectError::TimedOut { after: _, disconnect }
            | ConnectError::Silent { after: _, disconnect } => {
                if let Some(unmatched) = &disconnect.evidence.unmatched {
                    return Some(unmatched.help().to_owned());
                }
                match stderr_sign::find_sign(&disconnect.evidence) {
                    Some(sign) => sign.help,
                    None if disconnect.evidence.pid.is_some() => return Some(facts.process_help()),
                    None => return Some(facts.remote_help()),
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
            ConnectError::InvalidResponse(_) => INVALID_RESPONSE_HELP,
            ConnectError::Invalid(_) => "correct the server's entry in the configuration",
            ConnectError::Unsupported(_) => {
                "use a build with this transport, or another transport of the server"
            }
        };
        Some(help.to_owned())
    }
}

impl CallError {
    /// What the user can try; `None` if the message says it already or there is nothing to try.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            CallError::Rpc(error) => return rpc_error_help(error),
            CallError::Refused(error) => {
                if let Some(help) = error.rpc_error().and_then(rpc_error_help) {
                    return Some(help);
                }
                refusal_help(error)
            }
            CallError::Unreachable(error) => refusal_help(error),
            CallError::InputRequired(_) => {
                "configure a handler for this input, or call a tool that needs no input"
            }
            CallError::TaskCancelled(_) => "call the tool again, or check the server's log for the reason",
            CallError::OutcomeUnknown(_) => "check whether the call took effect before repeating it",
            CallError::ResponseLost(RequestError::EmptyResponse) => INVALID_RESPONSE_HELP,
            CallError::ResponseLost(error) if error.status().is_none() => {
                "try again, or check the server's log"
            }
            CallError::ResponseLost(error) => refusal_help(error),
            CallError::ResourceNotFound(_) => "list the resources again: it may have been removed",
            CallError::Closed(disconnect) | CallError::NotSent(disconnect) => match disconnect.sign() {
                // A connection that we closed needs no remedy.
                _ if disconnect.reason == DisconnectReason::Stopped => return None,
                Some(sign) => sign.help,
                None => "check its last output and its log; a crash is a bug of the server",
            },
            CallError::TimedOut(_) => "request less, or raise the request timeout",
            CallError::TimedOutUnmatched { expiry: _, output } => output.help(),
            CallError::Reopen(error) => return error.help(),
            CallError::InvalidResponse(_) => INVALID_RESPONSE_HELP,
            CallError::NotUtf8 { .. } => {
                "make the server write UTF-8 (for Python: PYTHONUTF8=1 in its `env`), or set its encoding if the \
                 configuration has a key for it"
            }
            CallError::ResponseTooLarge(_) => "request less: a part, a page, or with a filter",
            CallError::Unsupported(_) => "use a server, or a version of it, that supports this",
            CallError::InvalidParams(_) => return None,
        };
        Some(help.to_owned())
    }
}

/// Help for a command that was not found.
pub fn missing_command_help(command: &str) -> String {
    if IS_WINDOWS { windows::missing_command_help(command) } else { missing_unix_command_help(command) }
}

/// Help for a command that was not found on Linux or macOS.
fn missing_unix_command_help(command: &str) -> String {
    const OTHER_PATH: &str = "your shell may use another PATH than this program";
    let is_of_windows = |it: &str| {
        let lower = it.to_ascii_lowercase();
        let extension = [".cmd", ".exe", ".bat", ".ps1"].iter().any(|it| lower.ends_with(it));
        extension || it.contains('\\') || ["cmd", "powershell"].contains(&&*lower)
    };
    if is_of_windows(command) {
        let name = command.rsplit(['\\', '/']).next().unwrap_or_default();
        let name = name.rsplit_once('.').map_or(name, |(name, _)| name);
        return match name {
            "cmd" | "powershell" => {
                "this is a shell of Windows: write the program after `/c` as the command".to_owned()
            }
            _ => format!("this is a command of Windows: on this system, write `{name}` or a path of its own"),
        };
    }
    let install = match command {
        "npx" | "npm" | "node" => "install Node.js, which includes it",
        "bunx" | "bun" => "install Bun, which includes it",
        "deno" => "install Deno",
        "uvx" | "uv" => "install uv, which includes it",
        "python" => "write `python3`, which most systems have instead",
        "python3" | "pip" | "pipx" => "install Python 3",
        "docker" => "install Docker",
        "podman" => "install Podman",
        "cargo" => "install Rust",
        "dotnet" => "install .NET",
        "java" => "install Java",
        "go" => "install Go",
        _ if command.starts_with('~') => {
            return "`~` is not replaced here: write the path of the folder".to_owned();
        }
        _ if command.contains('/') => return "correct the path or build the program".to_owned(),
        _ => "install it",
    };
    format!("{install}, or write its full path; {OTHER_PATH}")
}

/// Help for a working directory that does not exist.
pub fn missing_directory_help(directory: &str) -> String {
    if IS_WINDOWS {
        windows::missing_directory_help(directory)
    } else {
        "create the directory, or correct `cwd`".to_owned()
    }
}

impl StartError {
    /// What the user can try.
    pub fn help(&self) -> String {
        let help = match self {
            StartError::NoDirectory(directory) => return missing_directory_help(directory),
            StartError::CommandNotFound => {
                "check that the program is installed, and that its folder is in the server's PATH"
            }
            StartError::NoInterpreter { script: _, interpreter } => interpreter_help(interpreter),
            StartError::IsDirectory(_) => {
                "write the path of the program in that directory, or an interpreter as the command and the directory \
                as its argument"
            }
            StartError::NotExecutable(path) if IS_WINDOWS => windows::not_executable_help(path),
            StartError::NotExecutable(_) => {
                "make the file executable (`chmod +x FILE`), or write its interpreter as the command and the file as \
                its argument"
            }
            StartError::Windows(refusal) => refusal.help(),
            StartError::Refused(error) => refusal_help(error),
            StartError::Sandbox(error) => error.help(),
            StartError::System(_) | StartError::Invalid(_) => RUN_BY_HAND,
        };
        help.to_owned()
    }
}

/// Help for a connection that ended.
fn disconnect_help(disconnect: &Disconnect) -> String {
    if let Some(sign) = disconnect.sign() {
        return sign.help.to_owned();
    }
    let Evidence { pid, noise_bytes, .. } = disconnect.evidence;
    let help = match &disconnect.reason {
        DisconnectReason::NotStarted(failure) => return failure.help(),
        DisconnectReason::Stopped => RUN_BY_HAND,
        // Only a process can be run by hand and has a standard output.
        DisconnectReason::PeerClosed | DisconnectReason::Stalled(_) | DisconnectReason::Broken(_) => {
            match (pid, noise_bytes) {
                (None, _) => "check the server's log",
                (Some(_), 0) => RUN_BY_HAND,
                (Some(_), _) => stderr_sign::NOISE.help,
            }
        }
    };
    help.to_owned()
}

/// Help for a script whose interpreter does not exist.
fn interpreter_help(interpreter: &str) -> &'static str {
    if interpreter.trim_end() != interpreter {
        "the file has the line endings of Windows: convert it (`sed -i 's/\\r$//' FILE`), or write its interpreter \
        as the command"
    } else if interpreter.contains('/') {
        "a virtual environment cannot be moved: create it again and install the server there, or write an existing \
         interpreter as the command and the script as its argument"
    } else {
        "install the interpreter, or add its folder to `PATH` of `env`; your shell may use another PATH than this \
        program"
    }
}

const RUN_BY_HAND: &str = "run the command by hand to see its output";

/// Help for a server that refused the connection or could not be reached.
fn refusal_help(error: &RequestError) -> &'static str {
    match error {
        RequestError::SpeaksSse(_) => {
            "configure the transport `sse`, or use the URL of its Streamable HTTP endpoint, usually /mcp"
        }
        RequestError::SpeaksHttp(_) => {
            "configure the transport `http` (Streamable HTTP), or use the URL of its event stream, usually /sse"
        }
        RequestError::BothRefused { http, sse } => refusal_help(decisive_refusal(http, sse)),
        RequestError::NotConnected { failure, .. }
        | RequestError::NoResponse { failure, .. }
        | RequestError::NoWebSocket { failure, .. } => failure.help(),
        RequestError::Response(response) | RequestError::NotEventStream(response) => response_help(response),
        RequestError::InvalidResponse { status, .. } | RequestError::Redirected { status, .. } => {
            status_help(*status)
        }
        RequestError::UnusableResponse { .. } => {
            "check the server's log, and a proxy in front of it; otherwise it is a bug of the server"
        }
        RequestError::EmptyResponse => INVALID_RESPONSE_HELP,
        // The message has the help for a login.
        RequestError::NotAuthorized(_) => {
            "if it accepts a token instead, put the token into an `Authorization` header"
        }
        RequestError::InputNotRead | RequestError::SessionLost | RequestError::Other(_) => UNREACHABLE_HELP,
    }
}

/// Help for an error response.
fn response_help(response: &ErrorResponse) -> &'static str {
    match response.status {
        _ if response.sign == Some(ResponseSign::WantsTls) => HTTPS_HELP,
        403 if response.access == Some(AccessRefusal::NoCredential) => {
            "if the server needs a credential, log in to it or configure an `Authorization` header; otherwise it \
             may refuse the host name in the URL, or this network: check its lists of allowed hosts, origins and \
             addresses"
        }
        400 | 401 | 404 | 422 if response.sign == Some(ResponseSign::WantsSession) => {
            "this URL belongs to sessions that were opened elsewhere: use the URL where they begin, usually /mcp, or \
             /sse with the transport `sse`; remove a configured session id that has expired"
        }
        status @ (401 | 403 | 404 | 405 | 407) => status_help(status),
        _ if response.retry_after.is_some() => {
            "wait as long as the server requests, then try again; a higher limit needs another account or plan of \
            the server"
        }
        status => status_help(status),
    }
}

/// Help for a response, by its status.
fn status_help(status: u16) -> &'static str {
    match status {
        401 | 403 => "the server requires authorization: check the `Authorization` header",
        404 | 405 => {
            "check the path of the URL: Streamable HTTP servers usually use /mcp, servers with server-sent events \
            /sse, WebSocket servers /ws"
        }
        407 => {
            "the proxy requires authorization: put user and password into the proxy URL in the environment variable"
        }
        429 => "it received too many requests: wait, or get a higher limit",
        200..=299 | 101 => "there is no MCP server at this URL: check its host, port and path",
        300..=399 => "if you trust the new location, put its URL into the configuration",
        500.. => "the server, or a gateway in front of it, fails: check its log, and try again later",
        _ => "see the server's message, and check the URL and the headers",
    }
}

const INVALID_RESPONSE_HELP: &str =
    "check that this is an MCP server, and a current version of it; otherwise it is a bug of the server";

/// Help for a server's error, by its code.
fn rpc_error_help(error: &RpcError) -> Option<String> {
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
    /// The names, shortened for a message because they come from the server.
    fn names(&self) -> String {
        let short = self.required.keys().take(8).map(|it| it.chars().take(40).collect::<String>());
        short.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RPT-108
    #[test]
    fn help_for_a_missing_command_fits_the_command() {
        let check = |command: &str, want: &str| {
            let help = missing_unix_command_help(command);
            assert!(help.starts_with(want), "{command}: {help}");
        };
        check("npx", "install Node.js");
        check("python", "write `python3`");
        check("my-server", "install it, or write its full path");
        check("./target/x", "correct the path");
        check("~/bin/srv", "`~` is not replaced");
        check("npx.cmd", "this is a command of Windows: on this system, write `npx`");
        check(
            "C:\\Program Files\\nodejs\\npx.cmd",
            "this is a command of Windows: on this system, write `npx`",
        );
        check("cmd", "this is a shell of Windows");
    }

    /// RPT-111, RPT-115
    #[test]
    fn help_for_a_slow_start_names_its_limit_and_a_download() {
        let mut facts = StartFacts::default();
        assert!(
            facts.process_help().starts_with("run the command once by hand, or raise the startup timeout;")
        );
        facts.limit = Some(StartLimit::Variable("MCP_TIMEOUT"));
        facts.launcher = Some("uvx");
        let want = "the first run of `uvx` downloads the package: run the command once by hand, or raise the \
                    startup timeout with the variable `MCP_TIMEOUT`;";
        assert!(facts.process_help().starts_with(want), "{}", facts.process_help());
        facts.limit = Some(StartLimit::Key("timeout"));
        assert!(facts.remote_help().contains("raise the startup timeout with `timeout`;"));
    }
}

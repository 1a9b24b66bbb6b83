//! One server as its configuration describes it, whichever dialect it was written in.
//!
//! Nothing here is resolved: values still name the variables they come from, so a spec can be compared, printed
//! and kept without a secret being read. mcp-config makes specs and resolves them into an
//! [`Endpoint`](crate::Endpoint).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::{Serialize, Serializer};

use crate::json::raw::RawJson;
use crate::server::exposure::Exposure;
use crate::server::id::ServerId;
use crate::server::limits::Limits;
use crate::server::secret::Secret;

/// What a user wrote about one server.
///
/// `Debug` shows the keys of its metadata only: what nobody here understands may hold secrets.
#[derive(Clone, PartialEq)]
pub struct ServerSpec {
    /// Its name.
    pub id: ServerId,
    /// What it is for, in the user's words.
    pub description: Option<String>,
    /// Where it was written.
    pub origin: Origin,
    /// How it is reached.
    pub transport: TransportSpec,
    /// How long things may take, how large they may be.
    pub limits: Limits,
    /// What is listed once it is connected.
    pub discovery: Discovery,
    /// Which of its tools, prompts and resources are shown, under which names.
    pub exposure: Exposure,
    /// Who may use one running instance.
    pub sharing: Sharing,
    /// Configuration handed through to the server (HD-028, HD-FR011).
    pub config: Option<Passthrough>,
    /// What the dialect knows and no other part of this model does, kept for the reader's own use (`server` of a
    /// HoloDeck item, `_meta` of an ACP entry).
    pub metadata: BTreeMap<String, RawJson>,
}

impl fmt::Debug for ServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServerSpec {
            id,
            description,
            origin,
            transport,
            limits,
            discovery,
            exposure,
            sharing,
            config,
            metadata,
        } = self;
        f.debug_struct("ServerSpec")
            .field("id", id)
            .field("description", description)
            .field("origin", origin)
            .field("transport", transport)
            .field("limits", limits)
            .field("discovery", discovery)
            .field("exposure", exposure)
            .field("sharing", sharing)
            .field("config", config)
            .field("metadata", &metadata.keys())
            .finish()
    }
}

/// The place a spec was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The dialect it was written in.
    pub dialect: Dialect,
    /// The file's name as the reader was told it, or the label of a document that is no file.
    pub file: String,
    /// JSON pointer to the server's entry.
    pub pointer: String,
    /// The entry's bytes in the file.
    pub span: Range<usize>,
}

/// A way of writing down MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// HoloDeck's `agent.yaml`.
    HoloDeck,
    /// Dominds' `.minds/mcp.yaml`.
    Dominds,
    /// The `mcpServers` of an ACP session.
    Acp,
    /// The `mcp.json` of editors.
    McpJson,
}

impl Dialect {
    /// The word that names it on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Dialect::HoloDeck => "holodeck",
            Dialect::Dominds => "dominds",
            Dialect::Acp => "acp",
            Dialect::McpJson => "mcp-json",
        }
    }
}

impl Serialize for Dialect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum TransportSpec {
    /// A child process that speaks on its standard streams.
    Stdio(StdioSpec),
    /// HTTP with server-sent events as of 2024-11-05.
    Sse(UrlSpec),
    /// WebSocket, subprotocol `mcp`.
    WebSocket(UrlSpec),
    /// Streamable HTTP.
    Http(UrlSpec),
}

impl TransportSpec {
    /// Which of the four it is.
    pub fn kind(&self) -> TransportKind {
        match self {
            TransportSpec::Stdio(_) => TransportKind::Stdio,
            TransportSpec::Sse(_) => TransportKind::Sse,
            TransportSpec::WebSocket(_) => TransportKind::WebSocket,
            TransportSpec::Http(_) => TransportKind::Http,
        }
    }
}

/// The four wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransportKind {
    /// A child process' standard streams.
    Stdio,
    /// HTTP with server-sent events, 2024-11-05.
    Sse,
    /// WebSocket.
    WebSocket,
    /// Streamable HTTP.
    Http,
}

impl TransportKind {
    /// `stdio`, `sse`, `websocket` or `http`.
    pub fn as_str(self) -> &'static str {
        match self {
            TransportKind::Stdio => "stdio",
            TransportKind::Sse => "sse",
            TransportKind::WebSocket => "websocket",
            TransportKind::Http => "http",
        }
    }
}

impl Serialize for TransportKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A child process, as written.
#[derive(Debug, Clone, PartialEq)]
pub struct StdioSpec {
    /// The program: a name looked up on `PATH`, or a path. Never handed to a shell.
    pub command: String,
    /// Its arguments, each handed over as one.
    pub args: Vec<ConfigValue>,
    /// Environment variables set on top of everything else, in file order.
    pub env: Vec<(String, ConfigValue)>,
    /// A `.env` file, relative to the configuration file; its variables lie below `env`.
    pub env_file: Option<ConfigValue>,
    /// What the child sees of our own environment.
    pub inherit: EnvInherit,
    /// The child's working directory, relative to the configuration file.
    pub cwd: Option<String>,
    /// WHATWG label of the encoding of its standard streams; `utf-8` unless said.
    pub encoding: String,
}

/// A server behind a URL, as written.
#[derive(Debug, Clone, PartialEq)]
pub struct UrlSpec {
    /// Where it is.
    pub url: ConfigValue,
    /// Headers sent with each request, in file order.
    pub headers: Vec<(String, ConfigValue)>,
    /// A session id to use from the first request on, without `initialize` (Dominds' `sessionId`).
    pub session_id: Option<ConfigValue>,
    /// End the session on the server with `DELETE` when it is closed.
    pub terminate_on_close: bool,
    /// May a server that turns out not to speak Streamable HTTP be tried as one of 2024-11-05?
    pub sse_fallback: SseFallback,
}

/// Whether HTTP with server-sent events of 2024-11-05 may be tried at the same URL, where Streamable HTTP finds no
/// server of its kind there (DIA-08). Means something for [`TransportSpec::Http`] only.
///
/// Allowed where a configuration gives a URL and does not say which of the two it is; what says `http` or `sse` gets
/// what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SseFallback {
    /// Streamable HTTP first, then server-sent events.
    Allowed,
    /// Streamable HTTP, or nothing.
    #[default]
    Never,
}

/// A value that may come from somewhere else than the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigValue {
    /// The text itself.
    Literal(Secret),
    /// A variable of our environment, with a text put before its value.
    HostEnv {
        /// The variable's name.
        name: String,
        /// Put before the value; empty unless the file gives one.
        prefix: Secret,
    },
    /// Text with `${VAR}` in it.
    Template(Vec<TemplatePart>),
}

impl ConfigValue {
    /// A value that is simply its text.
    pub fn literal(text: impl Into<String>) -> ConfigValue {
        ConfigValue::Literal(Secret::new(text))
    }
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text that stands as it is.
    Text(Secret),
    /// The value of the variable of this name.
    Variable(String),
    /// The value of a variable, or a text of its own where that is not set or empty (`${NAME:-text}`).
    VariableOr {
        /// The variable's name.
        name: String,
        /// What stands in for it.
        default: Secret,
    },
    /// What somebody answers when asked for the input of this id (`${input:id}`).
    Input(String),
}

/// How much of our environment a child sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EnvInherit {
    /// Nothing.
    None,
    /// What a program needs to run at all: see [`EnvInherit::keeps`].
    Safe,
    /// Everything.
    All,
}

impl EnvInherit {
    /// Does a child see our variable `name`?
    ///
    /// The safe set is: where programs and home are, user and shell, terminal, temporary folder, language, XDG
    /// folders, the settings of npm, uv and docker, proxies and certificate authorities, and what Windows needs.
    pub fn inherits(self, name: &str) -> bool {
        const NAMES: &[&str] = &[
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "TERM",
            "TMPDIR",
            "LANG",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "NO_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "no_proxy",
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
            "NODE_EXTRA_CA_CERTS",
            "PIP_CERT",
        ];
        const PREFIXES: &[&str] = &["LC_", "XDG_", "DOCKER_", "npm_config_", "NPM_CONFIG_", "UV_"];
        // Windows' names are compared without case there; here they never exist, so no platform switch is needed.
        const WINDOWS: &[&str] = &[
            "APPDATA",
            "COMSPEC",
            "HOMEDRIVE",
            "HOMEPATH",
            "LOCALAPPDATA",
            "NUMBER_OF_PROCESSORS",
            "OS",
            "PATHEXT",
            "PROCESSOR_ARCHITECTURE",
            "PROGRAMDATA",
            "PROGRAMFILES",
            "PROGRAMFILES(X86)",
            "SYSTEMDRIVE",
            "SYSTEMROOT",
            "TEMP",
            "TMP",
            "USERDOMAIN",
            "USERNAME",
            "USERPROFILE",
            "WINDIR",
        ];
        match self {
            EnvInherit::None => false,
            EnvInherit::All => true,
            EnvInherit::Safe => {
                NAMES.contains(&name)
                    || PREFIXES.iter().any(|it| name.starts_with(it))
                    || WINDOWS.iter().any(|it| it.eq_ignore_ascii_case(name))
            }
        }
    }
}

/// What is listed once a server is connected (HD-029, HD-030). What is not listed cannot be called, and a call
/// says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discovery {
    /// List its tools.
    pub tools: bool,
    /// List its prompts.
    pub prompts: bool,
}

impl Default for Discovery {
    fn default() -> Discovery {
        Discovery { tools: true, prompts: true }
    }
}

/// Who may use one running instance of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Everybody, at the same time.
    Shared,
    /// One owner (a dialog) each (DM-074).
    PerOwner,
}

/// Configuration for the server itself, which we do not understand, and which may hold secrets: `Debug` shows none of it.
#[derive(Clone, PartialEq, Eq)]
pub enum Passthrough {
    /// Handed on as it stands.
    Literal(RawJson),
    /// Its strings may hold `${VAR}`.
    Template(RawJson),
}

impl fmt::Debug for Passthrough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Passthrough::Literal(_) => f.write_str("Literal(***)"),
            Passthrough::Template(_) => f.write_str("Template(***)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_safe_environment_lets_no_key_through() {
        for name in
            ["PATH", "HOME", "LC_ALL", "XDG_CACHE_HOME", "npm_config_registry", "UV_INDEX_URL", "SystemRoot"]
        {
            assert!(EnvInherit::Safe.inherits(name), "{name}");
        }
        for name in [
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "",
            "path",
        ] {
            assert!(!EnvInherit::Safe.inherits(name), "{name}");
            assert!(EnvInherit::All.inherits(name) && !EnvInherit::None.inherits(name));
        }
    }
}

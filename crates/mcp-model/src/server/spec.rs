//! A server as its configuration describes it, in any dialect.
//!
//! Nothing is resolved: values still name their variables, so a spec can be compared, printed and stored without
//! reading a secret. mcp-config reads specs and resolves them into an [`Endpoint`](crate::Endpoint).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::json::raw::RawJson;
use crate::server::credentials::ClientCredentials;
use crate::server::exposure::{Exposure, NameClass, NamePolicy};
use crate::server::id::ServerId;
use crate::server::limits::Limits;
use crate::server::origin::Origin;
use crate::server::secret::Secret;
use crate::server::sharing::Sharing;

/// The specification of one server.
///
/// `Debug` prints only the keys of `metadata`, because unknown content may contain secrets.
#[derive(derive_more::Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerSpec {
    /// The server's name.
    pub id: ServerId,
    /// The user's description.
    pub description: Option<String>,
    /// The source of the entry.
    pub origin: Origin,
    /// The transport.
    pub transport: TransportSpec,
    /// Time and size limits.
    pub limits: Limits,
    /// The lists that are requested after the connection.
    pub discovery: Discovery,
    /// Which of its tools, prompts and resources are exposed, under which names.
    pub exposure: Exposure,
    /// Who may use one running instance.
    pub sharing: Sharing,
    /// Configuration that is passed through to the server (HD-028, HD-FR011).
    pub config: Option<Passthrough>,
    /// What the entry says to others, unchanged: `server` of a HoloDeck item, `_meta` of an ACP entry, unknown keys.
    #[debug("{:?}", metadata.keys())]
    pub metadata: BTreeMap<String, RawJson>,
}

impl ServerSpec {
    /// Creates a spec with the defaults of all other fields: nothing is filtered, invalid names are qualified
    /// ([`NamePolicy::Qualify`]), and sharing is [`Sharing::Auto`].
    pub fn new(id: ServerId, origin: Origin, transport: TransportSpec) -> ServerSpec {
        ServerSpec {
            id,
            description: None,
            origin,
            transport,
            limits: Limits::default(),
            discovery: Discovery::default(),
            exposure: Exposure::all(NamePolicy::Qualify { class: NameClass::Strict }),
            sharing: Sharing::Auto,
            config: None,
            metadata: BTreeMap::new(),
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "readers and writers name every transport, so that none is forgotten"
)]
pub enum TransportSpec {
    /// A child process that communicates over its standard streams.
    Stdio(StdioSpec),
    /// HTTP with server-sent events as of 2024-11-05.
    Sse(UrlSpec),
    /// WebSocket, subprotocol `mcp`.
    WebSocket(UrlSpec),
    /// Streamable HTTP.
    Http(UrlSpec),
}

impl TransportSpec {
    /// Returns the kind of transport.
    pub fn kind(&self) -> TransportKind {
        match self {
            TransportSpec::Stdio(_) => TransportKind::Stdio,
            TransportSpec::Sse(_) => TransportKind::Sse,
            TransportSpec::WebSocket(_) => TransportKind::WebSocket,
            TransportSpec::Http(_) => TransportKind::Http,
        }
    }
}

/// The kinds of transports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
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
        self.into()
    }
}

/// A child process, unresolved.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StdioSpec {
    /// The program: a name looked up on `PATH`, or a path. Never passed to a shell.
    pub command: String,
    /// The arguments.
    pub args: Vec<ConfigValue>,
    /// Environment variables, in file order. They override all others.
    pub env: Vec<(String, ConfigValue)>,
    /// A `.env` file, relative to the configuration file. `env` overrides its variables.
    pub env_file: Option<ConfigValue>,
    /// The inherited part of the host's environment.
    pub inherit: EnvInherit,
    /// The working directory, relative to the configuration file.
    pub cwd: Option<String>,
    /// WHATWG label of the encoding of the standard streams; `utf-8` by default.
    pub encoding: String,
}

impl StdioSpec {
    /// Creates a spec without arguments and variables, with UTF-8 and the safe part of the environment
    /// ([`EnvInherit::Safe`]).
    pub fn new(command: impl Into<String>) -> StdioSpec {
        StdioSpec {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            env_file: None,
            inherit: EnvInherit::Safe,
            cwd: None,
            encoding: "utf-8".to_owned(),
        }
    }
}

/// A server at a URL, unresolved.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UrlSpec {
    /// The URL.
    pub url: ConfigValue,
    /// Headers of each request, in file order.
    pub headers: Vec<(String, ConfigValue)>,
    /// A session id to use from the first request on, without `initialize` (Dominds' `sessionId`).
    pub session_id: Option<ConfigValue>,
    /// The credentials with which the host obtains tokens.
    pub client_credentials: Option<ClientCredentials<ConfigValue>>,
    /// End the session with `DELETE` on close.
    pub terminate_on_close: bool,
    /// Whether the transport of 2024-11-05 is tried if the server does not support Streamable HTTP.
    pub sse_fallback: SseFallback,
}

impl UrlSpec {
    /// Creates a spec without headers and credentials, which ends its session on close.
    pub fn new(url: ConfigValue) -> UrlSpec {
        UrlSpec {
            url,
            headers: Vec::new(),
            session_id: None,
            client_credentials: None,
            terminate_on_close: true,
            sse_fallback: SseFallback::Never,
        }
    }
}

/// Whether HTTP with server-sent events of 2024-11-05 is tried at the same URL if Streamable HTTP finds no server
/// there (DIA-08). Applies to [`TransportSpec::Http`] only.
///
/// Allowed if a configuration gives a URL without a transport. An explicit `http` or `sse` is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(
    clippy::exhaustive_enums,
    reason = "readers and writers name every value, so that none is forgotten"
)]
pub enum SseFallback {
    /// Streamable HTTP first, then server-sent events.
    Allowed,
    /// Streamable HTTP only.
    #[default]
    Never,
}

/// A configuration value that may refer to variables.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "readers and writers name every form, so that none is forgotten")]
pub enum ConfigValue {
    /// Literal text.
    Literal(Secret),
    /// A variable of the host's environment, with a prefix.
    HostEnv {
        /// The variable's name.
        name: String,
        /// The prefix of the value; usually empty.
        prefix: Secret,
    },
    /// Text with `${VAR}` references.
    Template(Vec<TemplatePart>),
}

impl ConfigValue {
    /// Creates a literal value.
    pub fn literal(text: impl Into<String>) -> ConfigValue {
        ConfigValue::Literal(Secret::new(text))
    }
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "readers and writers name every form, so that none is forgotten")]
pub enum TemplatePart {
    /// Literal text.
    Text(Secret),
    /// A variable.
    Variable(String),
    /// A variable, or a default if it is unset or empty (`${NAME:-text}`).
    VariableOr {
        /// The variable's name.
        name: String,
        /// The default.
        default: Secret,
    },
    /// The input with this id, which the user is asked for (`${input:id}`).
    Input(String),
    /// The content of the file at this path, trimmed (`${file:path}`). A relative path starts at the folder of the
    /// configuration file.
    File(String),
}

/// The part of the host's environment that a child inherits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "readers and writers name every value, so that none is forgotten"
)]
pub enum EnvInherit {
    /// Nothing.
    None,
    /// What a program needs to run: see [`EnvInherit::inherits`].
    Safe,
    /// Everything.
    All,
}

impl EnvInherit {
    /// Returns whether a child inherits the variable `name`.
    ///
    /// The safe set: locations of programs and home, user and shell, terminal, temporary folder, language, XDG
    /// folders, settings of npm, uv and docker, proxies and certificate authorities, and what Windows needs.
    pub fn inherits(self, name: &str) -> bool {
        const NAMES: &str = "PATH HOME USER LOGNAME SHELL TERM TMPDIR LANG HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY \
            http_proxy https_proxy all_proxy no_proxy SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE \
            CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS PIP_CERT";
        const PREFIXES: &str = "LC_ XDG_ DOCKER_ npm_config_ NPM_CONFIG_ UV_";
        // Windows compares these names without case. They do not exist elsewhere, so no platform switch is needed.
        const WINDOWS: &str = "APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA NUMBER_OF_PROCESSORS OS PATHEXT \
            PROCESSOR_ARCHITECTURE PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) SYSTEMDRIVE SYSTEMROOT TEMP \
            TMP USERDOMAIN USERNAME USERPROFILE WINDIR";
        match self {
            EnvInherit::None => false,
            EnvInherit::All => true,
            EnvInherit::Safe => {
                NAMES.split(' ').any(|known| known == name)
                    || PREFIXES.split(' ').any(|prefix| name.starts_with(prefix))
                    || WINDOWS.split(' ').any(|known| known.eq_ignore_ascii_case(name))
            }
        }
    }
}

/// The lists that are requested after the connection (HD-029, HD-030). Items of other lists cannot be called, and the
/// error of such a call says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discovery {
    /// Request the tools.
    pub tools: bool,
    /// Request the prompts.
    pub prompts: bool,
}

impl Default for Discovery {
    fn default() -> Discovery {
        Discovery { tools: true, prompts: true }
    }
}

/// Opaque configuration for the server. It may contain secrets: `Debug` prints none of it.
#[derive(derive_more::Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "readers and writers name every form, so that none is forgotten")]
pub enum Passthrough {
    /// Passed through unchanged.
    #[debug("Literal(***)")]
    Literal(RawJson),
    /// Its strings may contain `${VAR}`.
    #[debug("Template(***)")]
    Template(RawJson),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_environment_excludes_credentials() {
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

//! The specification of a server as its configuration has it, in any dialect.
//!
//! Its values are not resolved: they contain the names of variables, so a specification can be compared, printed and
//! stored without reading a secret. mcp-config reads it, and resolves it to an [`Endpoint`](crate::Endpoint).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::json::raw::RawJson;
use crate::server::call_rule::CallRules;
use crate::server::credentials::ClientCredentials;
use crate::server::exposure::{Exposure, NameClass, NamePolicy};
use crate::server::id::ServerId;
use crate::server::limits::Limits;
use crate::server::origin::SpecOrigin;
use crate::server::sandbox::Sandbox;
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
    /// The description that the user wrote.
    pub description: Option<String>,
    /// The file of the entry, its dialect and its form.
    pub origin: SpecOrigin,
    /// The transport.
    pub transport: TransportSpec,
    /// Time and size limits.
    pub limits: Limits,
    /// The lists that are requested after the connection.
    pub discovery: Discovery,
    /// The rules for which tools, prompts and resources are exposed, and under which names.
    pub exposure: Exposure,
    /// The rules for calls of its tools.
    pub calls: CallRules,
    /// The callers that may use one running instance.
    pub sharing: Sharing,
    /// Configuration that is passed through to the server (HD-028, HD-FR011).
    pub config: Option<Passthrough>,
    /// Members of the entry that the host only keeps: `server` of a HoloDeck item, `_meta` of an ACP entry, unknown
    /// keys.
    #[debug("{:?}", metadata.keys())]
    pub metadata: BTreeMap<String, RawJson>,
}

impl ServerSpec {
    /// Creates a spec with the defaults of all other fields: nothing is filtered, invalid names are qualified
    /// ([`NamePolicy::Qualify`]), and sharing is [`Sharing::Auto`].
    pub fn new(id: ServerId, origin: SpecOrigin, transport: TransportSpec) -> ServerSpec {
        ServerSpec {
            id,
            description: None,
            origin,
            transport,
            limits: Limits::default(),
            discovery: Discovery::default(),
            exposure: Exposure::all(NamePolicy::Qualify { class: NameClass::Strict }),
            calls: CallRules::default(),
            sharing: Sharing::Auto,
            config: None,
            metadata: BTreeMap::new(),
        }
    }
}

/// The transport of a server, with its settings.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "readers and writers name every transport, so that none is forgotten"
)]
pub enum TransportSpec {
    /// A child process that communicates over its standard streams.
    Stdio(StdioSpec),
    /// HTTP with server-sent events, the transport of 2024-11-05.
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

/// The kind of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum TransportKind {
    /// A child process' standard streams.
    Stdio,
    /// HTTP with server-sent events, the transport of 2024-11-05.
    Sse,
    /// WebSocket.
    WebSocket,
    /// Streamable HTTP.
    Http,
}

impl TransportKind {
    /// Returns `stdio`, `sse`, `websocket` or `http`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A server that the host starts as a child process. Its values are not resolved.
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
    pub inherit: EnvInheritance,
    /// The working directory, relative to the configuration file.
    pub cwd: Option<String>,
    /// WHATWG label of the encoding of the standard streams; `utf-8` by default.
    pub encoding: String,
    /// The sandbox of its processes. `None` if none is stated; then there is none.
    pub sandbox: Option<Sandbox>,
}

impl StdioSpec {
    /// Creates a spec without arguments and variables, with UTF-8 and the safe part of the environment
    /// ([`EnvInheritance::Safe`]).
    pub fn new(command: impl Into<String>) -> StdioSpec {
        StdioSpec {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            env_file: None,
            inherit: EnvInheritance::Safe,
            cwd: None,
            encoding: "utf-8".to_owned(),
            sandbox: None,
        }
    }
}

/// A server at a URL. Its values are not resolved.
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
    /// Whether the session is ended with `DELETE` on close.
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

/// Whether the transport of 2024-11-05 (HTTP with server-sent events) is tried at the same URL if Streamable HTTP finds
/// no server there (DIA-08). Applies to [`TransportSpec::Http`] only.
///
/// It is allowed if a configuration has a URL and names no transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(
    clippy::exhaustive_enums,
    reason = "readers and writers name every value, so that none is forgotten"
)]
pub enum SseFallback {
    /// Streamable HTTP is tried first, then the transport of 2024-11-05.
    Allowed,
    /// Only Streamable HTTP is tried.
    #[default]
    Never,
}

/// A configuration value that may refer to variables.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "readers and writers name every form, so that none is forgotten")]
pub enum ConfigValue {
    /// Literal text.
    Literal(Secret),
    /// The value of a variable of the host's environment, behind a prefix such as `Bearer `.
    HostEnv {
        /// The variable's name.
        name: String,
        /// The prefix, which is usually empty.
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

    /// Returns the text of a literal value; a reference has none.
    pub fn as_literal(&self) -> Option<&str> {
        match self {
            ConfigValue::Literal(text) => Some(text.expose()),
            ConfigValue::HostEnv { .. } | ConfigValue::Template(_) => None,
        }
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
    /// A variable that stays as its reference `$NAME` if it is not set.
    OptionalVariable(String),
    /// A variable, and a default for an unset or empty one (`${NAME:-text}`).
    VariableOr {
        /// The variable's name.
        name: String,
        /// The default.
        default: Secret,
    },
    /// The input with this id, which the user enters (`${input:id}`).
    Input(String),
    /// The content of the file at this path, trimmed (`${file:path}`). A relative path starts at the folder of the
    /// configuration file.
    File(String),
    /// The secret of the user with this name (`${secret:NAME}`).
    Secret(String),
}

/// The part of the host's environment that a child inherits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "readers and writers name every value, so that none is forgotten"
)]
pub enum EnvInheritance {
    /// Nothing.
    None,
    /// What a program needs to run: see [`EnvInheritance::inherits`].
    Safe,
    /// Everything.
    All,
}

impl EnvInheritance {
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
            EnvInheritance::None => false,
            EnvInheritance::All => true,
            EnvInheritance::Safe => {
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
    /// Whether the tools are requested.
    pub tools: bool,
    /// Whether the prompts are requested.
    pub prompts: bool,
}

impl Default for Discovery {
    fn default() -> Discovery {
        Discovery { tools: true, prompts: true }
    }
}

/// JSON in a configuration that is sent to the server unchanged (`MCP_CONFIG`, `experimental.config`). It may contain
/// secrets, so `Debug` prints none of it.
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
            assert!(EnvInheritance::Safe.inherits(name), "{name}");
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
            assert!(!EnvInheritance::Safe.inherits(name), "{name}");
            assert!(EnvInheritance::All.inherits(name) && !EnvInheritance::None.inherits(name));
        }
    }
}

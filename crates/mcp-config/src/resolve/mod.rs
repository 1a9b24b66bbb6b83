//! Resolves a server's spec to an endpoint: replaces variables, reads env files, and checks the resulting values.
//!
//! The caller supplies environment and files ([`ResolveContext`]). Every missing variable is reported. No message
//! contains a replaced value.

pub(crate) mod context;
pub(crate) mod dotenv;
mod secrets;
pub(crate) mod server_secrets;
mod values;
mod workspace;

use std::fmt;
use std::time::Duration;

use mcp_host_model::{
    ClientCredentials, ClientKey, ConfigValue, Endpoint, Limits, Passthrough, Sandbox, SandboxPreset, Secret,
    ServerSpec, StartLimit, StdioEndpoint, StdioSpec, TransportKind, TransportSpec, UrlEndpoint, UrlSpec,
};

use crate::diagnostic::{CheckError, Code};
use crate::dialect::checks;
use crate::dialect::lowering::{self, CONFIG_VARIABLE};
use crate::syntax::child_pointer;
use crate::syntax::template::ReferenceRule;
use context::{ResolveContext, ResolveError};
use server_secrets::ServerSecrets;
use values::Resolver;

/// A server to connect to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResolvedServer {
    /// The spec, with variables replaced in texts such as the description.
    pub spec: ServerSpec,
    /// The endpoint. A child's environment includes `MCP_CONFIG`.
    pub endpoint: Endpoint,
    /// The configuration for the server, as JSON with variables replaced; `None` if empty.
    pub config: Option<Secret>,
    /// Whether a host starts it only after the user approved it.
    pub needs_approval: bool,
    /// The user's secrets that its entry refers to.
    pub secrets: ServerSecrets,
}

impl ResolvedServer {
    /// A server without configuration to pass through, which needs no approval.
    pub fn new(spec: ServerSpec, endpoint: Endpoint) -> ResolvedServer {
        ResolvedServer {
            spec,
            endpoint,
            config: None,
            needs_approval: false,
            secrets: ServerSecrets::default(),
        }
    }
}

/// Every reason why a spec cannot be resolved, in file order. Invariant: at least one.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Deref, derive_more::IntoIterator)]
pub struct ResolveErrors(#[deref(forward)] Vec<ResolveError>);

impl fmt::Display for ResolveErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for ResolveErrors {}

/// Resolves a spec, or returns every error.
pub fn resolve(spec: &ServerSpec, context: &ResolveContext<'_>) -> Result<ResolvedServer, ResolveErrors> {
    let mut resolver = Resolver::new(spec, context);
    let mut resolved = spec.clone();
    resolver.resolve_without_secrets(|resolver| resolver.resolve_texts(&mut resolved));
    let config = spec.config.as_ref().and_then(|it| resolve_config(it, &mut resolver));
    let endpoint = match &spec.transport {
        TransportSpec::Stdio(it) => resolve_stdio(it, config.as_ref(), &mut resolver, context),
        TransportSpec::Sse(it) => resolve_url(it, TransportKind::Sse, &mut resolver).map(Endpoint::Sse),
        TransportSpec::WebSocket(it) => {
            resolve_url(it, TransportKind::WebSocket, &mut resolver).map(Endpoint::WebSocket)
        }
        TransportSpec::Http(it) => resolve_url(it, TransportKind::Http, &mut resolver).map(Endpoint::Http),
    };
    match endpoint {
        Some(endpoint) if resolver.errors.is_empty() => {
            apply_start_limit(&mut resolved, context);
            let secrets = resolver.secrets.into_server_secrets();
            Ok(ResolvedServer { spec: resolved, endpoint, config, needs_approval: false, secrets })
        }
        _ => Err(ResolveErrors(resolver.errors)),
    }
}

/// Sets the startup timeout from the environment variable that has this meaning for the file's program, such as
/// `MCP_TIMEOUT`, unless the entry sets a timeout.
fn apply_start_limit(server: &mut ServerSpec, context: &ResolveContext<'_>) {
    let Some(StartLimit::Variable(name)) = server.origin.start_limit else { return };
    if server.limits.startup != Limits::default().startup {
        return;
    }
    let milliseconds = (context.variable)(name).and_then(|text| text.trim().parse::<u64>().ok());
    if let Some(milliseconds) = milliseconds.filter(|it| (1..=MAX_START_MILLISECONDS).contains(it)) {
        server.limits.startup = Duration::from_millis(milliseconds);
    }
}

/// The longest start that a variable may allow: a day.
const MAX_START_MILLISECONDS: u64 = 24 * 60 * 60 * 1000;

/// Resolves the configuration for the server; `None` if it is empty.
fn resolve_config(config: &Passthrough, resolver: &mut Resolver<'_>) -> Option<Secret> {
    let text = match config {
        Passthrough::Literal(json) => json.as_str().to_owned(),
        Passthrough::Template(json) => {
            let pointer = resolver.pointer(&["config"]);
            values::resolve_json(json, &pointer, resolver)
        }
    };
    (text != "{}").then(|| Secret::new(text))
}

/// Resolves a child process. `None` if there are errors, which are in the resolver.
fn resolve_stdio(
    spec: &StdioSpec,
    config: Option<&Secret>,
    resolver: &mut Resolver<'_>,
    context: &ResolveContext<'_>,
) -> Option<Endpoint> {
    let StdioSpec { command, args, env, env_file, inherit, cwd, encoding, sandbox, .. } = spec;
    let errors_before = resolver.errors.len();
    let mut arguments = Vec::new();
    for (index, value) in args.iter().enumerate() {
        let pointer = match index.checked_sub(resolver.origin.implied_args) {
            Some(index) => resolver.pointer(&["args", &index.to_string()]),
            None => resolver.pointer(&["server"]),
        };
        let argument = resolver.resolve_without_secrets(|resolver| {
            resolver.resolve_checked(value, &pointer, "args", checks::check_argument)
        });
        arguments.extend(argument);
    }
    let mut variables = Vec::new();
    if let Some(value) = env_file {
        let pointer = resolver.pointer(&[resolver.env_file_key]);
        let path =
            resolver.resolve_without_secrets(|resolver| resolver.resolve_value(value, &pointer, "envFile"));
        if let Some(path) = path {
            variables = read_env_file(path.expose(), &pointer, resolver, context);
        }
    }
    for (name, value) in env {
        let pointer = resolver.pointer(&["env", name]);
        let value =
            resolver.resolve_checked(value, &pointer, &format!("env.{name}"), checks::check_env_value);
        variables.extend(value.map(|it| (name.clone(), it)));
    }
    variables.extend(config.map(|it| (CONFIG_VARIABLE.to_owned(), it.clone())));
    let pointer = resolver.pointer(&["encoding"]);
    let encoding = resolver.resolve_without_secrets(|resolver| resolver.resolve_text(encoding, &pointer));
    if let Err(error) = checks::check_encoding(&encoding) {
        resolver.report_check_error(error, &pointer);
    }
    let command = {
        let pointer = resolver.pointer(&["command"]);
        resolver.resolve_without_secrets(|resolver| resolver.resolve_text(command, &pointer))
    };
    let cwd = match cwd {
        Some(cwd) => {
            let pointer = resolver.pointer(&["cwd"]);
            let folder = resolver.resolve_without_secrets(|resolver| resolver.resolve_text(cwd, &pointer));
            Some(resolver.workspace().join(folder))
        }
        None => resolver.start_folder(),
    };
    let sandbox = sandbox.as_ref().and_then(|it| resolver.resolve_sandbox(it));
    (resolver.errors.len() == errors_before).then(|| {
        Endpoint::Stdio({
            let mut endpoint = StdioEndpoint::new(command);
            endpoint.args = arguments;
            endpoint.env = keep_last_values(variables);
            endpoint.inherit = *inherit;
            endpoint.cwd = cwd;
            endpoint.encoding = encoding;
            endpoint.sandbox = sandbox;
            endpoint
        })
    })
}

/// The variables of an env file; reports one that cannot be read.
fn read_env_file(
    path: &str,
    pointer: &str,
    resolver: &mut Resolver<'_>,
    context: &ResolveContext<'_>,
) -> Vec<(String, Secret)> {
    match (context.read_file)(&resolver.workspace().join(path)) {
        Ok(text) => match resolver.reference_rule {
            ReferenceRule::Editor
            | ReferenceRule::EditorAndShell
            | ReferenceRule::EditorAndOptionalShell
            | ReferenceRule::Braces => dotenv::parse_editor_env_file(&text),
            ReferenceRule::Literal
            | ReferenceRule::Secrets
            | ReferenceRule::Expand
            | ReferenceRule::ExpandWithFolder => dotenv::parse_env_file(&text),
        },
        Err(why) => {
            let message = format!("cannot read the env file: {why}");
            let help = match resolver.reference_rule {
                _ if path.starts_with('~') => "`~` is not replaced here: write the path of the folder",
                ReferenceRule::Editor
                | ReferenceRule::EditorAndShell
                | ReferenceRule::EditorAndOptionalShell
                | ReferenceRule::Braces => "a relative path starts at the workspace",
                ReferenceRule::Literal
                | ReferenceRule::Secrets
                | ReferenceRule::Expand
                | ReferenceRule::ExpandWithFolder => {
                    "a relative path starts at the folder of the configuration file"
                }
            };
            resolver.errors.push(ResolveError::new(Code::UnreadableEnvFile, message, pointer, help));
            Vec::new()
        }
    }
}

/// The last value of each name, at the position of the first.
fn keep_last_values(variables: Vec<(String, Secret)>) -> Vec<(String, Secret)> {
    let mut positions = std::collections::HashMap::new();
    let mut res: Vec<(String, Secret)> = Vec::with_capacity(variables.len());
    for (name, value) in variables {
        match positions.get(&name) {
            Some(position) => {
                let entry: &mut (String, Secret) = &mut res[*position];
                entry.1 = value;
            }
            None => {
                positions.insert(name.clone(), res.len());
                res.push((name, value));
            }
        }
    }
    res
}

/// Resolves a server with a URL. `None` if there are errors, which are in the resolver.
fn resolve_url(spec: &UrlSpec, kind: TransportKind, resolver: &mut Resolver<'_>) -> Option<UrlEndpoint> {
    let UrlSpec { url, headers, session_id, client_credentials, terminate_on_close, sse_fallback, .. } = spec;
    let errors_before = resolver.errors.len();
    let key = resolver.origin.url_key;
    let pointer = resolver.pointer(&[key]);
    let rule = lowering::url_rule(kind, resolver.url_policy);
    let parsed = match resolver.resolve_url_value(url, &pointer, key) {
        Some(text) => match checks::parse_url(text.expose(), rule) {
            Ok(url) => Some(url),
            Err(error) => {
                resolver.report_check_error(error, &pointer);
                None
            }
        },
        None => None,
    };
    let mut res = Vec::new();
    for (name, value) in headers {
        let pointer = resolver.pointer(&["headers", name]);
        let value =
            resolver.resolve_checked(value, &pointer, &format!("headers.{name}"), checks::check_header_value);
        res.extend(value.map(|it| (name.clone(), it)));
    }
    let session_id = session_id.as_ref().and_then(|it| {
        let pointer = resolver.pointer(&["sessionId"]);
        resolver.resolve_checked(it, &pointer, "sessionId", checks::check_header_value)
    });
    let client_credentials =
        client_credentials.as_ref().and_then(|it| resolver.resolve_client_credentials(it));
    if resolver.errors.len() > errors_before {
        return None;
    }
    Some({
        let mut endpoint = UrlEndpoint::new(parsed?);
        endpoint.headers = res;
        endpoint.session_id = session_id;
        endpoint.client_credentials = client_credentials;
        endpoint.terminate_on_close = *terminate_on_close;
        endpoint.sse_fallback = *sse_fallback;
        endpoint
    })
}

impl Resolver<'_> {
    fn resolve_client_credentials(
        &mut self,
        credentials: &ClientCredentials<ConfigValue>,
    ) -> Option<ClientCredentials<Secret>> {
        let ClientCredentials { grant, client_id, key, scopes, issuer, .. } = credentials;
        let (name, make): (_, fn(Secret) -> ClientKey<Secret>) = match key {
            ClientKey::Secret(_) => ("clientSecret", ClientKey::Secret),
            ClientKey::PrivateKey(_) => ("privateKey", ClientKey::PrivateKey),
        };
        let pointer = self.pointer(&["auth", name]);
        let value = self.resolve_value(key.value(), &pointer, &format!("auth.{name}"))?;
        let mut resolved = ClientCredentials::new(*grant, client_id, make(value), issuer);
        resolved.scopes = scopes.clone();
        Some(resolved)
    }

    /// Resolves the paths of a sandbox: they start at the workspace, or at the home folder for `~/`. `None` if it is
    /// off.
    fn resolve_sandbox(&mut self, sandbox: &Sandbox) -> Option<Sandbox> {
        if sandbox.preset == SandboxPreset::Off {
            return None;
        }
        let pointer = self.pointer(&["sandbox"]);
        let mut res = sandbox.clone();
        let Sandbox { read, write, deny_read, deny_write, .. } = &mut res;
        for path in [read, write, deny_read, deny_write].into_iter().flatten() {
            let text = self.resolve_without_secrets(|resolver| resolver.resolve_text(path, &pointer));
            let in_home = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
            let resolved = match in_home.zip(self.home()) {
                Some((rest, home)) => format!("{home}{rest}").into(),
                None => self.workspace().join(text),
            };
            *path = resolved.to_string_lossy().into_owned();
        }
        Some(res)
    }

    fn report_check_error(&mut self, error: CheckError, pointer: &str) {
        let CheckError { code, message, help } = error;
        self.errors.push(ResolveError::new(code, message, pointer, help));
    }

    /// The pointer to a value of the server.
    fn pointer(&self, keys: &[&str]) -> String {
        keys.iter().fold(self.origin.pointer.clone(), |res, key| child_pointer(&res, key))
    }
}

//! Resolves a server's spec to an endpoint: replaces variables, reads env files, and checks the resulting values.
//!
//! The caller supplies environment and files ([`ResolveContext`]). Every missing variable is reported. No message
//! contains a replaced value.

pub(crate) mod context;
pub(crate) mod dotenv;
mod values;

use std::fmt;

use mcp_host_model::{
    ClientCredentials, ClientKey, ConfigValue, Endpoint, Passthrough, Secret, ServerSpec, StdioEndpoint,
    StdioSpec, TransportKind, TransportSpec, UrlEndpoint, UrlSpec,
};

use crate::diagnostic::{CheckError, Code};
use crate::dialect::checks;
use crate::dialect::lowering::{self, CONFIG_VARIABLE};
use crate::syntax::child;
use crate::syntax::template::ReferenceRule;
use context::{ResolveContext, ResolveError};
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
}

impl ResolvedServer {
    /// A server without configuration to pass through.
    pub fn new(spec: ServerSpec, endpoint: Endpoint) -> ResolvedServer {
        ResolvedServer { spec, endpoint, config: None }
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
    resolver.texts(&mut resolved);
    let config = spec.config.as_ref().and_then(|it| config(it, &mut resolver));
    let endpoint = match &spec.transport {
        TransportSpec::Stdio(it) => stdio(it, config.as_ref(), &mut resolver, context),
        TransportSpec::Sse(it) => url(it, TransportKind::Sse, &mut resolver).map(Endpoint::Sse),
        TransportSpec::WebSocket(it) => {
            url(it, TransportKind::WebSocket, &mut resolver).map(Endpoint::WebSocket)
        }
        TransportSpec::Http(it) => url(it, TransportKind::Http, &mut resolver).map(Endpoint::Http),
    };
    match endpoint {
        Some(endpoint) if resolver.errors.is_empty() => {
            Ok(ResolvedServer { spec: resolved, endpoint, config })
        }
        _ => Err(ResolveErrors(resolver.errors)),
    }
}

fn config(config: &Passthrough, resolver: &mut Resolver<'_>) -> Option<Secret> {
    let text = match config {
        Passthrough::Literal(json) => json.as_str().to_owned(),
        Passthrough::Template(json) => {
            let pointer = resolver.pointer(&["config"]);
            values::resolve_json(json, &pointer, resolver)
        }
    };
    (text != "{}").then(|| Secret::new(text))
}

fn stdio(
    spec: &StdioSpec,
    config: Option<&Secret>,
    resolver: &mut Resolver<'_>,
    context: &ResolveContext<'_>,
) -> Option<Endpoint> {
    let StdioSpec { command, args, env, env_file, inherit, cwd, encoding, .. } = spec;
    let before = resolver.errors.len();
    let mut arguments = Vec::new();
    for (index, value) in args.iter().enumerate() {
        let pointer = match index.checked_sub(resolver.origin.implied_args) {
            Some(index) => resolver.pointer(&["args", &index.to_string()]),
            None => resolver.pointer(&["server"]),
        };
        arguments.extend(resolver.checked_value(value, &pointer, "args", checks::check_argument));
    }
    let mut variables = Vec::new();
    if let Some(value) = env_file {
        let pointer = resolver.pointer(&[resolver.env_file_key]);
        if let Some(path) = resolver.value(value, &pointer, "envFile") {
            variables = read_env_file(path.expose(), &pointer, resolver, context);
        }
    }
    for (name, value) in env {
        let pointer = resolver.pointer(&["env", name]);
        let value = resolver.checked_value(value, &pointer, &format!("env.{name}"), checks::check_env_value);
        variables.extend(value.map(|it| (name.clone(), it)));
    }
    variables.extend(config.map(|it| (CONFIG_VARIABLE.to_owned(), it.clone())));
    let pointer = resolver.pointer(&["encoding"]);
    let encoding = resolver.text(encoding, &pointer);
    if let Err(error) = checks::check_encoding(&encoding) {
        resolver.report_check(error, &pointer);
    }
    let command = {
        let pointer = resolver.pointer(&["command"]);
        resolver.text(command, &pointer)
    };
    let cwd = cwd.as_ref().map(|it| {
        let pointer = resolver.pointer(&["cwd"]);
        resolver.workspace().join(resolver.text(it, &pointer))
    });
    (resolver.errors.len() == before).then(|| {
        Endpoint::Stdio({
            let mut endpoint = StdioEndpoint::new(command);
            endpoint.args = arguments;
            endpoint.env = last_of_each(variables);
            endpoint.inherit = *inherit;
            endpoint.cwd = cwd;
            endpoint.encoding = encoding;
            endpoint
        })
    })
}

fn read_env_file(
    path: &str,
    pointer: &str,
    resolver: &mut Resolver<'_>,
    context: &ResolveContext<'_>,
) -> Vec<(String, Secret)> {
    match (context.read_file)(&resolver.workspace().join(path)) {
        Ok(text) => match resolver.variables {
            ReferenceRule::Editor | ReferenceRule::EditorAndShell | ReferenceRule::Opencode => {
                dotenv::parse_editor_env_file(&text)
            }
            ReferenceRule::Literal | ReferenceRule::Expand | ReferenceRule::ExpandWithFolder => {
                dotenv::parse_env_file(&text)
            }
        },
        Err(why) => {
            let message = format!("cannot read the env file: {why}");
            let help = match resolver.variables {
                ReferenceRule::Editor | ReferenceRule::EditorAndShell | ReferenceRule::Opencode => {
                    "a relative path starts at the workspace"
                }
                ReferenceRule::Literal | ReferenceRule::Expand | ReferenceRule::ExpandWithFolder => {
                    "a relative path starts at the folder of the configuration file"
                }
            };
            resolver.errors.push(ResolveError::new(Code::UnreadableEnvFile, message, pointer, help));
            Vec::new()
        }
    }
}

/// The last value of each name, at the position of the first.
fn last_of_each(variables: Vec<(String, Secret)>) -> Vec<(String, Secret)> {
    let mut places = std::collections::HashMap::new();
    let mut res: Vec<(String, Secret)> = Vec::with_capacity(variables.len());
    for (name, value) in variables {
        match places.get(&name) {
            Some(place) => {
                let entry: &mut (String, Secret) = &mut res[*place];
                entry.1 = value;
            }
            None => {
                places.insert(name.clone(), res.len());
                res.push((name, value));
            }
        }
    }
    res
}

fn url(spec: &UrlSpec, kind: TransportKind, resolver: &mut Resolver<'_>) -> Option<UrlEndpoint> {
    let UrlSpec { url, headers, session_id, client_credentials, terminate_on_close, sse_fallback, .. } = spec;
    let before = resolver.errors.len();
    let key = resolver.origin.url_key;
    let pointer = resolver.pointer(&[key]);
    let rule = lowering::url_rule(kind, resolver.urls);
    let parsed = match resolver.value(url, &pointer, key) {
        Some(text) => match checks::parse_url(text.expose(), rule) {
            Ok(url) => Some(url),
            Err(error) => {
                resolver.report_check(error, &pointer);
                None
            }
        },
        None => None,
    };
    let mut res = Vec::new();
    for (name, value) in headers {
        let pointer = resolver.pointer(&["headers", name]);
        let value =
            resolver.checked_value(value, &pointer, &format!("headers.{name}"), checks::check_header_value);
        res.extend(value.map(|it| (name.clone(), it)));
    }
    let session_id = session_id.as_ref().and_then(|it| {
        let pointer = resolver.pointer(&["sessionId"]);
        resolver.checked_value(it, &pointer, "sessionId", checks::check_header_value)
    });
    let client_credentials = client_credentials.as_ref().and_then(|it| resolver.client_credentials(it));
    if resolver.errors.len() > before {
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
    fn client_credentials(
        &mut self,
        credentials: &ClientCredentials<ConfigValue>,
    ) -> Option<ClientCredentials<Secret>> {
        let ClientCredentials { grant, client_id, key, scopes, issuer, .. } = credentials;
        let (name, make): (_, fn(Secret) -> ClientKey<Secret>) = match key {
            ClientKey::Secret(_) => ("clientSecret", ClientKey::Secret),
            ClientKey::PrivateKey(_) => ("privateKey", ClientKey::PrivateKey),
        };
        let pointer = self.pointer(&["auth", name]);
        let value = self.value(key.value(), &pointer, &format!("auth.{name}"))?;
        let mut resolved = ClientCredentials::new(*grant, client_id, make(value));
        (resolved.scopes, resolved.issuer) = (scopes.clone(), issuer.clone());
        Some(resolved)
    }

    fn report_check(&mut self, error: CheckError, pointer: &str) {
        let CheckError { code, message, help } = error;
        self.errors.push(ResolveError::new(code, message, pointer, help));
    }

    fn pointer(&self, keys: &[&str]) -> String {
        keys.iter().fold(self.origin.pointer.clone(), |res, key| child(&res, key))
    }
}

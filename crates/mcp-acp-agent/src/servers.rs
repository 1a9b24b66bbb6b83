//! Conversion of a session's servers into a host's servers: those of the client, then the agent's own.
//!
//! Each server's program and secrets are kept, for its error messages.

use std::collections::HashMap;
use std::path::Path;

use mcp_host_acp::{
    AcpTransport, RequestDiagnostic, RequestWarning, ServerTimeouts, SessionServer, ValidatedRequest,
    WarningEffect,
};
use mcp_host_config::{ResolveContext, ResolvedServer, resolve};
use mcp_host_model::{
    Endpoint, EnvInheritance, ErrorKind, Limits, Passthrough, Profile, Secret, ServerId, ServerSpec, Sharing,
    SpecOrigin, StdioEndpoint, StdioSpec, TransportSpec,
};
use mcp_host_runtime::{DesiredServers, FailedServer, HostError};
use mcp_host_transport::secret_parts;
use serde::{Deserialize, Serialize};

/// Where a server of a session comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ServerSource {
    /// The request of the client.
    Client,
    /// The agent's own configuration ([`ConnectOptions::own_servers`](crate::ConnectOptions::own_servers)).
    Agent,
}

/// A server, as it is described in its status and errors.
#[derive(Clone)]
pub(crate) struct ServerDescription {
    pub(crate) name: String,
    pub(crate) source: ServerSource,
    pub(crate) transport: AcpTransport,
    /// The program, if it is a child process.
    pub(crate) command: Option<String>,
    /// Values of arguments, variables and headers, for redaction.
    pub(crate) secrets: Vec<Secret>,
}

/// The servers of a session, converted for a host.
pub(crate) struct ConvertedServers {
    /// In the order of the request; then the agent's own.
    pub(crate) descriptions: Vec<ServerDescription>,
    pub(crate) desired: DesiredServers,
    /// Server ids on the ACP connection, by server name.
    pub(crate) over_acp: HashMap<String, String>,
    /// The warnings about servers of the client that replace the agent's own.
    pub(crate) warnings: Vec<RequestWarning>,
}

/// The settings of an agent that apply to the servers of a request.
pub(crate) struct AgentSettings {
    pub(crate) limits: Limits,
    pub(crate) environment: EnvInheritance,
    /// Whether servers over the ACP connection are supported.
    pub(crate) has_over_acp: bool,
    pub(crate) own_servers: DesiredServers,
    /// Whether the host of the servers has one user, so that sharing has no meaning.
    pub(crate) has_one_user: bool,
}

/// Converts the servers of a request, and adds the agent's own. Values in ACP are literal: no environment variable is
/// substituted.
pub(crate) fn convert_servers(validated: &ValidatedRequest, settings: AgentSettings) -> ConvertedServers {
    let AgentSettings { limits, environment, has_over_acp, own_servers, has_one_user } = settings;
    let mut descriptions = Vec::new();
    let mut desired = DesiredServers::default();
    let mut over_acp = HashMap::new();
    for server in &validated.servers {
        let ServerTimeouts { startup, request, .. } = server.timeouts();
        let mut limits = limits.clone();
        limits.startup = startup.unwrap_or(limits.startup);
        limits.request = request.unwrap_or(limits.request);
        let mut description = ServerDescription {
            name: server.name().to_owned(),
            source: ServerSource::Client,
            transport: server.transport(),
            command: None,
            secrets: Vec::new(),
        };
        let resolved = match server {
            SessionServer::Spec(spec) => resolve_server(spec, &limits, environment, &validated.cwd),
            SessionServer::Extension { name, transport: AcpTransport::Acp, entry } if has_over_acp => {
                resolve_over_acp(name, entry, &limits).map(|(resolved, id)| {
                    over_acp.insert(name.clone(), id);
                    resolved
                })
            }
            SessionServer::Extension { name, transport, entry: _ } => {
                let detail = format!("this agent does not support the {transport} transport");
                Err(HostError::of_server(ErrorKind::Connection, name, detail))
            }
        };
        match resolved {
            Ok(resolved) => {
                // The endpoint of a server over ACP is a placeholder.
                if matches!(server, SessionServer::Spec(_)) {
                    describe_endpoint(&resolved.endpoint, &mut description);
                }
                desired.servers.push(resolved);
            }
            Err(error) => desired.failed.push(FailedServer { id: description.name.as_str().into(), error }),
        }
        descriptions.push(description);
    }
    let mut servers = ConvertedServers { descriptions, desired, over_acp, warnings: Vec::new() };
    servers.add_own_servers(own_servers, validated, has_one_user);
    servers
}

impl ConvertedServers {
    /// Adds the agent's own servers. A server of the client replaces the agent's of the same name, with a warning. The
    /// working directory of a child process is the session's unless its entry has one.
    fn add_own_servers(&mut self, own: DesiredServers, validated: &ValidatedRequest, has_one_user: bool) {
        for mut server in own.servers {
            let Some(description) = self.describe_own(server.spec.id.as_str(), Some(&server), validated)
            else {
                continue;
            };
            self.descriptions.push(description);
            if let (Endpoint::Stdio(stdio), TransportSpec::Stdio(StdioSpec { cwd: None, .. })) =
                (&mut server.endpoint, &server.spec.transport)
            {
                stdio.cwd = Some(validated.cwd.clone().into());
            }
            if has_one_user {
                server.spec.sharing = Sharing::Shared;
            }
            self.desired.servers.push(server);
        }
        for failed in own.failed {
            if let Some(description) = self.describe_own(&failed.id, None, validated) {
                self.descriptions.push(description);
                self.desired.failed.push(failed);
            }
        }
    }

    /// Describes one of the agent's own servers; `None`, and a warning, if the client has one of the same name.
    fn describe_own(
        &mut self,
        name: &str,
        server: Option<&ResolvedServer>,
        validated: &ValidatedRequest,
    ) -> Option<ServerDescription> {
        if let Some(replacement) = validated.servers.iter().find(|server| server.name() == name) {
            self.warnings.push(replacement_warning(replacement));
            return None;
        }
        let mut description = ServerDescription {
            name: name.to_owned(),
            source: ServerSource::Agent,
            transport: server.map_or(AcpTransport::Stdio, |server| server.spec.transport.kind().into()),
            command: None,
            secrets: server.and_then(|server| server.config.clone()).into_iter().collect(),
        };
        if let Some(server) = server {
            describe_endpoint(&server.endpoint, &mut description);
        }
        Some(description)
    }
}

/// The warning about a server of the client that replaces the agent's own.
fn replacement_warning(server: &SessionServer) -> RequestWarning {
    let pointer = match server {
        SessionServer::Spec(spec) => spec.origin.pointer.clone(),
        SessionServer::Extension { .. } => "/params/mcpServers".to_owned(),
    };
    let mut diagnostic =
        RequestDiagnostic::new(pointer, "it replaces the agent's own server of the same name");
    diagnostic.server_name = Some(server.name().to_owned());
    diagnostic.suggestion = Some("rename one of them to have both".to_owned());
    RequestWarning::new(WarningEffect::Noted, diagnostic)
}

/// Resolves a server of a request. Its working directory is the session's unless its entry has one.
fn resolve_server(
    spec: &ServerSpec,
    limits: &Limits,
    environment: EnvInheritance,
    cwd: &str,
) -> Result<ResolvedServer, HostError> {
    let mut spec = spec.clone();
    spec.limits = limits.clone();
    // The session's host has no other user, so sharing has no meaning.
    spec.sharing = Sharing::Shared;
    if let TransportSpec::Stdio(stdio) = &mut spec.transport {
        stdio.cwd.get_or_insert_with(|| cwd.to_owned());
        stdio.inherit = environment;
    }
    let context =
        ResolveContext::new(&|_| None, Path::new(cwd), &|_| Err("a session has no env files".to_owned()));
    resolve(&spec, &context).map_err(|errors| {
        let first = errors.into_iter().next();
        let (kind, message, help) = first.map_or((ErrorKind::McpConfig, String::new(), None), |error| {
            (error.kind, error.message, error.help)
        });
        let mut error = HostError::of_server(kind, spec.id.as_str(), message);
        error.help = help;
        error
    })
}

/// Converts a server over ACP. Returns it with a placeholder as its endpoint, which is never dialed, and its id on the
/// connection.
fn resolve_over_acp(
    name: &str,
    entry: &Passthrough,
    limits: &Limits,
) -> Result<(ResolvedServer, String), HostError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct AcpEntry {
        server_id: String,
    }
    let (Passthrough::Literal(json) | Passthrough::Template(json)) = entry;
    let invalid = |detail: String| HostError::of_server(ErrorKind::McpConfig, name, detail);
    let AcpEntry { server_id } =
        json.read().map_err(|_| invalid("'serverId' must be a string".to_owned()))?;
    let id = ServerId::parse(name).map_err(|error| invalid(error.to_string()))?;
    let mut stdio = StdioSpec::new("MCP over ACP");
    stdio.inherit = EnvInheritance::None;
    let endpoint = Endpoint::Stdio(StdioEndpoint::new(stdio.command.clone()));
    let origin = SpecOrigin::new(Profile::AcpV1, "request");
    let mut spec = ServerSpec::new(id, origin, TransportSpec::Stdio(stdio));
    (spec.limits, spec.sharing) = (limits.clone(), Sharing::Shared);
    Ok((ResolvedServer::new(spec, endpoint), server_id))
}

/// Adds the program and the secrets of an endpoint to a description.
fn describe_endpoint(endpoint: &Endpoint, description: &mut ServerDescription) {
    match endpoint {
        Endpoint::Stdio(stdio) => {
            description.command = Some(stdio.command.clone());
            let values = stdio.args.iter().chain(stdio.env.iter().map(|(_, value)| value));
            description.secrets.extend(values.flat_map(secret_parts));
        }
        Endpoint::Sse(http) | Endpoint::WebSocket(http) | Endpoint::Http(http) => {
            description.secrets.extend(http.headers.iter().flat_map(|(_, value)| secret_parts(value)));
            // The label of a URL omits these, but messages of a server may contain them.
            description.secrets.extend(http.url.password().map(Secret::from));
            description.secrets.extend(http.url.query().map(Secret::from));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_host_acp::{AcpVersion, AgentProfile, Capabilities, SessionMethod, SessionRequest, validate};
    use mcp_host_model::RawJson;

    use super::*;

    fn servers(list: &str, environment: EnvInheritance) -> Vec<ResolvedServer> {
        let params = format!(r#"{{"cwd":"/desk","mcpServers":{list}}}"#);
        let params = RawJson::parse(params.into()).unwrap();
        let request = SessionRequest::new(SessionMethod::New, params);
        let capabilities = Capabilities::STDIO;
        let validated = validate(&request, &AgentProfile::new(AcpVersion::V1, &capabilities)).unwrap();
        convert_servers(&validated, settings(environment, DesiredServers::default())).desired.servers
    }

    fn settings(environment: EnvInheritance, own_servers: DesiredServers) -> AgentSettings {
        AgentSettings {
            limits: Limits::default(),
            environment,
            has_over_acp: false,
            own_servers,
            has_one_user: true,
        }
    }

    #[test]
    fn acp_017_environment_of_a_child_is_the_option_and_the_entry() {
        const SERVER: &str = r#"[{"name":"a","command":"/a","args":[],"env":[{"name":"K","value":"v"}]}]"#;
        for environment in [EnvInheritance::None, EnvInheritance::Safe, EnvInheritance::All] {
            let [server] = &servers(SERVER, environment)[..] else { panic!() };
            let Endpoint::Stdio(stdio) = &server.endpoint else { panic!() };
            assert_eq!(stdio.inherit, environment);
            assert_eq!(stdio.env.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["K"]);
        }
    }

    #[test]
    fn timeouts_of_an_entry_replace_those_of_the_agent() {
        const SERVERS: &str = r#"[
            {"name":"a","command":"/a","args":[],"env":[],"_meta":{"mcpTimeouts":{"startupMs":7000}}},
            {"name":"b","command":"/b","args":[],"env":[],"_meta":{"mcpTimeouts":{"requestMs":9}}}]"#;
        let limits: Vec<_> =
            servers(SERVERS, EnvInheritance::Safe).into_iter().map(|server| server.spec.limits).collect();
        let default = Limits::default();
        assert_eq!((limits[0].startup, limits[0].request), (Duration::from_secs(7), default.request));
        assert_eq!((limits[1].startup, limits[1].request), (default.startup, Duration::from_millis(9)));
    }
}

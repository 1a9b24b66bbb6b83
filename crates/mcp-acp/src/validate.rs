//! Validation of a session request against an agent.
//!
//! mcp-config reads the entries, strictly by `type`. The agent's capabilities and policy are applied here. An entry
//! that is not among the servers has an error or a warning.

use std::collections::HashSet;

use mcp_host_config::acp::{SessionEntry, SessionReading, Tolerance};
use mcp_host_config::{Code, Document, Reading, acp};
use mcp_host_model::{Passthrough, RawJson, ServerSpec, Severity};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::diagnostic::{RequestDiagnostic, RequestWarning, SERVERS_POINTER, WarningEffect};
use crate::params::{self, ParamDiagnostics};
use crate::policy::{AgentProfile, InvalidEntryPolicy};
use crate::request::SessionRequest;
use crate::request_error::{InvalidParams, SessionRequestError, sanitize, unsupported_message};
use crate::timeouts::{InvalidTimeout, ServerTimeouts};
use crate::version::{AcpTransport, ServerSetEffect};

/// A valid request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ValidatedRequest {
    /// The servers, in order (ACP-048).
    pub servers: Vec<SessionServer>,
    /// The warnings, in the order of the entries.
    pub warnings: Vec<RequestWarning>,
    /// Whether the session starts with these servers, or they replace those of earlier requests.
    pub server_set_effect: ServerSetEffect,
    /// The session's folder, an absolute path.
    pub cwd: String,
    /// The additional folders, absolute paths.
    pub additional_directories: Vec<String>,
}

impl ValidatedRequest {
    /// A request for a new session in a folder, without servers.
    pub fn new(cwd: impl Into<String>) -> ValidatedRequest {
        ValidatedRequest {
            servers: Vec::new(),
            warnings: Vec::new(),
            server_set_effect: ServerSetEffect::Initial,
            cwd: cwd.into(),
            additional_directories: Vec::new(),
        }
    }

    /// Returns the server names, in order.
    pub fn server_names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(SessionServer::name)
    }
}

/// A server of a session.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_enums,
    reason = "mcp-acp-agent starts each form; a wildcard would leave out a server"
)]
pub enum SessionServer {
    /// A child process, or a URL.
    Spec(Box<ServerSpec>),
    /// A transport without a spec: `acp`, or an extension that the agent has declared. `_meta` and custom fields are
    /// kept.
    Extension {
        /// The name.
        name: String,
        /// The transport.
        transport: AcpTransport,
        /// The complete entry.
        entry: Passthrough,
    },
}

impl SessionServer {
    /// Returns the name, unique in the request.
    pub fn name(&self) -> &str {
        match self {
            SessionServer::Spec(spec) => spec.id.as_str(),
            SessionServer::Extension { name, transport: _, entry: _ } => name,
        }
    }

    /// Returns the timeouts that the client requests in `_meta`.
    pub fn timeouts(&self) -> ServerTimeouts {
        self.read_timeouts().0
    }

    /// Reads the timeouts in `_meta`, and the members of it that are invalid.
    fn read_timeouts(&self) -> (ServerTimeouts, Vec<InvalidTimeout>) {
        #[derive(Deserialize)]
        struct Entry<'a> {
            #[serde(borrow, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        match self {
            SessionServer::Spec(spec) => spec.metadata.get("_meta").map(ServerTimeouts::read),
            SessionServer::Extension { name: _, transport: _, entry } => {
                let (Passthrough::Literal(json) | Passthrough::Template(json)) = entry;
                let meta = json.read::<Entry<'_>>().ok().and_then(|entry| entry.meta);
                meta.map(|meta| ServerTimeouts::read(&RawJson::copy_of(meta)))
            }
        }
        .unwrap_or_default()
    }

    /// Returns the transport.
    pub fn transport(&self) -> AcpTransport {
        match self {
            SessionServer::Spec(spec) => spec.transport.kind().into(),
            SessionServer::Extension { name: _, transport, entry: _ } => transport.clone(),
        }
    }
}

/// The maximum length of a name in diagnostics, in characters.
const MAX_NAME_CHARS: usize = 256;

/// Validates a request (ACP-012 to ACP-016, ACP-039).
///
/// Fails with all errors at once. Under [`InvalidEntryPolicy::Drop`] invalid entries are dropped with warnings, and
/// only errors of the request itself refuse it.
pub fn validate(
    request: &SessionRequest,
    agent: &AgentProfile<'_>,
) -> Result<ValidatedRequest, SessionRequestError> {
    if !request.method.exists_in(agent.version) {
        return Err(SessionRequestError::MethodNotFound { method: request.method.as_str().to_owned() });
    }
    let text = request.to_json_text();
    let document = Document::new("request", &text, agent.version.profile());
    let SessionReading { reading, members, .. } = acp::read(&document, agent.policy.leniency);
    let ParamDiagnostics { mut errors, mut warnings } = params::check(&members, agent);
    add_config_diagnostics(&reading, agent, &mut errors, &mut warnings);
    errors.extend(unsupported_transports(&reading, members.servers.items(), agent));
    let transport_of = |index: usize| members.servers.items().get(index)?.transport.as_deref();
    let name_of = |index: usize| {
        let name = members.servers.items().get(index)?.name.as_deref().filter(|name| !name.is_empty())?;
        Some(name.chars().take(MAX_NAME_CHARS).collect::<String>())
    };

    let invalid: HashSet<usize> = errors.iter().filter_map(|error| error.index).collect();
    let mut servers = Vec::new();
    for (index, entry) in reading.entries.iter().enumerate().filter(|(index, _)| !invalid.contains(index)) {
        let spec = reading.servers.iter().find(|spec| spec.origin.pointer == entry.pointer);
        let extension = entry.extension.as_ref().zip(transport_of(index));
        let server = match (spec, extension) {
            (Some(spec), _) => SessionServer::Spec(Box::new(spec.clone())),
            (None, Some((entry, transport))) => SessionServer::Extension {
                name: name_of(index).unwrap_or_default(),
                transport: AcpTransport::from_type(transport),
                entry: entry.clone(),
            },
            (None, None) => {
                let message = "this entry is not a server that can be started";
                errors.push(RequestDiagnostic::at_pointer(entry.pointer.as_str(), message));
                continue;
            }
        };
        warnings.extend(server.read_timeouts().1.into_iter().map(|InvalidTimeout { pointer, message }| {
            let pointer = format!("{}/_meta{pointer}", entry.pointer);
            RequestDiagnostic::at_pointer(pointer, message)
                .with_suggestion("write milliseconds, such as 60000")
        }));
        servers.push(server);
    }

    for diagnostic in errors.iter_mut().chain(&mut warnings) {
        diagnostic.server_name = diagnostic.index.and_then(name_of);
    }
    // The first error of an entry is that its transport is unsupported.
    errors.sort_by_key(|error| (error.index, error.requested_transport.is_none()));
    let is_refused = match agent.policy.invalid_entries {
        InvalidEntryPolicy::Refuse => !errors.is_empty(),
        InvalidEntryPolicy::Drop => errors.iter().any(|error| error.index.is_none()),
    };
    let Some(cwd) = members.cwd.filter(|_| !is_refused) else {
        let supported = agent.capabilities.supported(agent.version);
        let invalid = InvalidParams::new(errors, supported)
            .expect("mcp-config reports a folder that it does not return");
        return Err(SessionRequestError::InvalidParams(invalid));
    };
    let dropped = errors.into_iter().map(|diagnostic| (WarningEffect::Dropped, diagnostic));
    let noted = warnings.into_iter().map(|diagnostic| (WarningEffect::Noted, diagnostic));
    let reported = dropped.chain(noted).map(|(effect, diagnostic)| RequestWarning { effect, diagnostic });
    let mut warnings: Vec<_> = reported.collect();
    warnings.sort_by_key(|warning| warning.diagnostic.index);
    Ok(ValidatedRequest {
        servers,
        warnings,
        server_set_effect: request.method.server_set_effect(),
        cwd,
        additional_directories: members.additional_directories.items().iter().flatten().cloned().collect(),
    })
}

/// Adds mcp-config's diagnostics to the errors or the warnings, except those about a transport, which
/// [`unsupported_transports`] decides.
fn add_config_diagnostics(
    reading: &Reading,
    agent: &AgentProfile<'_>,
    errors: &mut Vec<RequestDiagnostic>,
    warnings: &mut Vec<RequestDiagnostic>,
) {
    for config_diagnostic in &reading.diagnostics {
        let diagnostic = RequestDiagnostic::from_config(config_diagnostic);
        // Capabilities decide on extensions and on unknown types.
        let is_type = diagnostic.index.is_some() && diagnostic.field.as_deref() == Some("type");
        let is_about_transport = match config_diagnostic.code {
            Code::Extension => true,
            Code::UnknownWord => is_type,
            _ => false,
        };
        if is_about_transport {
            continue;
        }
        let is_missing_servers =
            config_diagnostic.code == Code::MissingKey && config_diagnostic.pointer == SERVERS_POINTER;
        let is_tolerated = is_missing_servers && agent.policy.missing_servers == Tolerance::Warn;
        match config_diagnostic.severity {
            Severity::Error if !is_tolerated => errors.push(diagnostic),
            Severity::Error | Severity::Warning | Severity::Info => warnings.push(diagnostic),
        }
    }
}

/// Returns an error for each entry with an unsupported transport (ACP-015, ACP-016, ACPX-11).
fn unsupported_transports(
    reading: &Reading,
    servers: &[SessionEntry],
    agent: &AgentProfile<'_>,
) -> Vec<RequestDiagnostic> {
    let mut errors = Vec::new();
    for (index, entry) in reading.entries.iter().enumerate() {
        let declared = || servers.get(index)?.transport.as_deref().map(AcpTransport::from_type);
        let Some(transport) = entry.transport.map(AcpTransport::from).or_else(declared) else { continue };
        if agent.capabilities.allows(agent.version, &transport) {
            continue;
        }
        let pointer = format!("{}/type", entry.pointer);
        let transport = AcpTransport::from_type(&sanitize(transport.as_str()));
        let message = unsupported_message(agent.version, &transport);
        let supported = agent.capabilities.supported(agent.version);
        let names: Vec<_> = supported.iter().map(|transport| format!("`{transport}`")).collect();
        let names = names.join(", ");
        // mcp-config knows what an unknown type may have meant.
        let unknown = reading.diagnostics.iter().find(|diagnostic| {
            diagnostic.code == Code::UnknownWord && diagnostic.pointer.as_str() == pointer
        });
        let suggestion = match unknown.and_then(|diagnostic| diagnostic.help.as_deref()) {
            _ if names.is_empty() => "this agent supports no MCP servers".to_owned(),
            Some(help) => format!("{help}; this agent supports {names}"),
            None => format!("use a server with one of these transports: {names}"),
        };
        errors.push(RequestDiagnostic {
            requested_transport: Some(transport),
            ..RequestDiagnostic::at_pointer(pointer, message).with_suggestion(suggestion)
        });
    }
    errors
}

//! Validation of a session request against an agent.
//!
//! mcp-config reads the entries, strictly by `type`. The agent's capabilities and policy are applied here. An entry
//! that is not among the servers has an error or a warning.

use std::collections::HashSet;

use mcp_config::acp::Tolerance;
use mcp_config::{Code, Document, Reading, acp};
use mcp_model::{Passthrough, ServerSpec, Severity};

use crate::diagnostic::SERVERS_POINTER;
use crate::diagnostic::{RequestDiagnostic, RequestWarning, WarningEffect};
use crate::params::{ParamDiagnostics, RequestParams};
use crate::policy::{AgentProfile, InvalidEntryPolicy};
use crate::request::SessionRequest;
use crate::request_error::{InvalidParams, SessionRequestError};
use crate::request_error::{sanitize, unsupported_message};
use crate::version::{AcpTransport, AcpVersion, ServerSetEffect};

/// A valid request.
#[derive(Debug, Clone)]
pub struct ValidatedRequest {
    /// The servers, in order (ACP-048).
    pub servers: Vec<SessionServer>,
    /// The warnings, in the order of the entries.
    pub warnings: Vec<RequestWarning>,
    /// The relation of the servers to the session.
    pub server_set_effect: ServerSetEffect,
    /// The session's folder, an absolute path.
    pub cwd: String,
    /// The additional folders, absolute paths.
    pub additional_directories: Vec<String>,
}

impl ValidatedRequest {
    /// Returns the server names, in order.
    pub fn server_names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(SessionServer::name)
    }
}

/// A server of a session.
#[derive(Debug, Clone)]
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

    /// Returns the transport.
    pub fn transport(&self) -> AcpTransport {
        match self {
            SessionServer::Spec(spec) => spec.transport.kind().into(),
            SessionServer::Extension { name: _, transport, entry: _ } => transport.clone(),
        }
    }
}

/// Validates a request (ACP-012 to ACP-016, ACP-039).
///
/// Fails with all errors at once. Under [`InvalidEntryPolicy::Drop`] invalid entries are dropped with warnings, and
/// only errors of the request itself refuse it.
pub fn validate(
    set_up: &SessionRequest,
    agent: &AgentProfile<'_>,
) -> Result<ValidatedRequest, SessionRequestError> {
    if !set_up.method.exists_in(agent.version) {
        return Err(SessionRequestError::MethodNotFound { method: set_up.method.as_str().to_owned() });
    }
    let text = set_up.to_json_text();
    let document = Document { name: "request", text: &text, profile: agent.version.profile() };
    let reading = acp::read(&document, agent.policy.leniency);
    let parameters = RequestParams::read(set_up);
    let ParamDiagnostics { mut errors, warnings: mut notes } = parameters.check(agent);
    add_config_diagnostics(&reading, agent, &mut errors, &mut notes);
    errors.extend(unsupported_transports(&reading, &parameters, agent));

    let mut broken: HashSet<usize> = errors.iter().filter_map(|it| it.index).collect();
    let mut servers = Vec::new();
    for (index, entry) in reading.entries.iter().enumerate().filter(|it| !broken.contains(&it.0)) {
        let spec = reading.servers.iter().find(|it| it.origin.pointer == entry.pointer);
        let extension = entry.extension.as_ref().zip(parameters.type_of(index));
        servers.push((
            index,
            match (spec, extension) {
                (Some(spec), _) => SessionServer::Spec(Box::new(spec.clone())),
                (None, Some((entry, word))) => SessionServer::Extension {
                    name: parameters.name_of(index).unwrap_or_default(),
                    transport: AcpTransport::from_type(word),
                    entry: entry.clone(),
                },
                (None, None) => {
                    let message = "this entry is no server that can be started";
                    errors.push(RequestDiagnostic::at_pointer(entry.pointer.as_str(), message));
                    continue;
                }
            },
        ));
    }
    broken.extend(errors.iter().filter_map(|it| it.index));

    for it in errors.iter_mut().chain(&mut notes) {
        it.server_name = it.index.and_then(|index| parameters.name_of(index));
    }
    // The first error of an entry is that its transport is unsupported.
    errors.sort_by_key(|it| (it.index, it.requested_transport.is_none()));
    let refuses = match agent.policy.invalid_entries {
        InvalidEntryPolicy::Refuse => !errors.is_empty(),
        InvalidEntryPolicy::Drop => errors.iter().any(|it| it.index.is_none()),
    };
    if refuses || parameters.cwd().is_none() {
        if errors.is_empty() {
            // mcp-config reports errors of the same text; without any, `cwd` is unreadable.
            errors.push(RequestDiagnostic::at_pointer("/params/cwd", "'cwd' cannot be read"));
        }
        let supported = agent.capabilities.supported(agent.version);
        let invalid = InvalidParams::new(errors, supported).expect("something is wrong, as was just seen");
        return Err(SessionRequestError::InvalidParams(invalid));
    }
    let dropped = errors
        .into_iter()
        .map(|finding| RequestWarning { effect: WarningEffect::Dropped, diagnostic: finding });
    let noted =
        notes.into_iter().map(|finding| RequestWarning { effect: WarningEffect::Noted, diagnostic: finding });
    let mut reports: Vec<_> = dropped.chain(noted).collect();
    reports.sort_by_key(|it| it.diagnostic.index);
    Ok(ValidatedRequest {
        servers: servers.into_iter().map(|it| it.1).collect(),
        warnings: reports,
        server_set_effect: set_up.method.server_set_effect(),
        cwd: parameters.cwd().unwrap_or_default().to_owned(),
        additional_directories: parameters.additional_directories(),
    })
}

/// Adds mcp-config's diagnostics by their severity here.
fn add_config_diagnostics(
    reading: &Reading,
    agent: &AgentProfile<'_>,
    errors: &mut Vec<RequestDiagnostic>,
    notes: &mut Vec<RequestDiagnostic>,
) {
    for diagnostic in &reading.diagnostics {
        let finding = RequestDiagnostic::from_config(diagnostic);
        // Capabilities decide on extensions, and on the types of version 2.
        let is_type = finding.index.is_some() && finding.field.as_deref() == Some("type");
        let about_transport = match diagnostic.code {
            Code::Extension => true,
            Code::UnknownWord => is_type && agent.version == AcpVersion::V2,
            _ => false,
        };
        if about_transport {
            continue;
        }
        let no_servers = diagnostic.code == Code::MissingKey && diagnostic.pointer == SERVERS_POINTER;
        let forgiven = no_servers && agent.policy.missing_servers == Tolerance::Warn;
        match diagnostic.severity {
            Severity::Error if !forgiven => errors.push(finding),
            Severity::Error | Severity::Warning | Severity::Info => notes.push(finding),
        }
    }
}

/// Returns an error for each entry with an unsupported transport (ACP-015, ACP-016, ACPX-11).
fn unsupported_transports(
    reading: &Reading,
    parameters: &RequestParams,
    agent: &AgentProfile<'_>,
) -> Vec<RequestDiagnostic> {
    let mut res = Vec::new();
    for (index, entry) in reading.entries.iter().enumerate() {
        let written = || parameters.type_of(index).map(AcpTransport::from_type);
        let Some(transport) = entry.transport.map(AcpTransport::from).or_else(written) else { continue };
        let known = match (agent.version, &transport) {
            // Version 1 has no other transports: the entry is invalid, whatever the agent declares.
            (AcpVersion::V1, AcpTransport::Other(_)) => continue,
            (AcpVersion::V2, AcpTransport::Other(word)) => word.starts_with('_'),
            (_, AcpTransport::Stdio | AcpTransport::Http | AcpTransport::Sse | AcpTransport::Acp) => true,
        };
        if agent.capabilities.allows(agent.version, &transport) {
            continue;
        }
        let pointer = format!("{}/type", entry.pointer);
        let shown = AcpTransport::from_type(&sanitize(transport.as_str()));
        let message = if known {
            unsupported_message(agent.version, &shown)
        } else {
            format!("'{shown}' transport not supported: protocol version 2 has no such transport")
        };
        let supported = agent.capabilities.supported(agent.version);
        let words: Vec<_> = supported.iter().map(|it| format!("`{it}`")).collect();
        let suggestion = if words.is_empty() {
            "this agent takes no MCP servers".to_owned()
        } else {
            format!("use a server that is reached by one of {}", words.join(", "))
        };
        res.push(RequestDiagnostic {
            requested_transport: Some(shown),
            ..RequestDiagnostic::at_pointer(pointer, message).with_suggestion(suggestion)
        });
    }
    res
}

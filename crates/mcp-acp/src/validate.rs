//! A request held against an agent: its servers, or everything that is wrong with it.
//!
//! What an entry is, mcp-config reads, strictly by `type`; here the agent's capabilities and policy decide about it.
//! An entry that is not among the servers is in the refusal or in a report.

use std::collections::HashSet;

use mcp_config::acp::Tolerance;
use mcp_config::{Code, Document, Reading, acp};
use mcp_model::{Passthrough, ServerSpec, Severity};

use crate::finding::SERVERS;
use crate::parameters::{Findings, Parameters};
use crate::refusal::{not_supported, shown};
use crate::{
    Agent, BadEntries, Effect, Finding, InvalidParams, Refusal, Report, SetEffect, SetUp, Transport, Version,
};

/// A request that may be carried out.
#[derive(Debug, Clone)]
pub struct Validated {
    /// Its servers, in the order of the list (ACP-048).
    pub servers: Vec<Server>,
    /// What is to be known about it, in the order of the list.
    pub reports: Vec<Report>,
    /// What the servers are to the session.
    pub effect: SetEffect,
    /// The folder of the session, an absolute path.
    pub cwd: String,
    /// The folders besides, absolute paths.
    pub additional_directories: Vec<String>,
}

impl Validated {
    /// The names of the servers, in the order of the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(Server::name)
    }
}

/// A server that a session may have.
#[derive(Debug, Clone)]
pub enum Server {
    /// A child process, or a URL.
    Spec(Box<ServerSpec>),
    /// A transport that this workspace has no word for: `acp`, or an extension that the agent has declared. `_meta` and
    /// custom fields are kept.
    Extension {
        /// Its name.
        name: String,
        /// Its transport.
        transport: Transport,
        /// The whole entry.
        entry: Passthrough,
    },
}

impl Server {
    /// Its name, unique in the request.
    pub fn name(&self) -> &str {
        match self {
            Server::Spec(spec) => spec.id.as_str(),
            Server::Extension { name, transport: _, entry: _ } => name,
        }
    }

    /// How it is to be reached.
    pub fn transport(&self) -> Transport {
        match self {
            Server::Spec(spec) => spec.transport.kind().into(),
            Server::Extension { name: _, transport, entry: _ } => transport.clone(),
        }
    }
}

/// Holds a request against an agent (ACP-012 to ACP-016, ACP-039).
///
/// Fails with everything that is wrong, at once. Under [`BadEntries::Drop`] an entry that is wrong is dropped with
/// reports, and only what is wrong with the request itself refuses it.
pub fn validate(set_up: &SetUp, agent: &Agent<'_>) -> Result<Validated, Refusal> {
    if !set_up.method.is_in(agent.version) {
        return Err(Refusal::MethodNotFound { method: set_up.method.as_str().to_owned() });
    }
    let text = set_up.text();
    let document = Document { name: "request", text: &text, profile: agent.version.profile() };
    let reading = acp::read(&document, agent.policy.leniency);
    let parameters = Parameters::read(set_up);
    let Findings { mut errors, mut notes } = parameters.look(agent);
    diagnosed(&reading, agent, &mut errors, &mut notes);
    errors.extend(unsupported(&reading, &parameters, agent));

    let mut broken: HashSet<usize> = errors.iter().filter_map(|it| it.index).collect();
    let mut servers = Vec::new();
    for (index, entry) in reading.entries.iter().enumerate().filter(|it| !broken.contains(&it.0)) {
        let spec = reading.servers.iter().find(|it| it.origin.pointer == entry.pointer);
        let extension = entry.extension.as_ref().zip(parameters.type_of(index));
        servers.push((
            index,
            match (spec, extension) {
                (Some(spec), _) => Server::Spec(Box::new(spec.clone())),
                (None, Some((entry, word))) => Server::Extension {
                    name: parameters.name_of(index).unwrap_or_default(),
                    transport: Transport::of(word),
                    entry: entry.clone(),
                },
                (None, None) => {
                    let message = "this entry is no server that can be started";
                    errors.push(Finding::at(entry.pointer.as_str(), message));
                    continue;
                }
            },
        ));
    }
    broken.extend(errors.iter().filter_map(|it| it.index));

    for it in errors.iter_mut().chain(&mut notes) {
        it.server_name = it.index.and_then(|index| parameters.name_of(index));
    }
    // Where an entry's transport is not supported, that is said of it first.
    errors.sort_by_key(|it| (it.index, it.requested_transport.is_none()));
    let refuses = match agent.policy.bad_entries {
        BadEntries::Refuse => !errors.is_empty(),
        BadEntries::Drop => errors.iter().any(|it| it.index.is_none()),
    };
    if refuses || parameters.cwd().is_none() {
        if errors.is_empty() {
            // mcp-config reads the same text, and says what is wrong with it; whatever it lets pass beyond is no `cwd`.
            errors.push(Finding::at("/params/cwd", "'cwd' cannot be read"));
        }
        let supported = agent.capabilities.supported(agent.version);
        let invalid = InvalidParams::new(errors, supported).expect("something is wrong, as was just seen");
        return Err(Refusal::InvalidParams(invalid));
    }
    let dropped = errors.into_iter().map(|finding| Report { effect: Effect::Dropped, finding });
    let noted = notes.into_iter().map(|finding| Report { effect: Effect::Noted, finding });
    let mut reports: Vec<_> = dropped.chain(noted).collect();
    reports.sort_by_key(|it| it.finding.index);
    Ok(Validated {
        servers: servers.into_iter().map(|it| it.1).collect(),
        reports,
        effect: set_up.method.effect(),
        cwd: parameters.cwd().unwrap_or_default().to_owned(),
        additional_directories: parameters.additional_directories(),
    })
}

/// What mcp-config says, sorted by what it means here.
fn diagnosed(reading: &Reading, agent: &Agent<'_>, errors: &mut Vec<Finding>, notes: &mut Vec<Finding>) {
    for diagnostic in &reading.diagnostics {
        let finding = Finding::of(diagnostic);
        // Whether an extension is supported, and which types there are in version 2, capabilities say.
        let is_type = finding.index.is_some() && finding.field.as_deref() == Some("type");
        let about_transport = match diagnostic.code {
            Code::Extension => true,
            Code::UnknownWord => is_type && agent.version == Version::V2,
            _ => false,
        };
        if about_transport {
            continue;
        }
        let no_servers = diagnostic.code == Code::MissingKey && diagnostic.pointer == SERVERS;
        let forgiven = no_servers && agent.policy.missing_servers == Tolerance::Warn;
        match diagnostic.severity {
            Severity::Error if !forgiven => errors.push(finding),
            Severity::Error | Severity::Warning | Severity::Info => notes.push(finding),
        }
    }
}

/// The entries whose transport the agent does not support (ACP-015, ACP-016, ACPX-11).
fn unsupported(reading: &Reading, parameters: &Parameters, agent: &Agent<'_>) -> Vec<Finding> {
    let mut res = Vec::new();
    for (index, entry) in reading.entries.iter().enumerate() {
        let written = || parameters.type_of(index).map(Transport::of);
        let Some(transport) = entry.transport.map(Transport::from).or_else(written) else { continue };
        let known = match (agent.version, &transport) {
            // In version 1 there are no others: the entry is wrong, whatever the agent declares.
            (Version::V1, Transport::Other(_)) => continue,
            (Version::V2, Transport::Other(word)) => word.starts_with('_'),
            (_, Transport::Stdio | Transport::Http | Transport::Sse | Transport::Acp) => true,
        };
        if agent.capabilities.allows(agent.version, &transport) {
            continue;
        }
        let pointer = format!("{}/type", entry.pointer);
        let shown = Transport::of(&shown(transport.as_str()));
        let message = if known {
            not_supported(agent.version, &shown)
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
        res.push(Finding {
            requested_transport: Some(shown),
            ..Finding::at(pointer, message).suggest(suggestion)
        });
    }
    res
}

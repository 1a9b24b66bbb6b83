//! From the servers that a session may have to those that a host is to run.
//!
//! What is kept of each beside is what its failures are told with: its program, and its secrets, which are taken out.

use std::path::Path;

use mcp_acp::{Server, Transport, Validated};
use mcp_config::{ResolvedServer, Surroundings, resolve};
use mcp_host::{FailedServer, Failure, Wanted};
use mcp_model::{Endpoint, Kind, Limits, Secret, ServerSpec, Sharing, TransportSpec};

/// A server of a session, as its status needs it.
#[derive(Clone)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) transport: Transport,
    /// The program of a child.
    pub(crate) command: Option<String>,
    /// The values of its arguments, variables and headers.
    pub(crate) secrets: Vec<Secret>,
}

/// What a session asks for.
pub(crate) struct Asked {
    /// In the order of its list.
    pub(crate) described: Vec<Described>,
    pub(crate) wanted: Wanted,
}

/// Puts the servers of a request in the words of a host. The values of ACP are literal, so that nothing of our
/// environment is put in.
pub(crate) fn asked(validated: &Validated, limits: &Limits) -> Asked {
    let mut res = Asked { described: Vec::new(), wanted: Wanted::default() };
    for server in &validated.servers {
        let mut described = Described {
            name: server.name().to_owned(),
            transport: server.transport(),
            command: None,
            secrets: Vec::new(),
        };
        match server {
            Server::Spec(spec) => match resolved(spec, limits, &validated.cwd) {
                Ok(resolved) => {
                    describe(&resolved.endpoint, &mut described);
                    res.wanted.servers.push(resolved);
                }
                Err(failure) => res.wanted.failed.push(FailedServer { id: described.name.clone(), failure }),
            },
            Server::Extension { name, transport, entry: _ } => {
                let message =
                    format!("server '{name}': this agent has no wire for the {transport} transport");
                let failure = Failure { kind: Kind::Connection, message, help: None };
                res.wanted.failed.push(FailedServer { id: name.clone(), failure });
            }
        }
        res.described.push(described);
    }
    res
}

fn resolved(spec: &ServerSpec, limits: &Limits, cwd: &str) -> Result<ResolvedServer, Failure> {
    let mut spec = spec.clone();
    spec.limits = limits.clone();
    // The session is the owner, and it has a host of its own: there is nobody to share with.
    spec.sharing = Sharing::Shared;
    if let TransportSpec::Stdio(stdio) = &mut spec.transport {
        stdio.cwd.get_or_insert_with(|| cwd.to_owned());
    }
    let surroundings = Surroundings {
        variable: &|_| None,
        directory: Path::new(cwd),
        read_file: &|_| Err("a session has no env files".to_owned()),
    };
    resolve(&spec, &surroundings).map_err(|errors| {
        let first = errors.into_iter().next();
        let (kind, message, help) =
            first.map_or((Kind::McpConfig, String::new(), None), |it| (it.kind, it.message, it.help));
        Failure { kind, message: format!("server '{}': {message}", spec.id), help }
    })
}

fn describe(endpoint: &Endpoint, described: &mut Described) {
    match endpoint {
        Endpoint::Stdio(it) => {
            described.command = Some(it.command.clone());
            described.secrets.extend(it.args.iter().cloned());
            described.secrets.extend(it.env.iter().map(|(_, value)| value.clone()));
        }
        Endpoint::Sse(it) | Endpoint::WebSocket(it) | Endpoint::Http(it) => {
            described.secrets.extend(it.headers.iter().map(|(_, value)| value.clone()));
            // The label of a URL does without them; what a server says may not.
            described.secrets.extend(it.url.password().map(Secret::from));
            described.secrets.extend(it.url.query().map(Secret::from));
        }
    }
}

//! The public state of a host: one immutable snapshot per generation.
//!
//! Its serialization is the JSON of the `tools` command. Running instances are in the
//! [`RoutingTable`](crate::supervisor::machine::RoutingTable), which is published together with it.

use std::sync::Arc;
use std::time::SystemTime;

use mcp_host_model::{Era, ServerId, ServerName, Sharing};
use mcp_host_registry::{ActiveProblem, Catalog, Projection, Provider, project};
use mcp_host_transport::StderrLines;
use serde::{Serialize, Serializer};
use strum::IntoStaticStr;

use crate::error::HostError;
use crate::state::dialog_id::DialogId;

/// The state of a host at one moment.
#[derive(Debug, Clone, Serialize, Default)]
#[non_exhaustive]
pub struct HostSnapshot {
    /// Grows by one with each publication; 0 before the first configuration.
    pub generation: u64,
    /// Tools, prompts and resources of the running servers. Serialized as the list `tools`.
    #[serde(rename = "tools", serialize_with = "serialize_tools")]
    pub catalog: Arc<Catalog>,
    /// All servers in the order of the configuration; those with invalid entries last.
    pub servers: Vec<ServerStatus>,
    /// The current problems.
    pub problems: Vec<ActiveProblem>,
}

impl HostSnapshot {
    /// Adapts the tools to a model provider; see [`Host::tools_for`](crate::Host::tools_for).
    pub fn tools_for(&self, provider: Provider) -> Projection {
        project(self.catalog.tools(), provider)
    }

    /// Returns the status of a server, if it is configured.
    pub fn server(&self, id: &ServerId) -> Option<&ServerStatus> {
        self.servers.iter().find(|status| status.id == *id)
    }

    /// Returns the ids of the servers in order, without invalid names.
    pub fn server_ids(&self) -> impl Iterator<Item = &ServerId> {
        self.servers.iter().filter_map(|status| status.id.id())
    }
}

/// A snapshot of a running instance, shared or leased.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceSnapshot {
    /// The server.
    pub server: ServerId,
    /// The dialog that leases it; `None` for a shared one.
    pub dialog: Option<DialogId>,
    /// The process id of a stdio server.
    pub pid: Option<u32>,
    /// The start time.
    pub started: SystemTime,
}

/// The last lines that an instance of a server wrote to standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceStderr {
    /// Its process id; `None` for a server that is no process.
    pub pid: Option<u32>,
    /// Its lines, without secrets.
    pub stderr: StderrLines,
}

/// The status of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name as written in the configuration.
    #[serde(rename = "name")]
    pub id: ServerName,
    /// Its state.
    pub state: ServerState,
    /// The era of its connection, if it has one.
    pub era: Option<Era>,
    /// Whether one instance is shared, or each dialog has its own, if it accepts calls; never [`Sharing::Auto`].
    #[serde(skip)]
    pub sharing: Option<Sharing>,
    /// The current error. A [`ServerState::Ready`] server has one if a changed configuration could not be started, and
    /// it runs with the previous one.
    pub error: Option<HostError>,
    /// Its command, if the first start of it downloads a package: `npx`.
    #[serde(skip)]
    pub launcher: Option<String>,
}

impl ServerStatus {
    /// Creates the status of a server without a connection and without an error.
    pub fn new(id: impl Into<ServerName>, state: ServerState) -> ServerStatus {
        ServerStatus { id: id.into(), state, era: None, sharing: None, error: None, launcher: None }
    }
}

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum ServerState {
    /// It is starting. Tools of its previous instance may still be available.
    Starting,
    /// It accepts calls.
    Ready,
    /// It accepts no calls: the start failed or the connection was lost. A restart is scheduled or running.
    Restarting,
    /// It accepts no calls: the start failed, the connection was lost, or its entry is invalid. No restart is
    /// scheduled, or restarts are suspended after too many failures.
    Failed,
    /// It accepts no calls: it is switched off until it is restarted or its entry changes.
    Disabled,
    /// The host has shut down.
    Stopped,
}

impl ServerState {
    /// Returns `starting`, `ready`, `restarting`, `failed`, `disabled` or `stopped`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

fn serialize_tools<S: Serializer>(catalog: &Catalog, serializer: S) -> Result<S::Ok, S::Error> {
    catalog.tools().serialize(serializer)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use mcp_host_model::{ErrorKind, Severity};
    use mcp_host_registry::Problem;

    use super::*;

    #[test]
    fn serializes_as_json_of_tools_command() {
        let id = ServerId::parse("a").unwrap();
        let failure = HostError { help: Some("h".into()), ..HostError::new(ErrorKind::Connection, "m") };
        let published = HostSnapshot {
            generation: 3,
            catalog: Arc::new(Catalog::empty()),
            servers: vec![
                ServerStatus { error: Some(failure), ..ServerStatus::new("a", ServerState::Failed) },
                ServerStatus { era: Some(Era::Modern), ..ServerStatus::new("b", ServerState::Ready) },
            ],
            problems: vec![ActiveProblem {
                problem: Problem::server_error(&id, Severity::Error, "m"),
                since: UNIX_EPOCH + Duration::from_secs(1),
            }],
        };
        assert_eq!(
            serde_json::to_string(&published).unwrap(),
            concat!(
                r#"{"generation":3,"tools":[],"servers":["#,
                r#"{"name":"a","state":"failed","era":null,"error":{"kind":"MCPConnectionError","message":"m","help":"h"}},"#,
                r#"{"name":"b","state":"ready","era":"modern","error":null}],"problems":["#,
                r#"{"id":"mcp/server/a/server_error","kind":"mcp_server_error","severity":"error","server":"a","tool":null,"#,
                r#""message":"m","since":"1970-01-01T00:00:01.000Z"}]}"#
            )
        );
    }
}

//! What the world sees of a host: one immutable value for each generation.
//!
//! Serialised it is the JSON of the `tools` command. Nothing here is running: instances stand beside it in the
//! [`Snapshot`](crate::supervisor::machine::Snapshot), which is committed together with it.

use std::sync::Arc;

use mcp_model::Era;
use mcp_registry::{ActiveProblem, Catalog, Projection, Provider, project};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::failure::HostError;

/// The state of a host at one moment, all parts of it from the same moment.
#[derive(Debug, Clone)]
pub struct HostSnapshot {
    /// Grows by one with each publication; 0 is that of a host which was asked for nothing yet.
    pub generation: u64,
    /// Tools, prompts and resources of the servers that run.
    pub catalog: Arc<Catalog>,
    /// Every server, in the configuration's order, those that cannot be started last.
    pub servers: Vec<ServerStatus>,
    /// What a user should know, derived from the state as it is now.
    pub problems: Vec<ActiveProblem>,
}

impl HostSnapshot {
    /// Adapts the tools to a model provider; see [`Host::tools_for`](crate::Host::tools_for).
    pub fn tools_for(&self, provider: Provider) -> Projection {
        project(self.catalog.tools(), provider)
    }
}

/// One server's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its name as written.
    pub id: String,
    /// Whether it can be used.
    pub state: ServerState,
    /// The era of its connection, while there is one.
    pub era: Option<Era>,
    /// What is wrong. A server that is [`ServerState::Ready`] has one when it could not be changed as was wanted and
    /// goes on as it was.
    pub error: Option<HostError>,
}

/// Whether a server can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// It is being started; tools of a former start may be there meanwhile.
    Starting,
    /// It can be called.
    Ready,
    /// It cannot be called: it could not be started, or was lost. It is tried again by itself, soon or just now.
    Restarting,
    /// It cannot be called: it could not be started, was lost, or is written wrongly. It is not tried again by itself,
    /// or has gone wrong so often in a row that it is left alone for long.
    Failed,
    /// It cannot be called: it was switched off, until it is restarted or its entry is changed.
    Disabled,
    /// The host has shut down.
    Stopped,
}

impl ServerState {
    /// `starting`, `ready`, `restarting`, `failed`, `disabled` or `stopped`.
    pub fn as_str(self) -> &'static str {
        match self {
            ServerState::Starting => "starting",
            ServerState::Ready => "ready",
            ServerState::Restarting => "restarting",
            ServerState::Failed => "failed",
            ServerState::Disabled => "disabled",
            ServerState::Stopped => "stopped",
        }
    }
}

impl HostSnapshot {
    /// What a host publishes before it is asked for anything.
    pub(crate) fn nothing() -> HostSnapshot {
        HostSnapshot {
            generation: 0,
            catalog: Arc::new(Catalog::empty()),
            servers: Vec::new(),
            problems: Vec::new(),
        }
    }
}

impl Serialize for HostSnapshot {
    /// `{"generation", "tools", "servers", "problems"}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut res = serializer.serialize_struct("Published", 4)?;
        res.serialize_field("generation", &self.generation)?;
        res.serialize_field("tools", self.catalog.tools())?;
        res.serialize_field("servers", &self.servers)?;
        res.serialize_field("problems", &self.problems)?;
        res.end()
    }
}

impl Serialize for ServerStatus {
    /// `{"name", "state", "era", "error"}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ServerStatus { id, state, era, error: failure } = self;
        let mut res = serializer.serialize_struct("ServerStatus", 4)?;
        res.serialize_field("name", id)?;
        res.serialize_field("state", state.as_str())?;
        res.serialize_field("era", era)?;
        res.serialize_field("error", failure)?;
        res.end()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use mcp_model::{ErrorKind, ServerId, Severity};
    use mcp_registry::Problem;

    use super::*;

    #[test]
    fn it_is_the_json_of_the_tools_command() {
        let id = ServerId::parse("a").unwrap();
        let failure = HostError { kind: ErrorKind::Connection, message: "m".into(), help: Some("h".into()) };
        let published = HostSnapshot {
            generation: 3,
            catalog: Arc::new(Catalog::empty()),
            servers: vec![
                ServerStatus { id: "a".into(), state: ServerState::Failed, era: None, error: Some(failure) },
                ServerStatus {
                    id: "b".into(),
                    state: ServerState::Ready,
                    era: Some(Era::Modern),
                    error: None,
                },
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

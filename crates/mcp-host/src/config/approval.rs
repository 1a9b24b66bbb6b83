//! What is approved of servers, and what is done about the rest; and what a server offers now, to be approved.

use std::sync::Arc;

use mcp_model::ServerId;
use mcp_registry::{Drift, DriftPolicy, ListKind, LockFile, ServerIdentity, ServerLists, ServerSnapshot};
use mcp_transport::ServerInfo;

/// A lock, and how strictly it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Approval {
    /// What was approved.
    pub lock: Arc<LockFile>,
    /// What is done about everything else.
    pub policy: DriftPolicy,
}

/// What a server offers, whether it is shown or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDefinitions {
    /// What would be approved, were it approved now.
    pub observed: ServerSnapshot,
    /// Its lists.
    pub lists: Arc<ServerLists>,
    /// The lists that were read; of the others nothing is known.
    pub read_lists: Vec<ListKind>,
    /// Its instructions, as they came.
    pub instructions: Option<String>,
}

impl Approval {
    /// How a server differs from what was approved of it.
    pub(crate) fn drift(&self, server: &ServerId, seen: &ServerSnapshot, read: &[ListKind]) -> Drift {
        Drift::compute(self.lock.server(server), seen, read, self.policy)
    }
}

impl ServerDefinitions {
    /// What a session offers: what it says of itself, and those of its lists that were read.
    pub fn of(info: &ServerInfo, lists: ServerLists, read: Vec<ListKind>) -> ServerDefinitions {
        let seen = ServerSnapshot::of(about(info), &lists);
        ServerDefinitions {
            observed: seen,
            lists: Arc::new(lists),
            read_lists: read,
            instructions: info.instructions.clone(),
        }
    }

    /// How it differs from what was approved of this server.
    pub fn drift(&self, server: &ServerId, approval: &Approval) -> Drift {
        approval.drift(server, &self.observed, &self.read_lists)
    }
}

/// What a server says about itself, as far as it is approved.
pub(crate) fn about(info: &ServerInfo) -> ServerIdentity {
    let text = |it: &str| Some(it.to_owned()).filter(|it| !it.is_empty());
    ServerIdentity::of(
        text(&info.name).as_deref(),
        text(&info.version).as_deref(),
        info.instructions.as_deref(),
    )
}

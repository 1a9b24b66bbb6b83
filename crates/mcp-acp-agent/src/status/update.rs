//! `session/update` notifications about the servers of a session.
//!
//! A client that supports notices shows them to its user. Any other client receives the same status in the `_meta` of a
//! `session_info_update`, which changes nothing else.

use std::collections::HashMap;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{ConnectionState, SessionServerStatus, StatusStream};

/// Whether a client supports notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum NoticeSupport {
    /// It declared `clientCapabilities.session.notices` in `initialize`, or it uses version 2, where any agent may send
    /// notices.
    Supported,
    /// It did not.
    #[default]
    Unsupported,
}

#[cfg(feature = "sdk")]
impl From<&agent_client_protocol::v1::schema::ClientCapabilities> for NoticeSupport {
    fn from(capabilities: &agent_client_protocol::v1::schema::ClientCapabilities) -> NoticeSupport {
        match capabilities.session.as_ref().is_some_and(|session| session.notices.is_some()) {
            true => NoticeSupport::Supported,
            false => NoticeSupport::Unsupported,
        }
    }
}

/// The `update` member of a `session/update` notification.
///
/// Converts to `SessionUpdate` of both versions of the SDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    status: SessionServerStatus,
    notices: NoticeSupport,
}

impl StatusUpdate {
    /// Returns the status that it reports.
    pub fn status(&self) -> &SessionServerStatus {
        &self.status
    }

    /// Returns the text for a user, for clients that have no place for notices.
    pub fn message(&self) -> String {
        let name = self.status.name.escape_debug();
        match &self.status.state {
            ConnectionState::Failed(error) => error.to_string(),
            ConnectionState::Connecting => format!("MCP server '{name}' is not connected yet"),
            ConnectionState::Connected => format!("MCP server '{name}' is connected"),
            ConnectionState::LoginRequired(_) => format!("MCP server '{name}' requires a login"),
            ConnectionState::NotStarted => format!("MCP server '{name}' is not started yet"),
            ConnectionState::Idle => {
                format!("MCP server '{name}' was stopped to make room for other sessions")
            }
            ConnectionState::Closed => format!("MCP server '{name}' is closed"),
        }
    }

    /// What the user can do, or what follows.
    fn description(&self) -> Option<String> {
        let text = match &self.status.state {
            ConnectionState::Failed(error) => error.suggestion(),
            ConnectionState::Connecting => "the session begins without it; its tools appear when it is ready",
            ConnectionState::LoginRequired(page) => {
                return Some(format!(
                    "open this page in a browser on the agent's machine: {}",
                    page.as_str()
                ));
            }
            ConnectionState::NotStarted => "it starts when the session is used",
            ConnectionState::Idle => "it starts again when the session is used",
            ConnectionState::Connected | ConnectionState::Closed => return None,
        };
        Some(text.to_owned())
    }

    fn to_value(&self) -> Value {
        let meta = json!({ "mcpServers": [self.status] });
        match self.notices {
            NoticeSupport::Unsupported => json!({ "sessionUpdate": "session_info_update", "_meta": meta }),
            NoticeSupport::Supported => {
                let severity = match self.status.state {
                    ConnectionState::Failed(_) | ConnectionState::LoginRequired(_) => "warning",
                    ConnectionState::Connecting
                    | ConnectionState::Connected
                    | ConnectionState::NotStarted
                    | ConnectionState::Idle
                    | ConnectionState::Closed => "info",
                };
                let mut notice = json!({
                    "sessionUpdate": "notice",
                    "severity": severity,
                    "title": self.message(),
                    "_meta": meta,
                });
                if let Some(description) = self.description() {
                    notice["description"] = description.into();
                }
                notice
            }
        }
    }
}

impl Serialize for StatusUpdate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

#[cfg(feature = "sdk")]
impl From<StatusUpdate> for agent_client_protocol::v1::schema::SessionUpdate {
    fn from(update: StatusUpdate) -> agent_client_protocol::v1::schema::SessionUpdate {
        serde_json::from_value(update.to_value()).expect("version 1 has notices and session information")
    }
}

#[cfg(feature = "protocol-v2")]
impl From<StatusUpdate> for agent_client_protocol::v2::schema::SessionUpdate {
    fn from(update: StatusUpdate) -> agent_client_protocol::v2::schema::SessionUpdate {
        serde_json::from_value(update.to_value()).expect("version 2 has notices and session information")
    }
}

/// The `session/update` notifications about the servers of a session; see
/// [`SessionServers::status_updates`](crate::SessionServers::status_updates).
pub struct StatusUpdates {
    statuses: StatusStream,
    notices: NoticeSupport,
    /// The last reported state of each server.
    reported: HashMap<String, &'static str>,
}

impl StatusUpdates {
    pub(crate) fn new(statuses: StatusStream, notices: NoticeSupport) -> StatusUpdates {
        StatusUpdates { statuses, notices, reported: HashMap::new() }
    }

    /// Returns the next update; `None` after the session has ended. The end of a session is not reported, because the
    /// client caused it. Cancel-safe.
    pub async fn next(&mut self) -> Option<StatusUpdate> {
        loop {
            let status = self.statuses.next().await?;
            let state = status.state.as_str();
            let previous = self.reported.get(&status.name).copied();
            let is_news = match status.state {
                // Repeated failures and changes of the tool list are no news.
                ConnectionState::Failed(_) | ConnectionState::LoginRequired(_) | ConnectionState::Idle => {
                    previous != Some(state)
                }
                ConnectionState::Connected => previous.is_some_and(|previous| previous != state),
                ConnectionState::Connecting => previous.is_none(),
                ConnectionState::NotStarted | ConnectionState::Closed => false,
            };
            if is_news || previous.is_none() {
                self.reported.insert(status.name.clone(), state);
            }
            if is_news {
                return Some(StatusUpdate { status, notices: self.notices });
            }
        }
    }
}

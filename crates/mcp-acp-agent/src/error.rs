//! Why a session has no servers: the request is wrong, or the world is. Both have a JSON-RPC error, and nothing secret
//! in it.

use std::fmt;
use std::time::Duration;

use mcp_acp::{InvalidParams, ServerStartError, SessionRequestError};
use mcp_model::{RawJson, RpcError};
use serde_json::Value;

/// Why a session's servers are not there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionSetupError {
    /// The request is refused: its parameters are wrong, or ask for what was not declared (ACP-016).
    Refused(SessionRequestError),
    /// Servers that the session cannot do without are not there, in the order of its list (ACPX-03).
    ///
    /// Invariant: at least one.
    Failed(Vec<ServerStartError>),
    /// The agent has as many sessions with servers as it takes.
    TooManySessions {
        /// How many that is.
        most: usize,
    },
    /// The session's folders could not be looked at: the disk that they are on does not answer (ACPX-02).
    FolderCheckTimeout {
        /// How long was waited.
        after: Duration,
    },
    /// The session was closed while its servers were being connected. They are closed as well.
    Closed,
    /// More servers are asked for than a session may have. Nothing was started.
    TooManyServers {
        /// How many are asked for.
        asked: usize,
        /// How many there may be.
        most: usize,
    },
}

impl From<SessionRequestError> for SessionSetupError {
    fn from(refusal: SessionRequestError) -> SessionSetupError {
        SessionSetupError::Refused(refusal)
    }
}

impl From<InvalidParams> for SessionSetupError {
    fn from(invalid: InvalidParams) -> SessionSetupError {
        SessionSetupError::Refused(SessionRequestError::InvalidParams(invalid))
    }
}

impl fmt::Display for SessionSetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionSetupError::Refused(refusal) => refusal.fmt(f),
            SessionSetupError::Failed(failures) => match failures.split_first() {
                Some((first, [])) => first.fmt(f),
                Some((first, others)) => write!(f, "{first} (and {} more)", others.len()),
                None => f.write_str("no server failed"),
            },
            SessionSetupError::TooManySessions { most } => {
                write!(f, "this agent has no room for more than {most} sessions with MCP servers at once")
            }
            SessionSetupError::FolderCheckTimeout { after } => {
                write!(f, "the session's folders could not be looked at within {} s", after.as_secs())
            }
            SessionSetupError::Closed => {
                f.write_str("the session was closed while its MCP servers were being connected")
            }
            SessionSetupError::TooManyServers { asked, most } => {
                write!(f, "{asked} MCP servers are asked for, and a session may have {most} at most")
            }
        }
    }
}

impl std::error::Error for SessionSetupError {}

impl From<&SessionSetupError> for RpcError {
    /// The refusal's error; or the first failure's, whose data has `failures` with every one where there are several.
    fn from(error: &SessionSetupError) -> RpcError {
        match error {
            SessionSetupError::Refused(refusal) => RpcError::from(refusal),
            SessionSetupError::Failed(failures) => {
                let mut all = failures.iter().map(RpcError::from);
                let Some(mut res) = all.next() else {
                    return RpcError::new(mcp_acp::code::INTERNAL_ERROR, error.to_string());
                };
                res.message = error.to_string();
                let others: Vec<_> = failures.iter().map(RpcError::from).collect();
                if let ([_, _, ..], Some(data)) = (others.as_slice(), &res.data) {
                    let mut data: serde_json::Map<String, Value> = data.read().unwrap_or_default();
                    data.insert("failures".to_owned(), serde_json::json!(others));
                    res.data = RawJson::from_value(&data).ok();
                }
                res
            }
            SessionSetupError::TooManySessions { most } => {
                let data = serde_json::json!({ "limit": most, "suggestion": "close a session first" });
                let error = RpcError::new(mcp_acp::code::INTERNAL_ERROR, error.to_string());
                RpcError { data: RawJson::from_value(&data).ok(), ..error }
            }
            SessionSetupError::FolderCheckTimeout { after } => {
                let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                let suggestion = "see whether the disk answers that they are on";
                let data = serde_json::json!({ "afterMs": after, "suggestion": suggestion });
                let error = RpcError::new(mcp_acp::code::INTERNAL_ERROR, error.to_string());
                RpcError { data: RawJson::from_value(&data).ok(), ..error }
            }
            SessionSetupError::Closed => RpcError::new(mcp_acp::code::INTERNAL_ERROR, error.to_string()),
            SessionSetupError::TooManyServers { asked, most } => {
                let data = serde_json::json!({ "servers": asked, "limit": most });
                let error = RpcError::new(mcp_acp::code::INVALID_PARAMS, error.to_string());
                RpcError { data: RawJson::from_value(&data).ok(), ..error }
            }
        }
    }
}

#[cfg(feature = "sdk")]
impl From<SessionSetupError> for agent_client_protocol::Error {
    fn from(error: SessionSetupError) -> agent_client_protocol::Error {
        crate::request::sdk_error(&RpcError::from(&error))
    }
}

//! Errors of setting up a session: an invalid request, or failed servers. Both convert to JSON-RPC errors without
//! secrets.

use std::fmt;
use std::time::Duration;

use mcp_acp::{InvalidParams, ServerStartError, SessionRequestError};
use mcp_model::{RawJson, RpcError};
use serde_json::Value;

/// The error of setting up a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionSetupError {
    /// The request is refused: its parameters are invalid, or require an undeclared capability (ACP-016).
    Refused(SessionRequestError),
    /// Required servers failed, in the order of the request (ACPX-03).
    ///
    /// Invariant: at least one.
    Failed(Vec<ServerStartError>),
    /// The agent has the maximum number of sessions with servers.
    TooManySessions {
        /// The maximum.
        most: usize,
    },
    /// The check of the session's folders timed out, because a disk does not respond (ACPX-02).
    FolderCheckTimeout {
        /// The timeout.
        after: Duration,
    },
    /// The session was closed during the connection. Its servers are closed, too.
    Closed,
    /// The request has more servers than a session may have. Nothing was started.
    TooManyServers {
        /// The requested number.
        asked: usize,
        /// The maximum.
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
    /// Converts to the request's error, or to the first server's error; `data.failures` has all of several.
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
                let suggestion = "check that their disk responds";
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
        sdk_error(&RpcError::from(&error))
    }
}

/// Converts an error for the SDK's handlers.
#[cfg(feature = "sdk")]
fn sdk_error(error: &RpcError) -> agent_client_protocol::Error {
    let number =
        i32::try_from(error.code).unwrap_or(i32::from(agent_client_protocol::ErrorCode::INTERNAL_ERROR));
    let res = agent_client_protocol::Error::new(number, error.message.clone());
    match &error.data {
        Some(data) => res.data(data.read::<Value>().expect("raw JSON is JSON")),
        None => res,
    }
}

//! Why a session has no servers: the request is wrong, or the world is. Both have a JSON-RPC error, and nothing secret
//! in it.

use std::fmt;
use std::time::Duration;

use mcp_acp::{Failure, InvalidParams, Refusal};
use mcp_model::{RawJson, RpcError};
use serde_json::Value;

/// Why a session's servers are not there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetUpError {
    /// The request is refused: its parameters are wrong, or ask for what was not declared (ACP-016).
    Refused(Refusal),
    /// Servers that the session cannot do without are not there, in the order of its list (ACPX-03).
    ///
    /// Invariant: at least one.
    Failed(Vec<Failure>),
    /// The agent has as many sessions with servers as it takes.
    NoRoom {
        /// How many that is.
        most: usize,
    },
    /// The session's folders could not be looked at: the disk that they are on does not answer (ACPX-02).
    FoldersLate {
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

impl From<Refusal> for SetUpError {
    fn from(refusal: Refusal) -> SetUpError {
        SetUpError::Refused(refusal)
    }
}

impl From<InvalidParams> for SetUpError {
    fn from(invalid: InvalidParams) -> SetUpError {
        SetUpError::Refused(Refusal::InvalidParams(invalid))
    }
}

impl fmt::Display for SetUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetUpError::Refused(refusal) => refusal.fmt(f),
            SetUpError::Failed(failures) => match failures.split_first() {
                Some((first, [])) => first.fmt(f),
                Some((first, others)) => write!(f, "{first} (and {} more)", others.len()),
                None => f.write_str("no server failed"),
            },
            SetUpError::NoRoom { most } => {
                write!(f, "this agent has no room for more than {most} sessions with MCP servers at once")
            }
            SetUpError::FoldersLate { after } => {
                write!(f, "the session's folders could not be looked at within {} s", after.as_secs())
            }
            SetUpError::Closed => {
                f.write_str("the session was closed while its MCP servers were being connected")
            }
            SetUpError::TooManyServers { asked, most } => {
                write!(f, "{asked} MCP servers are asked for, and a session may have {most} at most")
            }
        }
    }
}

impl std::error::Error for SetUpError {}

impl From<&SetUpError> for RpcError {
    /// The refusal's error; or the first failure's, whose data has `failures` with every one where there are several.
    fn from(error: &SetUpError) -> RpcError {
        match error {
            SetUpError::Refused(refusal) => RpcError::from(refusal),
            SetUpError::Failed(failures) => {
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
            SetUpError::NoRoom { most } => {
                let data = serde_json::json!({ "limit": most, "suggestion": "close a session first" });
                let error = RpcError::new(mcp_acp::code::INTERNAL_ERROR, error.to_string());
                RpcError { data: RawJson::from_value(&data).ok(), ..error }
            }
            SetUpError::FoldersLate { after } => {
                let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                let suggestion = "see whether the disk answers that they are on";
                let data = serde_json::json!({ "afterMs": after, "suggestion": suggestion });
                let error = RpcError::new(mcp_acp::code::INTERNAL_ERROR, error.to_string());
                RpcError { data: RawJson::from_value(&data).ok(), ..error }
            }
            SetUpError::Closed => RpcError::new(mcp_acp::code::INTERNAL_ERROR, error.to_string()),
            SetUpError::TooManyServers { asked, most } => {
                let data = serde_json::json!({ "servers": asked, "limit": most });
                let error = RpcError::new(mcp_acp::code::INVALID_PARAMS, error.to_string());
                RpcError { data: RawJson::from_value(&data).ok(), ..error }
            }
        }
    }
}

#[cfg(feature = "sdk")]
impl From<SetUpError> for agent_client_protocol::Error {
    fn from(error: SetUpError) -> agent_client_protocol::Error {
        crate::request::sdk_error(&RpcError::from(&error))
    }
}

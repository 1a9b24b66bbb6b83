//! Errors of setting up a session: an invalid request, or failed servers. Both convert to JSON-RPC errors without
//! secrets.

use std::time::Duration;

use mcp_host_acp::{InvalidParams, ServerStartError, SessionRequestError, code};
use mcp_host_model::{RawJson, RpcError};
use serde_json::{Map, Value, json};
use thiserror::Error;

/// The error of setting up a session.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionSetupError {
    /// The request is refused: its parameters are invalid, or require an undeclared capability (ACP-016).
    #[error(transparent)]
    Refused(#[from] SessionRequestError),
    /// Required servers failed, in the order of the request (ACPX-03).
    ///
    /// Invariant: at least one.
    #[error("{}", failed_message(.0))]
    Failed(Vec<ServerStartError>),
    /// The agent has the maximum number of sessions with servers, and all of them are in use.
    #[error("this agent has the maximum of {limit} sessions with MCP servers, and all of them are in use")]
    TooManySessions {
        /// The maximum.
        limit: usize,
    },
    /// The check of the session's folders timed out, because a disk does not respond (ACPX-02).
    #[error("the session's folders could not be checked within {} s", timeout.as_secs())]
    FolderCheckTimeout {
        /// The timeout.
        timeout: Duration,
    },
    /// The session was closed during the connection. Its servers are closed, too.
    #[error("the session was closed while its MCP servers were being connected")]
    Closed,
    /// The request has more servers than a session may have. Nothing was started.
    #[error("the request has {requested} MCP servers; a session may have at most {limit}")]
    TooManyServers {
        /// The requested number.
        requested: usize,
        /// The maximum.
        limit: usize,
    },
}

impl From<InvalidParams> for SessionSetupError {
    fn from(invalid: InvalidParams) -> SessionSetupError {
        SessionSetupError::Refused(SessionRequestError::InvalidParams(invalid))
    }
}

fn failed_message(failures: &[ServerStartError]) -> String {
    match failures {
        [] => "no server failed".to_owned(),
        [first] => first.to_string(),
        [first, others @ ..] => format!("{first} (and {} more)", others.len()),
    }
}

impl From<&SessionSetupError> for RpcError {
    /// Converts to the request's error, or to the first server's error; `data.failures` has all of several.
    fn from(error: &SessionSetupError) -> RpcError {
        let to_raw = |data: &Value| RawJson::from_value(data).ok();
        let (code, data) = match error {
            SessionSetupError::Refused(refused) => return RpcError::from(refused),
            SessionSetupError::Failed(failures) => {
                let failures: Vec<_> = failures.iter().map(RpcError::from).collect();
                let first = failures.first().and_then(|first| first.data.clone());
                let data = match (first, &failures[..]) {
                    (Some(first), [_, _, ..]) => {
                        let mut data: Map<String, Value> = first.read().unwrap_or_default();
                        data.insert("failures".to_owned(), json!(failures));
                        to_raw(&Value::Object(data))
                    }
                    (first, _) => first,
                };
                (code::INTERNAL_ERROR, data)
            }
            SessionSetupError::TooManySessions { limit } => {
                let data = json!({ "limit": limit,
                    "suggestion": "close a session, or start the agent with a higher limit" });
                (code::INTERNAL_ERROR, to_raw(&data))
            }
            SessionSetupError::FolderCheckTimeout { timeout } => {
                let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                let data = json!({ "afterMs": timeout, "suggestion": "check that their disk responds" });
                (code::INTERNAL_ERROR, to_raw(&data))
            }
            SessionSetupError::Closed => (code::INTERNAL_ERROR, None),
            SessionSetupError::TooManyServers { requested, limit } => {
                (code::INVALID_PARAMS, to_raw(&json!({ "servers": requested, "limit": limit })))
            }
        };
        RpcError { data, ..RpcError::new(code, error.to_string()) }
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
    let sdk_error = agent_client_protocol::Error::new(number, error.message.clone());
    match &error.data {
        Some(data) => sdk_error.data(data.read::<Value>().expect("raw JSON is JSON")),
        None => sdk_error,
    }
}

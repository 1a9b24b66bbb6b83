//! JSON-RPC errors of servers: reading and redaction.

use mcp_host_model::{RpcError, code};
use serde::Deserialize;

use crate::transport::Dial;

/// Reads the JSON-RPC error at the start of `payload`. An error that cannot be read becomes an internal error.
pub(crate) fn read_error(payload: &[u8]) -> RpcError {
    RpcError::deserialize(&mut serde_json::Deserializer::from_slice(payload))
        .unwrap_or_else(|_| RpcError::new(code::INTERNAL_ERROR, "an error that cannot be read"))
}

/// Redacts secrets in a server's error. Error data that contains a secret is removed.
pub(crate) fn redact_error(error: RpcError, dial: &dyn Dial) -> RpcError {
    let data = error.data.filter(|it| dial.redact_json(it.as_str()).is_none());
    RpcError { code: error.code, message: dial.redact(&error.message), data }
}

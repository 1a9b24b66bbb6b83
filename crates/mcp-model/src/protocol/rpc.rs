//! JSON-RPC errors.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::code;
use crate::json::raw::RawJson;

/// The `error` member of a JSON-RPC response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "the members of JSON-RPC 2.0, which is final")]
pub struct RpcError {
    /// The error code; see [`code`](crate::code).
    pub code: i64,
    /// The description of the error.
    pub message: String,
    /// Additional data from the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
}

impl RpcError {
    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }
}

impl<'de> Deserialize<'de> for RpcError {
    /// Reads leniently, because a response with a malformed error is still a response: a code that is not an integer
    /// becomes [`code::INTERNAL_ERROR`], a missing message becomes empty, and an error that is not an object is its own
    /// message.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RpcError, D::Error> {
        #[derive(Deserialize)]
        struct RpcErrorJson<'a> {
            #[serde(borrow)]
            code: Option<&'a RawValue>,
            #[serde(borrow)]
            message: Option<&'a RawValue>,
            #[serde(borrow)]
            data: Option<&'a RawValue>,
        }
        let raw = <&RawValue>::deserialize(deserializer)?;
        let wire = match serde_json::from_str::<RpcErrorJson<'_>>(raw.get()) {
            Ok(wire) if raw.get().starts_with('{') => wire,
            Ok(_) | Err(_) => RpcErrorJson { code: None, message: Some(raw), data: None },
        };
        let message = wire.message.map(RawJson::copy_of);
        Ok(RpcError {
            code: wire.code.and_then(|it| it.get().parse().ok()).unwrap_or(code::INTERNAL_ERROR),
            message: message
                .map(|it| it.to_text().map_or_else(|| it.as_str().to_owned(), Into::into))
                .unwrap_or_default(),
            data: wire.data.map(RawJson::copy_of),
        })
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wire: &str, want: &str) {
        assert_eq!(serde_json::from_str::<RpcError>(wire).unwrap().to_string(), want);
    }

    #[test]
    fn malformed_error_members_are_replaced() {
        check(r#"{"code":-32601,"message":"Method not found"}"#, "Method not found (code -32601)");
        check(r#"{"code":"E_NOPE","message":{"a":1}}"#, r#"{"a":1} (code -32603)"#);
        check(r#"{"code":1.5}"#, " (code -32603)");
        // RPT-032
        check(r#""it broke""#, "it broke (code -32603)");
        check("7", "7 (code -32603)");
        check(r#"["a"]"#, r#"["a"] (code -32603)"#);
    }
}

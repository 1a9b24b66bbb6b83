//! Responses to requests.

use bytes::Bytes;
use mcp_host_model::{RawJson, ToolResult};
use serde::de::DeserializeOwned;

use crate::error::CallError;
use crate::transport::RequestId;

/// A response with the id of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallResponse<T> {
    /// The result.
    pub value: T,
    /// The JSON-RPC id of the request.
    pub request_id: RequestId,
}

impl<T> CallResponse<T> {
    /// Converts the result.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> CallResponse<U> {
        CallResponse { value: convert(self.value), request_id: self.request_id }
    }
}

/// A response that is not parsed yet.
pub(crate) struct RawResponse {
    pub(super) frame: Bytes,
    pub(super) payload_start: usize,
    pub(crate) request_id: RequestId,
}

impl RawResponse {
    /// A response whose payload is this result.
    pub(crate) fn of_result(result: RawJson, request_id: RequestId) -> RawResponse {
        RawResponse { frame: result.into_bytes(), payload_start: 0, request_id }
    }

    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        T::deserialize(&mut serde_json::Deserializer::from_slice(self.payload()))
            .map_err(|it| self.parse_error(&it))
    }

    /// Parses the result with `read`. The payload is followed by the rest of the message.
    pub(crate) fn read_by<T>(&self, read: fn(&[u8]) -> Result<T, serde_json::Error>) -> Result<T, CallError> {
        read(self.payload()).map_err(|it| self.parse_error(&it))
    }

    /// The result of a tool, with a fast path for the usual form.
    pub(crate) fn tool_result(&self) -> Result<ToolResult, CallError> {
        match str::from_utf8(self.payload()).ok().and_then(ToolResult::parse_known_blocks) {
            Some(result) => Ok(result),
            None => self.read(),
        }
    }

    /// The result unchanged.
    pub(crate) fn raw(&self) -> Result<RawJson, CallError> {
        RawJson::parse_prefix(self.frame.slice(self.payload_start..)).map_err(|it| self.parse_error(&it))
    }

    /// The parse error. A wrong encoding is an error of its own, because the user can correct it.
    fn parse_error(&self, error: &serde_json::Error) -> CallError {
        match std::str::from_utf8(self.payload()) {
            Err(utf8_error) => CallError::NotUtf8 { byte: utf8_error.valid_up_to() + 1 },
            Ok(_) => CallError::InvalidResponse(error.to_string()),
        }
    }

    /// Whether the result requires input.
    pub(crate) fn is_input_required(&self) -> bool {
        #[derive(serde::Deserialize)]
        struct Typed {
            #[serde(rename = "resultType")]
            result_type: Option<String>,
        }
        memchr::memmem::find(self.payload(), b"\"input_required\"").is_some()
            && self.read::<Typed>().is_ok_and(|it| it.result_type.as_deref() == Some("input_required"))
    }

    /// The payload, followed by the rest of the message.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.frame[self.payload_start..]
    }
}

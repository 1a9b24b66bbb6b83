//! Responses to requests.

use bytes::Bytes;
use mcp_host_model::internal::replace_unpaired_surrogates;
use mcp_host_model::{Era, ParsedToolResult, RawJson, ResultInfo, RpcError, ToolResult, read_result};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::CallError;
use crate::session::server_error::{read_error, redact_error};
use crate::transport::scan::{find_error_after, find_value_end};
use crate::transport::{Dial, RequestId};

/// A response with the id of its request, and the kind of its result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallResponse<T> {
    /// The result.
    pub value: T,
    /// The JSON-RPC id of the request.
    pub request_id: RequestId,
    /// The kind of the result as the server sent it.
    pub info: ResultInfo,
}

impl<T> CallResponse<T> {
    /// Converts the result.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> CallResponse<U> {
        CallResponse { value: convert(self.value), request_id: self.request_id, info: self.info }
    }

    /// Converts the result with `read`. Its error becomes [`CallError::InvalidResponse`].
    pub fn try_map<U>(
        self,
        read: impl FnOnce(T) -> Result<U, serde_json::Error>,
    ) -> Result<CallResponse<U>, CallError> {
        let CallResponse { value, request_id, info } = self;
        let value = read(value).map_err(|it| CallError::InvalidResponse(it.to_string()))?;
        Ok(CallResponse { value, request_id, info })
    }
}

/// A response that is not parsed yet.
pub(crate) struct RawResponse {
    /// The whole message.
    pub(super) frame: Bytes,
    /// The position of the result or error in the message.
    pub(super) payload_start: usize,
    /// The era of the server.
    pub(super) era: Era,
    pub(super) request_id: RequestId,
}

/// A response with its parsed result, or the error of parsing it.
pub(crate) struct ParsedResponse<T> {
    pub(super) raw: RawResponse,
    /// The kind of the result. It is known even if the result cannot be read in this form.
    pub(super) info: ResultInfo,
    value: Result<T, CallError>,
}

/// A type that results are parsed into.
pub(crate) trait ResultForm: Sized {
    /// Parses the result of a response and finds its kind, in one pass. `dial` redacts an error beside the result.
    fn read(response: RawResponse, dial: &dyn Dial) -> ParsedResponse<Self>;
}

impl ResultForm for RawJson {
    fn read(raw: RawResponse, dial: &dyn Dial) -> ParsedResponse<RawJson> {
        let (info, value) = match read_result(raw.frame.slice(raw.payload_start..), raw.era) {
            Ok((result, info)) => match raw.error_after(result.as_bytes().len(), dial) {
                None => (info, Ok(result)),
                Some(error) => (ResultInfo::default(), Err(error)),
            },
            Err(error) => (ResultInfo::default(), Err(raw.parse_error(&error))),
        };
        ParsedResponse { raw, info, value }
    }
}

impl ResultForm for ToolResult {
    fn read(raw: RawResponse, dial: &dyn Dial) -> ParsedResponse<ToolResult> {
        let text = str::from_utf8(raw.payload());
        // Fast path for a result of known content blocks.
        if let Some(ParsedToolResult { result, info, length, .. }) =
            text.ok().and_then(ToolResult::parse_known_blocks)
        {
            let value = raw.error_after(length, dial).map_or(Ok(result), Err);
            return ParsedResponse { raw, info, value };
        }
        let value = raw.read();
        let ParsedResponse { raw, info, value: whole } = <RawJson as ResultForm>::read(raw, dial);
        // An error beside the result counts.
        let value = whole.and(value);
        ParsedResponse { raw, info, value }
    }
}

/// The error beside the result at `payload_start`, if there is one.
pub(crate) fn find_error_beside(frame: &[u8], payload_start: usize, dial: &dyn Dial) -> Option<RpcError> {
    // The end of a long result is searched only if there can be an error behind it.
    memchr::memmem::find(&frame[payload_start..], b"\"error\"")?;
    let start = find_error_after(frame, find_value_end(frame, payload_start)?)?;
    Some(redact_error(read_error(&frame[start..]), dial))
}

impl<T> ParsedResponse<T> {
    /// The response for the caller.
    pub(super) fn into_response(self) -> Result<CallResponse<T>, CallError> {
        let ParsedResponse { raw, info, value } = self;
        Ok(CallResponse { value: value?, request_id: raw.request_id, info })
    }

    /// The response for the caller, with another value.
    pub(super) fn with_value<U>(self, value: U) -> CallResponse<U> {
        CallResponse { value, request_id: self.raw.request_id, info: self.info }
    }
}

impl RawResponse {
    /// This response with `result`, a part of its payload, as its payload.
    pub(super) fn with_payload(&self, result: &RawValue) -> RawResponse {
        RawResponse { frame: self.frame.slice_ref(result.get().as_bytes()), payload_start: 0, ..*self }
    }

    /// The response for the caller, with the result byte for byte.
    pub(super) fn into_response(self, dial: &dyn Dial) -> Result<CallResponse<RawJson>, CallError> {
        <RawJson as ResultForm>::read(self, dial).into_response()
    }

    /// The error beside a result of `length` bytes, if there is one. A server that sends both has failed.
    fn error_after(&self, length: usize, dial: &dyn Dial) -> Option<CallError> {
        let start = find_error_after(&self.frame, self.payload_start + length)?;
        Some(CallError::Rpc(redact_error(read_error(&self.frame[start..]), dial)))
    }

    /// The error beside the result, if there is one.
    pub(super) fn error_beside(&self, dial: &dyn Dial) -> Option<RpcError> {
        find_error_beside(&self.frame, self.payload_start, dial)
    }

    /// The response with U+FFFD instead of unpaired surrogates.
    pub(super) fn without_unpaired_surrogates(self) -> RawResponse {
        RawResponse { frame: replace_unpaired_surrogates(self.frame), ..self }
    }

    /// Parses the payload.
    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, CallError> {
        T::deserialize(&mut serde_json::Deserializer::from_slice(self.payload()))
            .map_err(|it| self.parse_error(&it))
    }

    /// Parses the payload with `read`, which must ignore the rest of the message after the result.
    pub(crate) fn read_with<T>(
        &self,
        read: fn(&[u8]) -> Result<T, serde_json::Error>,
    ) -> Result<T, CallError> {
        read(self.payload()).map_err(|it| self.parse_error(&it))
    }

    /// The error for a payload that `error` describes. A payload that is not UTF-8 has an error of its own, because its
    /// cause is the server's encoding, which the user can correct.
    fn parse_error(&self, error: &serde_json::Error) -> CallError {
        match std::str::from_utf8(self.payload()) {
            Err(utf8_error) => CallError::NotUtf8 { byte: utf8_error.valid_up_to() + 1 },
            Ok(_) => CallError::InvalidResponse(error.to_string()),
        }
    }

    /// The result or error, followed by the rest of the message.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.frame[self.payload_start..]
    }
}

//! Writes JSON-RPC messages from parts that are valid JSON.
//!
//! Line breaks are replaced by spaces, so a message is one line on stdio and one `data` field of an event. This
//! does not change a message: JSON has line breaks only between tokens. The same pass replaces the escapes of unpaired
//! surrogates, which strict readers refuse, by that of U+FFFD.

use bytes::Bytes;
use mcp_host_model::internal::replace_escape_if_unpaired;
use mcp_host_model::{RawJson, RpcError};

use crate::protocol::result_body::{HandlerError, HandlerResult};

/// Writes the response to a request.
pub(crate) fn write_outcome(id: &RawJson, outcome: &HandlerResult) -> Bytes {
    match outcome {
        Ok(body) => write_response(id.as_bytes(), "result", &body.parts()),
        Err(HandlerError { error, .. }) => write_error(Some(id), error),
    }
}

/// Writes a response with a result.
pub(crate) fn write_result(id: &RawJson, result: &[u8]) -> Bytes {
    write_response(id.as_bytes(), "result", &[result])
}

/// Writes a response with an error. `id` is `None`, and null in the message, if the request's id could not be read.
pub(crate) fn write_error(id: Option<&RawJson>, error: &RpcError) -> Bytes {
    let error = serde_json::to_vec(error).expect("an error is JSON");
    write_response(id.map_or(b"null", RawJson::as_bytes), "error", &[&error])
}

/// Writes a response whose `member` has the concatenated parts of `value`.
fn write_response(id: &[u8], member: &str, value: &[&[u8]]) -> Bytes {
    let size: usize = value.iter().map(|part| part.len()).sum();
    let mut message = Vec::with_capacity(size + id.len() + 40);
    message.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    message.extend_from_slice(id);
    // The id is returned as the client wrote it.
    let start = message.len();
    message.extend_from_slice(b",\"");
    message.extend_from_slice(member.as_bytes());
    message.extend_from_slice(b"\":");
    value.iter().for_each(|part| message.extend_from_slice(part));
    message.push(b'}');
    to_strict_line(message, start)
}

/// Writes a notification. `params` must be a JSON object.
pub(crate) fn write_notification(method: &str, params: &str) -> Bytes {
    let message = format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, json_string(method));
    to_strict_line(message.into_bytes(), 0)
}

/// Writes a request to the client. `params` must be a JSON object.
pub(crate) fn write_request(id: u64, method: &str, params: &str) -> Bytes {
    let message =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#, json_string(method));
    to_strict_line(message.into_bytes(), 0)
}

/// Writes the JSON array of the responses to a batch.
pub(crate) fn write_batch(responses: &[Bytes]) -> Bytes {
    [b"[".as_slice(), &responses.join(&b','), b"]"].concat().into()
}

/// Quotes and escapes a text as a JSON string.
pub(crate) fn json_string(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

/// Replaces line breaks by spaces, and unpaired surrogates by U+FFFD, from this position on.
fn to_strict_line(mut message: Vec<u8>, mut from: usize) -> Bytes {
    while let Some(found) = memchr::memchr3(b'\n', b'\r', b'\\', &message[from..]) {
        let at = from + found;
        from = if message[at] == b'\\' {
            replace_escape_if_unpaired(&mut message, at)
        } else {
            message[at] = b' ';
            at + 1
        };
    }
    message.into()
}

#[cfg(test)]
mod tests {
    use mcp_host_model::code;

    use super::*;

    #[test]
    fn messages_have_no_line_breaks() {
        let id = RawJson::parse(Bytes::from_static(b"\"a\"")).unwrap();
        assert_eq!(
            write_result(&id, b"{\r\n \"x\": \"a\\nb\"\n}"),
            r#"{"jsonrpc":"2.0","id":"a","result":{   "x": "a\nb" }}"#
        );
        let wrong = RpcError::new(code::INTERNAL_ERROR, "a\nb");
        let want = format!(
            r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{},"message":"a\nb"}}}}"#,
            code::INTERNAL_ERROR
        );
        assert_eq!(write_error(None, &wrong), want);
        assert_eq!(write_notification("n/x", "{\n}"), r#"{"jsonrpc":"2.0","method":"n/x","params":{ }}"#);
        assert_eq!(write_request(7, "ping", "{}"), r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#);
        // RPT-034
        let id = RawJson::parse(Bytes::from_static(br#""\ud800""#)).unwrap();
        assert_eq!(
            write_result(&id, br#"{"a\udc00":"b\\\ud83d\ud83d\ude00\"","c":"\\ud800"}"#),
            br#"{"jsonrpc":"2.0","id":"\ud800","result":{"a\ufffd":"b\\\ufffd\ud83d\ude00\"","c":"\\ud800"}}"#
                .as_slice()
        );
        assert_eq!(
            write_notification("n", r#"{"a":"\ud800\n"}"#),
            r#"{"jsonrpc":"2.0","method":"n","params":{"a":"\ufffd\n"}}"#
        );
        assert_eq!(write_batch(&[Bytes::from_static(b"1"), Bytes::from_static(b"2")]), "[1,2]");
    }
}

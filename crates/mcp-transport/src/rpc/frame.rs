//! Serializes our own JSON-RPC messages, each once into the buffer that the transport sends.

use bytes::Bytes;
use mcp_host_model::{Method, RawJson, RpcError};
use serde::Serialize;
use serde_json::json;

use crate::transport::RequestId;

/// Writes one message. The parameters are written first, then `_meta`.
pub struct MessageWriter {
    buffer: Vec<u8>,
    /// Whether the object `params` was opened.
    has_params: bool,
}

/// The approximate size of a message without parameters, so that the buffer does not have to grow.
const ENVELOPE_BYTES: usize = 128;

impl MessageWriter {
    /// Starts a request, with capacity for parameters of about `size` bytes.
    pub fn request(id: RequestId, method: &str, size: usize) -> MessageWriter {
        let mut writer = MessageWriter::with_capacity(method, size);
        writer.buffer.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        writer.write_json(&id);
        writer.buffer.extend_from_slice(br#","method":""#);
        writer.with_method(method)
    }

    /// Starts a notification, with capacity for parameters of about `size` bytes.
    pub fn notification(method: &str, size: usize) -> MessageWriter {
        let mut writer = MessageWriter::with_capacity(method, size);
        writer.buffer.extend_from_slice(br#"{"jsonrpc":"2.0","method":""#);
        writer.with_method(method)
    }

    fn with_capacity(method: &str, size: usize) -> MessageWriter {
        MessageWriter { buffer: Vec::with_capacity(ENVELOPE_BYTES + method.len() + size), has_params: false }
    }

    /// Writes the method and the quote after it.
    fn with_method(mut self, method: &str) -> MessageWriter {
        self.buffer.extend_from_slice(method.as_bytes());
        self.buffer.push(b'"');
        self
    }

    /// Writes a string parameter.
    pub fn write_string_param(&mut self, name: &str, value: &str) {
        self.write_key(name);
        self.write_json(value);
    }

    /// Writes a parameter whose value is JSON text.
    pub fn write_json_param(&mut self, name: &str, value: &str) {
        self.write_key(name);
        self.buffer.extend_from_slice(value.as_bytes());
    }

    /// Writes parameters that are JSON members without braces; may be empty.
    pub fn write_params(&mut self, members: &str) {
        if !members.is_empty() {
            self.write_separator();
            self.buffer.extend_from_slice(members.as_bytes());
        }
    }

    /// Writes `_meta` with a progress token and with parts. A part is JSON members without braces; it may be empty.
    pub fn write_meta(&mut self, progress_token: Option<RequestId>, parts: &[&str]) {
        if progress_token.is_none() && parts.iter().all(|it| it.is_empty()) {
            return;
        }
        self.write_key("_meta");
        self.buffer.push(b'{');
        let mut separator: &[u8] = b"";
        if let Some(id) = progress_token {
            self.buffer.extend_from_slice(br#""progressToken":"#);
            self.write_json(&id);
            separator = b",";
        }
        for part in parts.iter().filter(|it| !it.is_empty()) {
            self.buffer.extend_from_slice(separator);
            self.buffer.extend_from_slice(part.as_bytes());
            separator = b",";
        }
        self.buffer.push(b'}');
    }

    /// Returns the complete message.
    pub fn finish(mut self) -> Bytes {
        self.buffer.extend_from_slice(if self.has_params { b"}}" } else { b"}" });
        self.buffer.into()
    }

    /// Writes the name of a parameter. It is one of our own and needs no escaping.
    fn write_key(&mut self, name: &str) {
        self.write_separator();
        self.buffer.push(b'"');
        self.buffer.extend_from_slice(name.as_bytes());
        self.buffer.extend_from_slice(b"\":");
    }

    /// Opens the object `params`, or writes the comma before a further parameter.
    fn write_separator(&mut self) {
        if std::mem::replace(&mut self.has_params, true) {
            self.buffer.push(b',');
        } else {
            self.buffer.extend_from_slice(br#","params":{"#);
        }
    }

    fn write_json<T: Serialize + ?Sized>(&mut self, value: &T) {
        serde_json::to_writer(&mut self.buffer, value).expect("numbers and strings are JSON");
    }
}

/// Builds a request. `params` and `meta` are JSON members without braces; both may be empty.
pub fn request(id: RequestId, method: &str, params: &str, meta: &str) -> Bytes {
    let mut writer = MessageWriter::request(id, method, params.len() + meta.len());
    writer.write_params(params);
    writer.write_meta(None, &[meta]);
    writer.finish()
}

/// Builds a notification. `params` and `meta` are JSON members without braces; both may be empty.
pub fn notification(method: &str, params: &str, meta: &str) -> Bytes {
    let mut writer = MessageWriter::notification(method, params.len() + meta.len());
    writer.write_params(params);
    writer.write_meta(None, &[meta]);
    writer.finish()
}

/// Serializes a string as JSON text.
pub fn json_string(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

/// Builds the `notifications/cancelled` for request `id`.
pub fn cancel_notification(id: RequestId, reason: &str) -> Bytes {
    notification(Method::Cancelled.as_str(), &format!(r#""requestId":{id},"reason":{}"#, json!(reason)), "")
}

/// Builds our response to a server request; `id` is the JSON text of its id.
pub fn response(id: &str, outcome: &Result<RawJson, RpcError>) -> Bytes {
    let body = match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, result.as_str()),
        Err(error) => {
            let error = serde_json::to_string(error).expect("an error is a plain object");
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
        }
    };
    body.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(frame: &Bytes, want: &str) {
        let text = str::from_utf8(frame).unwrap();
        serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(text, want);
    }

    #[test]
    fn messages_have_the_expected_text() {
        check(&request(7, "ping", "", ""), r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
        check(&request(7, "a", r#""x":1"#, ""), r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":1}}"#);
        check(
            &request(7, "a", r#""x":1"#, r#""v":2"#),
            r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":1,"_meta":{"v":2}}}"#,
        );
        check(
            &notification("n", "", r#""v":2"#),
            r#"{"jsonrpc":"2.0","method":"n","params":{"_meta":{"v":2}}}"#,
        );
        let mut writer = MessageWriter::request(7, "tools/call", 0);
        writer.write_string_param("name", "a\"b");
        writer.write_json_param("arguments", "{}");
        writer.write_meta(None, &["", "\"v\":2", ""]);
        let frame = writer.finish();
        check(
            &frame,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a\"b","arguments":{},"_meta":{"v":2}}}"#,
        );
        check(
            &cancel_notification(7, "it was \"late\""),
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"it was \"late\""}}"#,
        );
        check(&response("\"x\"", &Ok(RawJson::empty_object())), r#"{"jsonrpc":"2.0","id":"x","result":{}}"#);
        check(
            &response("3", &Err(RpcError::new(1, "no"))),
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no"}}"#,
        );
    }
}

//! Requests that are too large to be read: their ids, so that a client knows which request was refused, and the error.
//!
//! The official SDKs write the id behind the parameters, so the whole message is walked, without storing it. Only the
//! top level is read, and nothing is validated.

use bytes::Bytes;
use mcp_host_model::{RawJson, RpcError, code};

use crate::protocol::frame::{MAX_ID_BYTES, is_valid_id};

/// Maximum length of a key that is compared, in bytes, with its quotation marks.
const MAX_KEY_BYTES: usize = 16;

/// The error for a message that is larger than `max_bytes`.
pub(crate) fn message_size_error(max_bytes: usize) -> RpcError {
    let message = format!(
        "a message may have at most {max_bytes} bytes, and this one has more: send less at once, or raise the limit \
         with `--max-message-bytes` of the gateway"
    );
    RpcError::new(code::INVALID_REQUEST, message)
}

/// Finds the id of a request while its bytes arrive.
#[derive(Debug, Default)]
pub(crate) struct RequestIdScanner {
    /// The number of objects and arrays that are open.
    depth: usize,
    is_in_string: bool,
    /// Whether the next character of the string is escaped.
    is_escaped: bool,
    /// Whether the next text at the top level is a value.
    is_value: bool,
    /// The current key at the top level, with its quotation marks.
    key: Vec<u8>,
    /// The JSON text of the id.
    id: Vec<u8>,
    /// How often the key `id` occurs at the top level. A message that repeats it has no usable id.
    ids: usize,
    /// Whether the key `method` occurs at the top level.
    has_method: bool,
}

impl RequestIdScanner {
    /// Walks the next bytes of the message.
    pub(crate) fn scan(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.scan_byte(*byte);
        }
    }

    /// The id; `None` if the message is no request, or has no id that can be returned.
    pub(crate) fn finish(self) -> Option<RawJson> {
        let is_request = self.has_method && self.ids == 1;
        let id = RawJson::parse(Bytes::from(self.id)).ok().filter(|_| is_request)?;
        is_valid_id(id.as_str()).then_some(id)
    }

    fn scan_byte(&mut self, byte: u8) {
        if self.is_in_string {
            self.store(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.is_in_string = true;
                self.store(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => {
                self.is_value = true;
                self.ids += usize::from(self.key == b"\"id\"");
                self.has_method |= self.key == b"\"method\"";
            }
            b',' if self.depth == 1 => {
                self.is_value = false;
                self.key.clear();
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => self.store(byte),
        }
    }

    /// Stores a byte of a key, or of the id.
    fn store(&mut self, byte: u8) {
        let (text, limit) = match self.is_value {
            _ if self.depth != 1 => return,
            false => (&mut self.key, MAX_KEY_BYTES),
            true if self.key == b"\"id\"" => (&mut self.id, MAX_ID_BYTES + 1),
            true => return,
        };
        if text.len() < limit {
            text.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects the id of a message. Its bytes arrive one by one.
    #[track_caller]
    fn check(message: &str, want: Option<&str>) {
        let mut scanner = RequestIdScanner::default();
        message.as_bytes().chunks(1).for_each(|bytes| scanner.scan(bytes));
        assert_eq!(scanner.finish().as_ref().map(RawJson::as_str), want, "{message}");
    }

    // RPT-154
    #[test]
    fn id_of_a_request_is_found_wherever_it_is_written() {
        check(r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"id":1}}"#, Some("7"));
        check(r#"{"method":"m","params":{"id":1,"x":["id",{"id":2}]},"jsonrpc":"2.0","id":7}"#, Some("7"));
        check(r#" { "id" : "a\"}b" , "method" : "m" } "#, Some(r#""a\"}b""#));
        check(r#"{"id":-1.5e3,"method":"m","params":{"#, Some("-1.5e3"));
        check(r#"{"x":"\"id\":3","method":"m","id":4}"#, Some("4"));
    }

    #[test]
    fn message_without_a_usable_id_has_none() {
        check(r#"{"method":"m","params":{"id":1}}"#, None);
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"method":1}}"#, None);
        check(r#"{"id":null,"method":"m"}"#, None);
        check(r#"{"id":[1],"method":"m"}"#, None);
        check(r#"{"id":1,"id":2,"method":"m"}"#, None);
        check(&format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(MAX_ID_BYTES)), None);
        check("[{\"id\":1,\"method\":\"m\"}]", None);
        check("", None);
    }
}

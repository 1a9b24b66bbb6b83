//! Writes JSON-RPC messages from parts that are valid JSON.
//!
//! A message has no line break, so it is one line on stdio and one `data` field of an event. JSON has line breaks
//! only between tokens, where a space is equivalent.

use bytes::Bytes;
use mcp_model::{RawJson, RpcError};

/// A response with a result.
pub(crate) fn result(id: &RawJson, result: &[u8]) -> Bytes {
    let mut res = Vec::with_capacity(result.len() + id.as_bytes().len() + 40);
    res.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    res.extend_from_slice(id.as_bytes());
    res.extend_from_slice(br#","result":"#);
    res.extend_from_slice(result);
    res.push(b'}');
    one_line(res)
}

/// A response with an error. It has no id if the request could not be read.
pub(crate) fn error(id: Option<&RawJson>, error: &RpcError) -> Bytes {
    let error = serde_json::to_vec(error).expect("an error is JSON");
    let id = id.map_or(&b"null"[..], RawJson::as_bytes);
    let mut res = Vec::with_capacity(error.len() + id.len() + 40);
    res.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    res.extend_from_slice(id);
    res.extend_from_slice(br#","error":"#);
    res.extend_from_slice(&error);
    res.push(b'}');
    one_line(res)
}

/// A notification. `params` is a JSON object.
pub(crate) fn notification(method: &str, params: &str) -> Bytes {
    one_line(format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, text(method)).into_bytes())
}

/// A request to the client.
pub(crate) fn request(id: u64, method: &str, params: &str) -> Bytes {
    one_line(
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#, text(method)).into_bytes(),
    )
}

/// The responses to a batch.
pub(crate) fn batch(answers: &[Bytes]) -> Bytes {
    let mut res = vec![b'['];
    for (at, answer) in answers.iter().enumerate() {
        if at > 0 {
            res.push(b',');
        }
        res.extend_from_slice(answer);
    }
    res.push(b']');
    res.into()
}

/// A JSON string.
pub(crate) fn text(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

fn one_line(mut message: Vec<u8>) -> Bytes {
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', &message[from..]) {
        message[from + at] = b' ';
        from += at + 1;
    }
    message.into()
}

#[cfg(test)]
mod tests {
    use mcp_model::code;

    use super::*;

    #[test]
    fn messages_have_no_line_breaks() {
        let id = RawJson::parse(Bytes::from_static(b"\"a\"")).unwrap();
        assert_eq!(
            result(&id, b"{\r\n \"x\": \"a\\nb\"\n}"),
            r#"{"jsonrpc":"2.0","id":"a","result":{   "x": "a\nb" }}"#
        );
        let wrong = RpcError::new(code::INTERNAL_ERROR, "a\nb");
        let want = format!(
            r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{},"message":"a\nb"}}}}"#,
            code::INTERNAL_ERROR
        );
        assert_eq!(error(None, &wrong), want);
        assert_eq!(notification("n/x", "{\n}"), r#"{"jsonrpc":"2.0","method":"n/x","params":{ }}"#);
        assert_eq!(request(7, "ping", "{}"), r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#);
        assert_eq!(batch(&[Bytes::from_static(b"1"), Bytes::from_static(b"2")]), "[1,2]");
    }
}

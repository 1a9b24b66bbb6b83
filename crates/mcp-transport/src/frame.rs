//! Our own messages as bytes.

use std::fmt::Write as _;

use bytes::Bytes;
use mcp_model::{RawJson, RpcError};
use serde_json::json;

use crate::RequestId;

/// A request. `params` are the members of its parameters without the braces, `meta` those of `_meta`; both may be empty.
pub(crate) fn request(id: RequestId, method: &str, params: &str, meta: &str) -> Bytes {
    let mut res = String::with_capacity(96 + method.len() + params.len() + meta.len());
    write!(res, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}""#)
        .expect("writing to a string cannot fail");
    parameters(&mut res, params, meta);
    res.push('}');
    res.into()
}

/// A notification, likewise.
pub(crate) fn notification(method: &str, params: &str, meta: &str) -> Bytes {
    let mut res = String::with_capacity(64 + method.len() + params.len() + meta.len());
    write!(res, r#"{{"jsonrpc":"2.0","method":"{method}""#).expect("writing to a string cannot fail");
    parameters(&mut res, params, meta);
    res.push('}');
    res.into()
}

fn parameters(res: &mut String, params: &str, meta: &str) {
    if params.is_empty() && meta.is_empty() {
        return;
    }
    res.push_str(r#","params":{"#);
    res.push_str(params);
    if !meta.is_empty() {
        if !params.is_empty() {
            res.push(',');
        }
        res.push_str(r#""_meta":{"#);
        res.push_str(meta);
        res.push('}');
    }
    res.push('}');
}

/// The notice that nobody waits for `id` any more.
pub(crate) fn cancelled(id: RequestId, reason: &str) -> Bytes {
    notification("notifications/cancelled", &format!(r#""requestId":{id},"reason":{}"#, json!(reason)), "")
}

/// Our answer to a request of the peer; `id` is its id's JSON text.
pub(crate) fn answer(id: &str, outcome: &Result<RawJson, RpcError>) -> Bytes {
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
    fn messages_hold_what_they_must_and_no_more() {
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
        check(
            &cancelled(7, "it was \"late\""),
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"it was \"late\""}}"#,
        );
        check(&answer("\"x\"", &Ok(RawJson::empty_object())), r#"{"jsonrpc":"2.0","id":"x","result":{}}"#);
        check(
            &answer("3", &Err(RpcError::new(1, "no"))),
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no"}}"#,
        );
    }
}

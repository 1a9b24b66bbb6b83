//! Reads JSON-RPC messages of clients.
//!
//! The whole text is checked, so that parts of it can be inserted into other messages. The top-level keys decide the
//! kind of message before the id is checked. An unreadable message gets an error response, with its id if there is
//! one.

use std::borrow::Cow;

use bytes::Bytes;
use bytestring::ByteString;
use mcp_model::{JsonCursor, JsonSlice, RawJson, RpcError, code};
use serde_json::value::RawValue;

use crate::protocol::meta::Meta;
use crate::protocol::params::Params;

/// Maximum number of messages in a batch.
pub(crate) const MAX_BATCH: usize = 64;

/// Maximum nesting depth, which servers must be able to read.
const MAX_DEPTH: usize = 128;
/// Maximum size of an id in bytes, because it is stored and returned.
const MAX_ID_BYTES: usize = 1024;

/// A message.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "most messages are requests, and none is moved often")]
pub enum Incoming {
    /// A request.
    Request(Request),
    /// A notification.
    Notification(Notification),
    /// The response to a server request.
    Response(Response),
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// A JSON string or number, which is returned unchanged.
    pub id: RawJson,
    /// The method.
    pub method: ByteString,
    /// The parameters.
    pub params: Params,
    /// Its `_meta`.
    pub(crate) meta: Meta,
}

impl Request {
    /// A request with these parameters.
    pub(crate) fn new(id: RawJson, method: ByteString, params: Params) -> Request {
        let meta = Meta::of(&params);
        Request { id, method, params, meta }
    }
}

/// A notification.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    pub(crate) method: ByteString,
    /// The parameters.
    pub params: Params,
}

/// The response to a server request.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The request's id as JSON.
    pub(crate) id: RawJson,
    pub(crate) outcome: Result<RawJson, RpcError>,
}

/// A message that cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameError {
    /// The message's id, if it could be read.
    pub(crate) id: Option<RawJson>,
    /// The error for the client.
    pub error: RpcError,
}

impl FrameError {
    fn new(id: Option<RawJson>, code: i64, message: impl Into<String>) -> FrameError {
        FrameError { id, error: RpcError::new(code, message) }
    }
}

/// Reads one message. A batch is an error.
pub fn read(text: &Bytes) -> Result<Incoming, FrameError> {
    if text.iter().find(|it| !it.is_ascii_whitespace()) == Some(&b'[') {
        let message = "JSON-RPC batches are not part of this version of the protocol";
        return Err(FrameError::new(None, code::INVALID_REQUEST, message));
    }
    message(text)
}

/// Reads the messages of a batch, or a single message.
pub fn read_many(text: &Bytes) -> Result<Vec<Result<Incoming, FrameError>>, FrameError> {
    if text.iter().find(|it| !it.is_ascii_whitespace()) != Some(&b'[') {
        return Ok(vec![read(text)]);
    }
    let whole = RawJson::parse(text.clone())
        .map_err(|it| FrameError::new(None, code::PARSE_ERROR, format!("the message is no JSON: {it}")))?;
    let invalid = |message: String| FrameError::new(None, code::INVALID_REQUEST, message);
    let items: Vec<&RawValue> = whole.read().map_err(|it| invalid(it.to_string()))?;
    match items.len() {
        0 => Err(invalid("a batch must not be empty".to_owned())),
        many if many > MAX_BATCH => {
            Err(invalid(format!("a batch may hold {MAX_BATCH} messages, this one has {many}")))
        }
        _ => Ok(items.into_iter().map(|it| message(&whole.slice(it).into_bytes())).collect()),
    }
}

/// The top-level members of a message.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<JsonSlice<'a>>,
    id: Option<JsonSlice<'a>>,
    method: Option<JsonSlice<'a>>,
    params: Option<Result<Params, RpcError>>,
    result: Option<JsonSlice<'a>>,
    error: Option<JsonSlice<'a>>,
    /// A member is repeated, so it is ambiguous.
    is_twice: bool,
}

impl<'a> Members<'a> {
    fn read(whole: &'a ByteString) -> Result<Members<'a>, serde_json::Error> {
        let mut res = Members::default();
        let mut walk = JsonCursor::new(whole);
        walk.read_object(|name, walk| {
            let member = match &*name {
                "jsonrpc" => &mut res.jsonrpc,
                "id" => &mut res.id,
                "method" => &mut res.method,
                "result" => &mut res.result,
                "error" => &mut res.error,
                "params" => {
                    res.is_twice |= res.params.replace(Params::walked(walk, whole)?).is_some();
                    return Ok(());
                }
                _ => return walk.skip_value().map(|_| ()),
            };
            res.is_twice |= member.replace(walk.skip_value()?).is_some();
            Ok(())
        })?;
        walk.finish()?;
        // `null` counts as missing, except for an id.
        for member in [&mut res.jsonrpc, &mut res.method, &mut res.result, &mut res.error] {
            member.take_if(|it| it.as_str() == "null");
        }
        Ok(res)
    }
}

fn message(shared: &Bytes) -> Result<Incoming, FrameError> {
    let refused = |id: Option<RawJson>, message: &str| FrameError::new(id, code::INVALID_REQUEST, message);
    let whole = ByteString::try_from(shared.clone()).ok();
    let read = whole.as_ref().map(|it| (it, Members::read(it)));
    let Some((whole, Ok(read))) = read else {
        // Valid JSON that is not a message has another error code than invalid JSON.
        let json = RawJson::parse(shared.clone()).map_err(|it| {
            FrameError::new(None, code::PARSE_ERROR, format!("the message is no JSON: {it}"))
        })?;
        return Err(match read {
            Some((_, Err(why))) if json.is_object() => {
                refused(None, &format!("the message cannot be read: {why}"))
            }
            _ => refused(None, "a message is a JSON object"),
        });
    };
    let Members { jsonrpc, id, method, params, result, error, is_twice } = read;
    if is_twice {
        return Err(refused(None, "a member of the message is repeated"));
    }
    let part = |it: JsonSlice<'_>| RawJson::from_slice(whole, it);
    let plain = id.filter(|it| is_id(it.as_str())).map(part);
    if depth(shared) > MAX_DEPTH {
        return Err(refused(plain, &format!("a message may be {MAX_DEPTH} levels deep")));
    }
    if jsonrpc.and_then(JsonSlice::to_text).as_deref() != Some("2.0") {
        return Err(refused(plain, "`jsonrpc` must be \"2.0\""));
    }
    if let Some(method) = method {
        let method = match method.to_text() {
            Some(Cow::Borrowed(method)) => whole.slice_ref(method),
            Some(Cow::Owned(method)) => method.into(),
            None => return Err(refused(plain, "`method` must be a string")),
        };
        // Some clients send `null` as the id of a notification.
        let id = id.filter(|it| it.as_str() != "null" || !method.starts_with("notifications/"));
        let params = match params.unwrap_or_else(|| Ok(Params::none())) {
            Ok(params) => params,
            // A notification has no response that could carry the error.
            Err(_) if id.is_none() => Params::none(),
            Err(error) => return Err(FrameError { id: plain, error }),
        };
        return match (id, plain) {
            (None, _) => Ok(Incoming::Notification(Notification { method, params })),
            (Some(_), Some(id)) => Ok(Incoming::Request(Request::new(id, method, params))),
            (Some(_), None) => Err(refused(None, "`id` must be a string or a number")),
        };
    }
    let outcome = match (result, error) {
        (_, Some(error)) => match serde_json::from_str(error.as_str()) {
            Ok(error) => Err(error),
            Err(_) => return Err(refused(plain, "`error` must be an error object")),
        },
        (Some(result), _) => Ok(part(result)),
        (None, _) => return Err(refused(plain, "a message has a `method`, a `result` or an `error`")),
    };
    match plain {
        Some(id) => Ok(Incoming::Response(Response { id, outcome })),
        // It matches no request. An error response to a response could loop forever.
        None => Ok(Incoming::Response(Response { id: RawJson::empty_object(), outcome })),
    }
}

/// An upper bound of the nesting depth, exact if the text is deep.
fn depth(text: &[u8]) -> usize {
    // Each level has two delimiters.
    if text.len() <= 2 * MAX_DEPTH {
        return text.len() / 2;
    }
    // Most messages have few opening delimiters.
    let begun = memchr::memchr2_iter(b'{', b'[', text).take(MAX_DEPTH + 1).count();
    if begun <= MAX_DEPTH {
        return begun;
    }
    let (mut deepest, mut now, mut in_text, mut escaped) = (0, 0usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                now += 1;
                deepest = deepest.max(now);
            }
            b'}' | b']' if !in_text => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Whether a JSON text is a valid request id: a string or a number.
fn is_id(id: &str) -> bool {
    id.len() <= MAX_ID_BYTES && matches!(id.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = match read(&Bytes::copy_from_slice(text.as_bytes())) {
            Ok(Incoming::Request(it)) => {
                format!("request {} {} {}", it.id.as_str(), it.method, it.params.raw().as_str())
            }
            Ok(Incoming::Notification(it)) => {
                format!("notification {} {}", it.method, it.params.raw().as_str())
            }
            Ok(Incoming::Response(it)) => match it.outcome {
                Ok(result) => format!("result {} {}", it.id.as_str(), result.as_str()),
                Err(error) => format!("error {} {error}", it.id.as_str()),
            },
            Err(it) => {
                format!("{} {}", it.error.code, it.id.as_ref().map_or("-", RawJson::as_str))
            }
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn message_kind_is_decided_before_the_id() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping {}");
        check(
            r#"{"params":{"id":7,"result":1},"method":"tools/call","id":"a\"","jsonrpc":"2.0"}"#,
            r#"request "a\"" tools/call {"id":7,"result":1}"#,
        );
        check(
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{ "a" : 1}}"#,
            r#"notification notifications/x { "a" : 1}"#,
        );
        check(r#"{"result":{"id":9},"id":3,"jsonrpc":"2.0"}"#, r#"result 3 {"id":9}"#);
        check(r#"{"jsonrpc":"2.0","id":3,"result":1,"error":null,"method":null}"#, "result 3 1");
        check(r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":null}"#, "request 3 ping {}");
        check(r#"{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no"}}"#, "error 3 no (code 1)");
    }

    #[test]
    fn unreadable_message_error_has_its_id() {
        check("{", &format!("{} -", code::PARSE_ERROR));
        check("7", &format!("{} -", code::INVALID_REQUEST));
        check("[]", &format!("{} -", code::INVALID_REQUEST));
        check(r#"{"id":1,"method":"ping"}"#, &format!("{} 1", code::INVALID_REQUEST));
        check(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, &format!("{} -", code::INVALID_REQUEST));
        check(
            r#"{"jsonrpc":"2.0","id":null,"method":"notifications/x","params":[1]}"#,
            "notification notifications/x {}",
        );
        check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}"#, "error {} no (code 1)");
        check(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, &format!("{} -", code::INVALID_REQUEST));
        check(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, &format!("{} -", code::INVALID_REQUEST));
        check(r#"{"jsonrpc":"2.0","id":1,"method":3}"#, &format!("{} 1", code::INVALID_REQUEST));
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}"#,
            &format!("{} 1", code::INVALID_PARAMS),
        );
        // An unpaired surrogate is valid JSON, but not a valid name.
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"\ud800":1}}"#,
            &format!("{} 1", code::INVALID_PARAMS),
        );
        check(
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"\ud800":1}}"#,
            "notification notifications/x {}",
        );
        check(r#"{"jsonrpc":"2.0","id":1,"\ud800":1}"#, &format!("{} -", code::INVALID_REQUEST));
        check(r#"{"jsonrpc":"2.0","id":1}"#, &format!("{} 1", code::INVALID_REQUEST));
        check(r#"{"jsonrpc":"2.0","result":{}}"#, "result {} {}");
        check(r#"{"jsonrpc":"2.0","method":"n/x","params":[1]}"#, "notification n/x {}");
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{}{}}}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        check(&deep, &format!("{} 1", code::INVALID_REQUEST));
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"[[[\\\"[["}}"#,
            r#"request 1 x {"a":"[[[\\\"[["}"#,
        );
    }

    #[test]
    fn batch_is_bounded_and_its_messages_are_independent() {
        let many = |text: &str| read_many(&Bytes::copy_from_slice(text.as_bytes())).map(|it| it.len());
        assert_eq!(many(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, 7]"#), Ok(2));
        assert_eq!(many(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Ok(1));
        assert!(many("[]").is_err());
        assert!(many(&format!("[{}1]", "1,".repeat(MAX_BATCH))).is_err());
    }
}

//! What a client sends, one JSON-RPC message at a time.
//!
//! The text is read once and as a whole, so that whatever is spliced into another message later is known to be JSON.
//! The kind is decided by the keys at the top before the id is looked at. What cannot be read has an answer all the
//! same, with the id where there is one.

use std::borrow::Cow;

use bytes::Bytes;
use bytestring::ByteString;
use mcp_model::{JsonCursor, JsonSlice, RawJson, RpcError, code};
use serde_json::value::RawValue;

use crate::protocol::meta::Meta;
use crate::protocol::params::Params;

/// How many messages a batch may hold.
pub(crate) const MOST_IN_BATCH: usize = 64;

/// How deep a message may be: what goes on to servers must not be more than they can read.
const DEEPEST: usize = 128;
/// How long an id may be, in bytes: it is kept, and comes back.
const LONGEST_ID: usize = 1024;

/// One message.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "most messages are requests, and none is moved often")]
pub(crate) enum Incoming {
    /// It wants an answer.
    Request(Request),
    /// It wants none.
    Notification(Notification),
    /// It answers something that was asked of the client.
    Response(Response),
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    /// A JSON string or number, sent back as it is.
    pub(crate) id: RawJson,
    /// Its method.
    pub(crate) method: ByteString,
    /// Its parameters.
    pub(crate) params: Params,
    /// What stands beside them.
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
pub(crate) struct Notification {
    /// Its method.
    pub(crate) method: ByteString,
    /// Its parameters.
    pub(crate) params: Params,
}

/// An answer to a question of ours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Response {
    /// The id that it names, as JSON.
    pub(crate) id: RawJson,
    /// What it says.
    pub(crate) outcome: Result<RawJson, RpcError>,
}

/// A text that is no message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unreadable {
    /// The id of what cannot be read, where one was found.
    pub(crate) id: Option<RawJson>,
    /// What the client is told.
    pub(crate) error: RpcError,
}

impl Unreadable {
    fn new(id: Option<RawJson>, code: i64, message: impl Into<String>) -> Unreadable {
        Unreadable { id, error: RpcError::new(code, message) }
    }
}

/// Reads one message. A batch is none.
pub(crate) fn read(text: &Bytes) -> Result<Incoming, Unreadable> {
    if text.iter().find(|it| !it.is_ascii_whitespace()) == Some(&b'[') {
        let message = "JSON-RPC batches are not part of this version of the protocol";
        return Err(Unreadable::new(None, code::INVALID_REQUEST, message));
    }
    message(text)
}

/// Reads the messages of a batch, or the only one where it is none.
pub(crate) fn read_many(text: &Bytes) -> Result<Vec<Result<Incoming, Unreadable>>, Unreadable> {
    if text.iter().find(|it| !it.is_ascii_whitespace()) != Some(&b'[') {
        return Ok(vec![read(text)]);
    }
    let whole = RawJson::parse(text.clone())
        .map_err(|it| Unreadable::new(None, code::PARSE_ERROR, format!("the message is no JSON: {it}")))?;
    let invalid = |message: String| Unreadable::new(None, code::INVALID_REQUEST, message);
    let items: Vec<&RawValue> = whole.read().map_err(|it| invalid(it.to_string()))?;
    match items.len() {
        0 => Err(invalid("a batch must not be empty".to_owned())),
        many if many > MOST_IN_BATCH => {
            Err(invalid(format!("a batch may hold {MOST_IN_BATCH} messages, this one has {many}")))
        }
        _ => Ok(items.into_iter().map(|it| message(&whole.slice(it).into_bytes())).collect()),
    }
}

/// The members of a message, each where it stands.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<JsonSlice<'a>>,
    id: Option<JsonSlice<'a>>,
    method: Option<JsonSlice<'a>>,
    params: Option<Result<Params, RpcError>>,
    result: Option<JsonSlice<'a>>,
    error: Option<JsonSlice<'a>>,
    /// One of them stands there twice: nobody could say which counts.
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
        // As if it were not there; only an id is looked at more closely.
        for member in [&mut res.jsonrpc, &mut res.method, &mut res.result, &mut res.error] {
            member.take_if(|it| it.as_str() == "null");
        }
        Ok(res)
    }
}

fn message(shared: &Bytes) -> Result<Incoming, Unreadable> {
    let refused = |id: Option<RawJson>, message: &str| Unreadable::new(id, code::INVALID_REQUEST, message);
    let whole = ByteString::try_from(shared.clone()).ok();
    let read = whole.as_ref().map(|it| (it, Members::read(it)));
    let Some((whole, Ok(read))) = read else {
        // JSON that is no message is another fault than what is no JSON, wherever it begins to be that.
        let json = RawJson::parse(shared.clone()).map_err(|it| {
            Unreadable::new(None, code::PARSE_ERROR, format!("the message is no JSON: {it}"))
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
        return Err(refused(None, "a member of the message stands there twice"));
    }
    let part = |it: JsonSlice<'_>| RawJson::from_slice(whole, it);
    let plain = id.filter(|it| is_id(it.as_str())).map(part);
    if depth(shared) > DEEPEST {
        return Err(refused(plain, &format!("a message may be {DEEPEST} levels deep")));
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
        // Some write `null` for the id that a notification must not have; of a request it is none.
        let id = id.filter(|it| it.as_str() != "null" || !method.starts_with("notifications/"));
        let params = match params.unwrap_or_else(|| Ok(Params::none())) {
            Ok(params) => params,
            // Nobody waits for an answer.
            Err(_) if id.is_none() => Params::none(),
            Err(error) => return Err(Unreadable { id: plain, error }),
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
        // It answers nothing of ours, and two peers that answered such answers would never end.
        None => Ok(Incoming::Response(Response { id: RawJson::empty_object(), outcome })),
    }
}

/// How deep the JSON is, or a bit more, where that is not too deep.
fn depth(text: &[u8]) -> usize {
    // Each level has two ends.
    if text.len() <= 2 * DEEPEST {
        return text.len() / 2;
    }
    // As deep as there are beginnings at most, and few messages have many.
    let begun = memchr::memchr2_iter(b'{', b'[', text).take(DEEPEST + 1).count();
    if begun <= DEEPEST {
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

/// May it be the id of a request? Strings and numbers.
fn is_id(id: &str) -> bool {
    id.len() <= LONGEST_ID && matches!(id.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'))
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
    fn the_kind_is_seen_before_the_id() {
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
    fn what_is_no_message_is_told_with_its_id() {
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
        // Half of a surrogate pair is JSON, and no name.
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
    fn a_batch_is_bounded_and_each_of_its_messages_stands_alone() {
        let many = |text: &str| read_many(&Bytes::copy_from_slice(text.as_bytes())).map(|it| it.len());
        assert_eq!(many(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, 7]"#), Ok(2));
        assert_eq!(many(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Ok(1));
        assert!(many("[]").is_err());
        assert!(many(&format!("[{}1]", "1,".repeat(MOST_IN_BATCH))).is_err());
    }
}

//! Reads JSON-RPC messages of clients.
//!
//! The whole text is checked, so that parts of it can be inserted into other messages. The top-level keys decide the
//! kind of message before the id is checked. A message that cannot be read gets an error response, with its id if it
//! has one. Unpaired surrogates become U+FFFD, except in an id: servers may refuse a message with them, and a refused
//! message has no response.

use bytes::Bytes;
use bytestring::ByteString;
use mcp_host_model::internal::{JsonCursor, JsonSlice, is_deeper_than, replace_unpaired_surrogates};
use mcp_host_model::{MethodName, RawJson, RpcError, code};
use serde_json::value::RawValue;

use crate::protocol::meta::RequestMeta;
use crate::protocol::params::MessageParams;

/// Maximum number of messages in a batch.
pub(crate) const MAX_BATCH: usize = 64;

/// Maximum nesting depth of a message. It is bounded, because servers must be able to read forwarded parts.
const MAX_DEPTH: usize = 128;
/// Maximum size of an id in bytes, because it is stored and returned.
pub(crate) const MAX_ID_BYTES: usize = 1024;

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum ClientMessage {
    /// A request.
    Request(ClientRequest),
    /// A notification.
    Notification(ClientNotification),
    /// The response to a server request.
    Response(ClientResponse),
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "not part of the public API")]
pub struct ClientRequest {
    /// A JSON string or number, which is returned unchanged.
    pub id: RawJson,
    /// The method.
    pub method: MethodName,
    /// The parameters.
    pub params: MessageParams,
}

impl ClientRequest {
    /// A request with these parameters.
    pub(crate) fn new(id: RawJson, method: MethodName, params: MessageParams) -> ClientRequest {
        ClientRequest { id, method, params }
    }

    /// Its `_meta`.
    pub(crate) fn meta(&self) -> &RequestMeta {
        self.params.meta()
    }
}

/// A notification.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientNotification {
    pub(crate) method: MethodName,
    /// The parameters.
    pub params: MessageParams,
}

/// The response to a server request.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientResponse {
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

/// Whether a text is a batch, provided that it is JSON.
pub(crate) fn is_batch(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'[')
}

/// Reads one message. A batch is an error.
pub fn read_message(text: &Bytes) -> Result<ClientMessage, FrameError> {
    if is_batch(text) {
        let message = "JSON-RPC batches are not part of this version of the protocol";
        return Err(FrameError::new(None, code::INVALID_REQUEST, message));
    }
    parse_message(text)
}

/// Reads the messages of a batch, or a single message.
pub fn read_messages(text: &Bytes) -> Result<Vec<Result<ClientMessage, FrameError>>, FrameError> {
    if !is_batch(text) {
        return Ok(vec![read_message(text)]);
    }
    let batch = parse_json(text)?;
    let invalid = |message: String| FrameError::new(None, code::INVALID_REQUEST, message);
    let messages: Vec<&RawValue> = batch.read().map_err(|error| invalid(error.to_string()))?;
    match messages.len() {
        0 => Err(invalid("a batch must not be empty".to_owned())),
        count if count > MAX_BATCH => {
            Err(invalid(format!("a batch may contain at most {MAX_BATCH} messages, this one has {count}")))
        }
        _ => Ok(messages.into_iter().map(|raw| parse_message(&batch.slice(raw).into_bytes())).collect()),
    }
}

fn parse_json(text: &Bytes) -> Result<RawJson, FrameError> {
    RawJson::parse(text.clone()).map_err(|error| {
        FrameError::new(None, code::PARSE_ERROR, format!("the message is not valid JSON: {error}"))
    })
}

/// The top-level members of a message.
#[derive(Default)]
struct FrameMembers<'a> {
    jsonrpc: Option<JsonSlice<'a>>,
    id: Option<JsonSlice<'a>>,
    method: Option<JsonSlice<'a>>,
    params: Option<Result<MessageParams, RpcError>>,
    result: Option<JsonSlice<'a>>,
    error: Option<JsonSlice<'a>>,
    /// Whether a member is repeated, so that the message is ambiguous.
    has_repeated: bool,
}

impl<'a> FrameMembers<'a> {
    fn read(text: &'a ByteString) -> serde_json::Result<FrameMembers<'a>> {
        let mut members = FrameMembers::default();
        let mut cursor = JsonCursor::new(text);
        cursor.read_object(|name, cursor| {
            let member = match &*name {
                "jsonrpc" => &mut members.jsonrpc,
                "id" => &mut members.id,
                "method" => &mut members.method,
                "result" => &mut members.result,
                "error" => &mut members.error,
                "params" => {
                    members.has_repeated |=
                        members.params.replace(MessageParams::read_at(cursor, text)?).is_some();
                    return Ok(());
                }
                _ => return cursor.skip_value().map(|_| ()),
            };
            members.has_repeated |= member.replace(cursor.skip_value()?).is_some();
            Ok(())
        })?;
        cursor.finish()?;
        // `null` counts as missing, except for an id.
        for member in [&mut members.jsonrpc, &mut members.method, &mut members.result, &mut members.error] {
            member.take_if(|value| value.as_str() == "null");
        }
        Ok(members)
    }
}

/// Parses one message that is not a batch, with U+FFFD instead of unpaired surrogates.
fn parse_message(bytes: &Bytes) -> Result<ClientMessage, FrameError> {
    // Most messages have no escapes.
    if memchr::memchr(b'\\', bytes).is_none() {
        return parse_strict_message(bytes);
    }
    let strict = replace_unpaired_surrogates(bytes.clone());
    let message = parse_strict_message(&strict);
    if strict == bytes {
        return message;
    }
    // The texts have the same length, so the id is at the same position.
    let original = |id: RawJson| {
        let start = id.as_bytes().as_ptr() as usize - strict.as_ptr() as usize;
        RawJson::parse(bytes.slice(start..start + id.as_bytes().len()))
            .expect("an id with other escapes is JSON")
    };
    match message {
        Ok(ClientMessage::Request(ClientRequest { id, method, params })) => {
            Ok(ClientMessage::Request(ClientRequest { id: original(id), method, params }))
        }
        Ok(other) => Ok(other),
        Err(FrameError { id, error }) => Err(FrameError { id: id.map(original), error }),
    }
}

/// Parses one message that is not a batch.
fn parse_strict_message(bytes: &Bytes) -> Result<ClientMessage, FrameError> {
    let invalid = |id: Option<RawJson>, message: &str| FrameError::new(id, code::INVALID_REQUEST, message);
    let text = ByteString::try_from(bytes.clone()).ok();
    let members = text.as_ref().map(|text| (text, FrameMembers::read(text)));
    let Some((text, Ok(members))) = members else {
        // Valid JSON that is not a message has another error code than invalid JSON.
        return Err(match (parse_json(bytes)?.is_object(), members) {
            (true, Some((_, Err(error)))) => invalid(None, &format!("the message cannot be read: {error}")),
            _ => invalid(None, "a message must be a JSON object"),
        });
    };
    let FrameMembers { jsonrpc, id, method, params, result, error, has_repeated } = members;
    if has_repeated {
        return Err(invalid(None, "a member of the message is repeated"));
    }
    let raw = |value: JsonSlice<'_>| RawJson::from_slice(text, value);
    let valid_id = id.filter(|id| is_valid_id(id.as_str())).map(raw);
    if is_deeper_than(bytes, MAX_DEPTH) {
        return Err(invalid(valid_id, &format!("a message may be at most {MAX_DEPTH} levels deep")));
    }
    if jsonrpc.and_then(JsonSlice::to_text).as_deref() != Some("2.0") {
        return Err(invalid(valid_id, "`jsonrpc` must be \"2.0\""));
    }
    if let Some(method) = method {
        let Some(method) = method.to_text() else {
            return Err(invalid(valid_id, "`method` must be a string"));
        };
        let method = MethodName::from(&*method);
        // Some clients send `null` as the id of a notification.
        let id = id.filter(|id| id.as_str() != "null" || !method.is_notification());
        let params = params.unwrap_or_else(|| Ok(MessageParams::empty()));
        return match (id, valid_id, params) {
            // A notification has no response that could carry the error of its parameters.
            (None, _, params) => {
                let params = params.unwrap_or_else(|_| MessageParams::empty());
                Ok(ClientMessage::Notification(ClientNotification { method, params }))
            }
            (Some(_), id, Err(error)) => Err(FrameError { id, error }),
            (Some(_), Some(id), Ok(params)) => {
                Ok(ClientMessage::Request(ClientRequest::new(id, method, params)))
            }
            (Some(_), None, Ok(_)) => Err(invalid(None, "`id` must be a string or a number")),
        };
    }
    let outcome = match (result, error) {
        (_, Some(error)) => match serde_json::from_str(error.as_str()) {
            Ok(error) => Err(error),
            Err(_) => return Err(invalid(valid_id, "`error` must be an error object")),
        },
        (Some(result), _) => Ok(raw(result)),
        (None, _) => {
            return Err(invalid(valid_id, "a message must have a `method`, a `result` or an `error`"));
        }
    };
    // A response without a valid id matches no request. An error response to a response could loop forever.
    let id = valid_id.unwrap_or_else(RawJson::empty_object);
    Ok(ClientMessage::Response(ClientResponse { id, outcome }))
}

/// Whether a JSON text is a valid request id: a string or a number.
pub(crate) fn is_valid_id(id: &str) -> bool {
    id.len() <= MAX_ID_BYTES && matches!(id.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = match read_message(&Bytes::copy_from_slice(text.as_bytes())) {
            Ok(ClientMessage::Request(ClientRequest { id, method, params })) => {
                format!("request {} {method} {}", id.as_str(), params.raw().as_str())
            }
            Ok(ClientMessage::Notification(ClientNotification { method, params })) => {
                format!("notification {method} {}", params.raw().as_str())
            }
            Ok(ClientMessage::Response(ClientResponse { id, outcome })) => match outcome {
                Ok(result) => format!("result {} {}", id.as_str(), result.as_str()),
                Err(error) => format!("error {} {error}", id.as_str()),
            },
            Err(FrameError { id, error }) => {
                format!("{} {}", error.code, id.as_ref().map_or("-", RawJson::as_str))
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
        check(r#"{"jsonrpc":"2.0","id":1,"\ud800":1}"#, &format!("{} 1", code::INVALID_REQUEST));
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
        let count =
            |text: &str| read_messages(&Bytes::copy_from_slice(text.as_bytes())).map(|batch| batch.len());
        assert_eq!(count(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, 7]"#), Ok(2));
        assert_eq!(count(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Ok(1));
        assert!(count("[]").is_err());
        assert!(count(&format!("[{}1]", "1,".repeat(MAX_BATCH))).is_err());
    }

    // RPT-034
    #[test]
    fn unpaired_surrogates_are_replaced_except_in_an_id() {
        check(
            r#"{"jsonrpc":"2.0","id":"\ud800","method":"x","params":{"\ud800":"\\ud800\udc00\ud83d\ude00"}}"#,
            r#"request "\ud800" x {"\ufffd":"\\ud800\ufffd\ud83d\ude00"}"#,
        );
        check(
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"\ud800":1}}"#,
            r#"notification notifications/x {"\ufffd":1}"#,
        );
        check(
            r#"{"jsonrpc":"2.0","id":"\ud800","method":"x","params":[1]}"#,
            &format!(r#"{} "\ud800""#, code::INVALID_PARAMS),
        );
    }
}

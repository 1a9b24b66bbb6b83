//! JSON-RPC messages as recorder and replayer read them. Pure.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::canonical;

/// The `_meta` key of a request's progress token.
pub(crate) const PROGRESS_TOKEN: &str = "progressToken";
/// The `_meta` key of a notification's subscription id.
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The `_meta` key of a modern request's protocol version.
pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The method of the request for a stream.
pub(crate) const LISTEN: &str = "subscriptions/listen";

/// Maximum number of messages in a batch.
const MAX_BATCH: usize = 1024;

/// A message.
#[derive(Debug, Clone)]
pub(crate) enum Message<'a> {
    Request { id: &'a RawValue, method: String, params: Option<&'a RawValue> },
    Notification { method: String, params: Option<&'a RawValue> },
    Response { id: &'a RawValue, content: ResponseContent<'a> },
}

/// The content of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ResponseContent<'a> {
    Result(&'a RawValue),
    Error(&'a RawValue),
}

#[derive(Deserialize)]
struct MessageJson<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// The messages of a frame, single or batch; empty for invalid frames.
pub(crate) fn parse_frame(frame: &[u8]) -> Vec<Message<'_>> {
    let Ok(text) = str::from_utf8(frame) else { return Vec::new() };
    if text.trim_start().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
        return items.into_iter().take(MAX_BATCH).filter_map(|it| parse_message(it.get())).collect();
    }
    parse_message(text).into_iter().collect()
}

fn parse_message(text: &str) -> Option<Message<'_>> {
    let MessageJson { id, method, params, result, error } = serde_json::from_str(text).ok()?;
    match (method, id) {
        (Some(method), Some(id)) => Some(Message::Request { id, method, params }),
        (Some(method), None) => Some(Message::Notification { method, params }),
        (None, Some(id)) => {
            let content = match error {
                Some(error) => ResponseContent::Error(error),
                // A result of `null` reads as absent.
                None => ResponseContent::Result(result.unwrap_or(RawValue::NULL)),
            };
            Some(Message::Response { id, content })
        }
        (None, None) => None,
    }
}

/// A member of `_meta` in the parameters, as JSON.
pub(crate) fn meta<'a>(params: Option<&'a RawValue>, name: &str) -> Option<&'a RawValue> {
    let meta = canonical::members(params?)?.remove("_meta")?;
    canonical::members(meta)?.remove(name)
}

/// A member of the parameters, as JSON.
pub(crate) fn member<'a>(params: Option<&'a RawValue>, name: &str) -> Option<&'a RawValue> {
    canonical::members(params?)?.remove(name)
}

/// Replaces the member at `path`; `None` if it is absent. The members of each changed object are sorted, and all other
/// text is unchanged.
pub(crate) fn replace_member(params: &RawValue, path: &[&str], value: &str) -> Option<String> {
    let Some((name, rest)) = path.split_first() else { return Some(value.to_owned()) };
    let mut members = canonical::members(params)?;
    let inner = members.remove(*name)?;
    let inner = replace_member(inner, rest, value)?;
    let mut texts: Vec<String> = members
        .iter()
        .map(|(name, it)| format!("{}:{}", mcp_host_transport::internal::frame::json_string(name), it.get()))
        .collect();
    texts.push(format!("{}:{inner}", mcp_host_transport::internal::frame::json_string(name)));
    texts.sort();
    Some(format!("{{{}}}", texts.join(",")))
}

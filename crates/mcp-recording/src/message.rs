//! JSON-RPC messages of recorded and replayed sessions. No I/O.

use mcp_host_model::MethodName;
use mcp_host_transport::internal::frame;
use mcp_host_transport::internal::scan::{ScannedFrame, scan};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::canonical;

/// The `_meta` key of a request's progress token.
pub(crate) const PROGRESS_TOKEN: &str = "progressToken";
/// The `_meta` key of a notification's subscription id.
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The `_meta` key of a modern request's protocol version.
pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The result or error in a response.
pub(crate) type ResponseContent<'a> = Result<&'a RawValue, &'a RawValue>;

/// A JSON-RPC message, borrowed from its frame.
#[derive(Debug, Clone)]
pub(crate) enum RpcMessage<'a> {
    Request { id: &'a RawValue, method: MethodName, params: Option<&'a RawValue> },
    Notification { method: MethodName, params: Option<&'a RawValue> },
    Response { id: &'a RawValue, content: ResponseContent<'a> },
}

/// The messages of a frame, single or batch; empty for invalid frames.
pub(crate) fn parse_frame(frame: &[u8]) -> Vec<RpcMessage<'_>> {
    match scan(frame) {
        ScannedFrame::Batch(ranges) => ranges
            .into_iter()
            .map(|range| &frame[range])
            .filter_map(|item| parse_message(item, scan(item)))
            .collect(),
        single => parse_message(frame, single).into_iter().collect(),
    }
}

fn parse_message(frame: &[u8], scanned: ScannedFrame) -> Option<RpcMessage<'_>> {
    match scanned {
        ScannedFrame::Request { id, method, params } => Some(RpcMessage::Request {
            id: value_at(frame, id.start)?,
            method,
            params: params.and_then(|at| value_at(frame, at)),
        }),
        ScannedFrame::Notification { method, params } => {
            Some(RpcMessage::Notification { method, params: params.and_then(|at| value_at(frame, at)) })
        }
        ScannedFrame::Response { id_text, is_error, payload_start, id: _ } => {
            let payload = value_at(frame, payload_start)?;
            let content = if is_error { Err(payload) } else { Ok(payload) };
            Some(RpcMessage::Response { id: value_at(frame, id_text?.start)?, content })
        }
        ScannedFrame::EmptyResponse(_) | ScannedFrame::Batch(_) | ScannedFrame::Noise => None,
    }
}

/// The value that begins at this offset.
fn value_at(frame: &[u8], at: usize) -> Option<&RawValue> {
    <&RawValue>::deserialize(&mut serde_json::Deserializer::from_slice(&frame[at..])).ok()
}

/// A member of `_meta` in the parameters, as JSON.
pub(crate) fn meta_member<'a>(params: Option<&'a RawValue>, name: &str) -> Option<&'a RawValue> {
    let meta = canonical::parse_members(params?)?.remove("_meta")?;
    canonical::parse_members(meta)?.remove(name)
}

/// A member of the parameters, as JSON.
pub(crate) fn param<'a>(params: Option<&'a RawValue>, name: &str) -> Option<&'a RawValue> {
    canonical::parse_members(params?)?.remove(name)
}

/// Replaces the member at `path`; `None` if it is absent. The members of each changed object are sorted, and all other
/// text is unchanged.
pub(crate) fn replace_member(params: &RawValue, path: &[&str], value: &str) -> Option<String> {
    let Some((name, rest)) = path.split_first() else { return Some(value.to_owned()) };
    let mut members = canonical::parse_members(params)?;
    let inner = members.remove(*name)?;
    let inner = replace_member(inner, rest, value)?;
    let mut texts: Vec<String> =
        members.iter().map(|(name, it)| format!("{}:{}", frame::json_string(name), it.get())).collect();
    texts.push(format!("{}:{inner}", frame::json_string(name)));
    texts.sort();
    Some(format!("{{{}}}", texts.join(",")))
}

//! Server requests that the SDK is working on, each with its session.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use mcp_host_model::Method;
use mcp_host_transport::Epoch;
use mcp_host_transport::internal::frame;

/// Maximum number of server requests in progress.
const MAX_OPEN: usize = 1024;

/// Maximum length of a request id in bytes.
const MAX_ID_BYTES: usize = 1024;

/// Requests in progress, by the JSON text of the id that the SDK knows.
#[derive(Default)]
pub(crate) struct OpenServerRequests {
    open: HashMap<String, OpenRequest>,
    /// Number of ids that were replaced for the SDK.
    replaced_ids: u64,
}

/// A server request that the SDK is working on.
struct OpenRequest {
    epoch: Epoch,
    /// The id's JSON text as the server wrote it.
    id: Box<[u8]>,
}

/// Why a request is not passed to the SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestRefusal {
    /// Too many requests are in progress.
    TooMany,
    /// The id is too long.
    LongId,
}

/// The SDK's response as sent to the server.
pub(crate) struct ServerResponse {
    pub(crate) epoch: Epoch,
    pub(crate) body: Bytes,
}

impl OpenServerRequests {
    /// Records a server request whose id is at `id`. Returns it as the SDK is to receive it.
    pub(crate) fn insert(
        &mut self,
        epoch: Epoch,
        frame: &Bytes,
        id: Range<usize>,
    ) -> Result<Bytes, RequestRefusal> {
        let text = &frame[id.clone()];
        if text.len() > MAX_ID_BYTES {
            return Err(RequestRefusal::LongId);
        }
        if self.open.len() >= MAX_OPEN {
            return Err(RequestRefusal::TooMany);
        }
        let id_for_sdk = sdk_id(text).filter(|it| !self.open.contains_key(it));
        let id_for_sdk = id_for_sdk.unwrap_or_else(|| self.unused_id());
        let frame_for_sdk = if id_for_sdk.as_bytes() == text {
            frame.clone()
        } else {
            [&frame[..id.start], id_for_sdk.as_bytes(), &frame[id.end..]].concat().into()
        };
        self.open.insert(id_for_sdk, OpenRequest { epoch, id: text.into() });
        Ok(frame_for_sdk)
    }

    /// Removes a request that the server cancels. Returns the notification for the SDK if the request is in progress.
    pub(crate) fn cancel(&mut self, epoch: Epoch, frame: &[u8]) -> Option<Bytes> {
        let CancelNotification { params } = serde_json::from_slice(frame).ok()?;
        let cancelled_id = params.request_id.get().as_bytes();
        let is_cancelled = |it: &OpenRequest| {
            it.epoch == epoch && (*it.id == *cancelled_id || sdk_id(&it.id) == sdk_id(cancelled_id))
        };
        let id_for_sdk =
            self.open.iter().find(|(_, it)| is_cancelled(it)).map(|(id_for_sdk, _)| id_for_sdk.clone())?;
        self.open.remove(&id_for_sdk);
        let reason = serde_json::to_string(&params.reason.unwrap_or_default()).expect("a string is JSON");
        let params = format!(r#""requestId":{id_for_sdk},"reason":{reason}"#);
        Some(frame::notification(Method::Cancelled.as_str(), &params, ""))
    }

    /// Removes the request that the SDK responds to, and restores its id in the response. `None` if no such request is
    /// in progress.
    pub(crate) fn take_response(&mut self, id: &RawValue, body: &Bytes) -> Option<ServerResponse> {
        let request = self.open.remove(&sdk_id(id.get().as_bytes())?)?;
        let text = id.get();
        if text.as_bytes() == &*request.id {
            return Some(ServerResponse { epoch: request.epoch, body: body.clone() });
        }
        // The text is a slice of the body.
        let start = (text.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
        let (before, rest) = body.split_at_checked(start)?;
        let after = rest.get(text.len()..)?;
        Some(ServerResponse { epoch: request.epoch, body: [before, &request.id, after].concat().into() })
    }

    /// An id that no open request has.
    fn unused_id(&mut self) -> String {
        loop {
            self.replaced_ids += 1;
            let name = format!("\"another-{}\"", self.replaced_ids);
            if !self.open.contains_key(&name) {
                return name;
            }
        }
    }
}

#[derive(Deserialize)]
struct CancelNotification<'a> {
    #[serde(borrow)]
    params: CancelParams<'a>,
}

#[derive(Deserialize)]
struct CancelParams<'a> {
    #[serde(rename = "requestId", borrow)]
    request_id: &'a RawValue,
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
}

/// The JSON text of an id as rmcp sends it back: strings and integers.
fn sdk_id(id: &[u8]) -> Option<String> {
    match serde_json::from_slice(id).ok()? {
        Value::Number(number) => number.as_i64().map(|it| it.to_string()),
        text @ Value::String(_) => Some(text.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_host_transport::internal::scan::{ScannedFrame, scan};

    /// The request as the SDK receives it.
    fn enter(requests: &mut OpenServerRequests, epoch: u32, id: &str) -> Result<String, RequestRefusal> {
        let frame = Bytes::from(format!(r#"{{"id": {id} ,"method":"ping"}}"#));
        let ScannedFrame::Request { id, .. } = scan(&frame) else { panic!("it is a request") };
        let frame_for_sdk = requests.insert(Epoch(epoch), &frame, id)?;
        Ok(String::from_utf8(frame_for_sdk.to_vec()).unwrap())
    }

    /// The response that is sent for this id, with its session.
    fn answer(requests: &mut OpenServerRequests, id: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let body = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        let Answer { id } = serde_json::from_slice(&body).unwrap();
        let ServerResponse { epoch, body } = requests.take_response(id, &body)?;
        Some(format!("@{} {}", epoch.0, String::from_utf8(body.to_vec()).unwrap()))
    }

    #[test]
    fn response_is_sent_to_the_session_of_its_request_with_its_id() {
        let requests = &mut OpenServerRequests::default();
        assert_eq!(enter(requests, 0, "7").unwrap(), r#"{"id": 7 ,"method":"ping"}"#);
        assert_eq!(enter(requests, 1, "7").unwrap(), r#"{"id": "another-1" ,"method":"ping"}"#);
        assert_eq!(enter(requests, 1, "\"another-2\"").unwrap(), r#"{"id": "another-2" ,"method":"ping"}"#);
        assert_eq!(enter(requests, 2, "7").unwrap(), r#"{"id": "another-3" ,"method":"ping"}"#);
        let want = |epoch, id| Some(format!(r#"@{epoch} {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        assert_eq!(answer(requests, "\"another-1\""), want(1, "7"));
        assert_eq!(answer(requests, "7"), want(0, "7"));
        assert_eq!(answer(requests, "\"another-2\""), want(1, "\"another-2\""));
        assert_eq!(answer(requests, "\"another-3\""), want(2, "7"));
        for unknown in ["7", "\"another-1\"", "8", "null"] {
            assert_eq!(answer(requests, unknown), None, "{unknown}");
        }
    }

    #[test]
    fn id_is_sent_back_unchanged() {
        for (id, id_for_sdk) in [
            (r#""\u0061""#, "\"a\""),
            ("1.0", "\"another-1\""),
            ("99999999999999999999", "\"another-1\""),
            ("{}", "\"another-1\""),
        ] {
            let requests = &mut OpenServerRequests::default();
            enter(requests, 0, id).unwrap();
            let want = format!(r#"@0 {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
            assert_eq!(answer(requests, id_for_sdk), Some(want));
        }
    }

    #[test]
    fn cancelled_request_is_reported_once_and_gets_no_response() {
        let requests = &mut OpenServerRequests::default();
        enter(requests, 0, "7").unwrap();
        enter(requests, 1, "7").unwrap();
        let mut cancel = |epoch, id: &str| {
            let frame = format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
            let notification = requests.cancel(Epoch(epoch), frame.as_bytes())?;
            let notification: Value = serde_json::from_slice(&notification).unwrap();
            Some(notification["params"]["requestId"].clone())
        };
        assert_eq!(cancel(2, "7"), None);
        assert_eq!(cancel(0, "\"7\""), None);
        assert_eq!(cancel(1, "7"), Some(Value::from("another-1")));
        assert_eq!(cancel(1, "7"), None);
        assert_eq!(answer(requests, "\"another-1\""), None);
        assert!(answer(requests, "7").is_some_and(|it| it.starts_with("@0")));
    }

    #[test]
    fn number_of_requests_is_bounded() {
        let requests = &mut OpenServerRequests::default();
        let long = format!("\"{}\"", "x".repeat(MAX_ID_BYTES));
        assert_eq!(enter(requests, 0, &long), Err(RequestRefusal::LongId));
        for id in 0..MAX_OPEN {
            enter(requests, 0, &id.to_string()).unwrap();
        }
        assert_eq!(enter(requests, 0, "-1"), Err(RequestRefusal::TooMany));
        answer(requests, "0").unwrap();
        assert!(enter(requests, 0, "-1").is_ok());
    }
}

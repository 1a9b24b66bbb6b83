//! The record of a session that a shim keeps, to continue it in another host.
//!
//! Pure. It has the handshake, the requests of the client without a response, and those of the host.

use std::collections::HashSet;

use mcp_host_model::Method;
use mcp_host_transport::internal::scan::{ScannedFrame, scan};
use serde::Deserialize;

/// The maximum number of open requests that are known, in each direction.
const MAX_OPEN_REQUESTS: usize = 16 * 1024;

/// The record of one session. An id is the JSON text of the client or host that created it.
#[derive(Debug, Default)]
pub(crate) struct SessionRecord {
    handshake: Option<Handshake>,
    client_requests: HashSet<String>,
    host_requests: HashSet<String>,
}

/// The handshake of a client with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Handshake {
    /// The message `initialize`, a line.
    pub(crate) initialize: Vec<u8>,
    /// The id of `initialize`.
    pub(crate) id: String,
    /// The message `notifications/initialized`, a line, if it was sent.
    pub(crate) initialized: Option<Vec<u8>>,
}

impl SessionRecord {
    /// Notes a message of the client, a line.
    pub(crate) fn note_client_message(&mut self, line: &[u8]) {
        match scan(line) {
            ScannedFrame::Request { id, method, .. } => {
                let id = text(&line[id]);
                if method == Method::Initialize {
                    let initialize = line.to_vec();
                    self.handshake = Some(Handshake { initialize, id: id.clone(), initialized: None });
                }
                insert(&mut self.client_requests, id);
            }
            ScannedFrame::Notification { method, .. } if method == Method::Cancelled => {
                if let Some(id) = cancelled_id(line) {
                    self.client_requests.remove(&id);
                }
            }
            ScannedFrame::Notification { method, .. } if method == Method::Initialized => {
                if let Some(handshake) = &mut self.handshake {
                    handshake.initialized = Some(line.to_vec());
                }
            }
            ScannedFrame::Response { id_text: Some(id), .. } => {
                // Some clients return a number as a string.
                self.host_requests.remove(text(&line[id]).trim_matches('"'));
            }
            ScannedFrame::Batch(messages) => {
                messages.into_iter().for_each(|range| self.note_client_message(&line[range]));
            }
            ScannedFrame::Response { id_text: None, .. }
            | ScannedFrame::EmptyResponse(_)
            | ScannedFrame::Notification { .. }
            | ScannedFrame::Noise => {}
        }
    }

    /// Notes a message of the host, a line.
    pub(crate) fn note_host_message(&mut self, line: &[u8]) {
        match scan(line) {
            ScannedFrame::Response { id_text: Some(id), .. } => {
                self.client_requests.remove(&text(&line[id]));
            }
            ScannedFrame::Request { id, .. } => insert(&mut self.host_requests, text(&line[id])),
            ScannedFrame::Notification { method, .. } if method == Method::Cancelled => {
                if let Some(id) = cancelled_id(line) {
                    self.host_requests.remove(&id);
                }
            }
            ScannedFrame::Batch(messages) => {
                messages.into_iter().for_each(|range| self.note_host_message(&line[range]));
            }
            ScannedFrame::Response { id_text: None, .. }
            | ScannedFrame::EmptyResponse(_)
            | ScannedFrame::Notification { .. }
            | ScannedFrame::Noise => {}
        }
    }

    /// The handshake, if the client has sent one.
    pub(crate) fn handshake(&self) -> Option<&Handshake> {
        self.handshake.as_ref()
    }

    /// Removes and returns the requests that the host has not answered. `initialize` stays, because it is sent again.
    pub(crate) fn take_unanswered(&mut self) -> Unanswered {
        let handshake = self.handshake.as_ref().map(|handshake| &handshake.id);
        let has_initialize = handshake.is_some_and(|id| self.client_requests.remove(id));
        let mut ids: Vec<String> = self.client_requests.drain().collect();
        ids.sort_unstable();
        if has_initialize {
            self.client_requests.extend(handshake.cloned());
        }
        Unanswered { ids, has_initialize }
    }

    /// Whether the client may still answer a request of the host. Another host would use the same ids.
    pub(crate) fn has_host_requests(&self) -> bool {
        !self.host_requests.is_empty()
    }
}

/// The requests that a host has not answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unanswered {
    /// Their ids, without that of `initialize`.
    pub(crate) ids: Vec<String>,
    /// Whether `initialize` is not answered.
    pub(crate) has_initialize: bool,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn insert(requests: &mut HashSet<String>, id: String) {
    if requests.len() < MAX_OPEN_REQUESTS {
        requests.insert(id);
    }
}

/// The id of the request that `notifications/cancelled` is about, as JSON text.
fn cancelled_id(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Notification {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "requestId")]
        request_id: serde_json::Value,
    }
    serde_json::from_slice::<Notification>(line).ok().map(|message| message.params.request_id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes messages, those of the host after `<`. Returns the ids without a response.
    #[track_caller]
    fn check(messages: &[&str], ids: &[&str], has_initialize: bool) {
        let mut record = SessionRecord::default();
        for message in messages {
            match message.strip_prefix('<') {
                Some(message) => record.note_host_message(message.as_bytes()),
                None => record.note_client_message(message.as_bytes()),
            }
        }
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(record.take_unanswered(), Unanswered { ids, has_initialize }, "{messages:?}");
    }

    #[test]
    fn sh_004_requests_without_a_response_are_known() {
        let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":8}}"#;
        let named = r#"{"method":"tools/list","id":"a b","jsonrpc":"2.0"}"#;
        check(&[call, named], &[r#""a b""#, "7"], false);
        check(&[call, named, r#"<{"jsonrpc":"2.0","id":7,"result":{"id":"a b"}}"#], &[r#""a b""#], false);
        check(&[call, r#"<{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":""}}"#], &[], false);
        check(
            &[call, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#],
            &[],
            false,
        );
        check(&[&format!("[{call},{named}]")], &[r#""a b""#, "7"], false);
        check(&["garbage", r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#], &[], false);
        check(&[r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, call], &["7"], true);
    }

    #[test]
    fn sh_004_handshake_and_requests_of_the_host_are_known() {
        let mut record = SessionRecord::default();
        assert_eq!(record.handshake(), None);
        let initialize = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        record.note_client_message(initialize);
        record.note_host_message(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        record.note_client_message(initialized);
        let handshake = record.handshake().unwrap();
        assert_eq!(handshake.initialize, initialize);
        assert_eq!(handshake.initialized.as_deref(), Some(&initialized[..]));
        assert_eq!(record.take_unanswered(), Unanswered { ids: Vec::new(), has_initialize: false });
        record.note_host_message(br#"{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{}}"#);
        assert!(record.has_host_requests());
        record.note_client_message(br#"{"jsonrpc":"2.0","id":"1","result":{"roots":[]}}"#);
        assert!(!record.has_host_requests());
    }
}

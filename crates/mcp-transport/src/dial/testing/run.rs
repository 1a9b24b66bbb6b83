//! The input of a row: the form of its responses, its session, and the messages that the server received.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::Era;
use parking_lot::Mutex;
use serde_json::Value;

use crate::session::{Session, SessionOptions};
use crate::transport::Dial;

/// How a transport receives the response to a request. A failure of a response of its own ends one call, and
/// its end shows that no message will follow. On a shared stream a failure ends all calls, and a missing
/// response is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseForm {
    /// On the stream of the connection, with all other messages: [`StreamId::Shared`](crate::StreamId::Shared).
    Shared,
    /// On a stream of its own, with any number of messages.
    Stream,
    /// As a document of its own, which is one message. Rows with several messages are left out.
    Document,
}

/// The session of a row, how it was made, and what its server received.
pub(super) struct SessionRun {
    pub(super) session: Arc<Session>,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) options: SessionOptions,
    pub(super) received: ReceivedMessages,
    pub(super) form: ResponseForm,
    pub(super) era: Era,
}

/// The messages that a server received.
#[derive(Clone, Default)]
pub(super) struct ReceivedMessages(pub(super) Arc<Mutex<Vec<Value>>>);

impl ReceivedMessages {
    /// Waits for a message with this method.
    pub(super) async fn wait_for_method(&self, method: &str) {
        self.wait_for(|message| message["method"] == method).await;
    }

    /// Waits for a message, and returns it.
    pub(super) async fn wait_for(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let found = self.0.lock().iter().find(|message| is_wanted(message)).cloned();
            if let Some(message) = found {
                return message;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The names of the tools that were called, in order.
    pub(super) fn called(&self) -> Vec<String> {
        let received = self.0.lock();
        received.iter().filter_map(|message| message["params"]["name"].as_str()).map(Into::into).collect()
    }
}

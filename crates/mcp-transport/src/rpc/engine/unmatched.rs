//! Records what a server sent that resembles MCP but belongs to no request. It explains a timeout.

use std::sync::atomic::Ordering;

use mcp_host_model::RpcError;
use serde::Deserialize;
use tokio::time::Instant;

use super::Engine;
use crate::error::unmatched_output::UnmatchedOutput;
use crate::transport::MessageClass;

/// Maximum number of characters of a server's text that are kept.
const MAX_TEXT_CHARS: usize = 100;

impl Engine {
    /// The last output since `start` that resembles MCP but belongs to no request, or a message that has not ended.
    pub(crate) fn unmatched_since(&self, start: Instant) -> Option<UnmatchedOutput> {
        let last = self.unmatched.lock().clone().filter(|(at, _)| *at >= start).map(|(_, output)| output);
        let is_unfinished = self.has_unfinished_message.load(Ordering::Relaxed);
        last.or_else(|| is_unfinished.then_some(UnmatchedOutput::NoLineBreak))
    }

    pub(super) fn record_unmatched(&self, output: UnmatchedOutput) {
        *self.unmatched.lock() = Some((Instant::now(), output));
    }

    /// Records an error without an id.
    pub(super) fn record_error_without_id(&self, payload: &[u8]) {
        let error = RpcError::deserialize(&mut serde_json::Deserializer::from_slice(payload));
        let message = error.map(|error| self.shorten(&error.message)).unwrap_or_default();
        self.record_unmatched(UnmatchedOutput::ErrorWithoutId(message));
    }

    /// Records a response with an id that is none of ours.
    pub(super) fn record_unknown_id(&self, id: &[u8]) {
        let id = self.shorten(&String::from_utf8_lossy(id));
        self.record_unmatched(UnmatchedOutput::UnknownId(id));
    }

    /// Reports a response that belongs to no call.
    pub(super) fn report_unmatched(&self, description: &str) -> MessageClass {
        tracing::debug!("the server sent {description}");
        self.report_protocol_error(|| description.to_owned());
        MessageClass::Unsolicited(1)
    }

    /// A text of the server for a message, without secrets.
    fn shorten(&self, text: &str) -> String {
        // Redacted before it is cut: the beginning of a secret would not be recognized.
        let text = self.dial.as_ref().map_or_else(|| text.to_owned(), |dial| dial.redact(text));
        text.chars().filter(|character| !character.is_control()).take(MAX_TEXT_CHARS).collect()
    }
}

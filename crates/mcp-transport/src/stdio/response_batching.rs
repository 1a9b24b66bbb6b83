//! Batches responses when many calls are in flight, so that host and server work at the same time.
//!
//! A caller may send its next request as soon as it has its response. If all responses that arrived together were
//! delivered before the first new request is written, the server would be idle meanwhile and then respond to all of
//! them together again. Therefore only a part is delivered, and the resulting requests are written, before the rest.

use std::sync::Arc;

use crate::transport::FlowState;
use crate::transport::OutboundQueue;

/// The batch size of one connection.
pub(super) struct ResponseBatching(Arc<FlowState>);

impl ResponseBatching {
    /// Uses the calls in flight of this queue.
    pub(super) fn of(out: &OutboundQueue) -> ResponseBatching {
        ResponseBatching(Arc::clone(&out.flow))
    }

    /// The number of responses to deliver before other tasks run.
    pub(super) fn batch_size(&self) -> usize {
        self.0.batch_size()
    }
}

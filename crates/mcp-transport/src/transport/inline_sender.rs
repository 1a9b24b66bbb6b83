//! Sending a request from the task that makes the call.
//!
//! Passing a request through the transport's task costs a wake-up in each direction, and all exchanges of a
//! connection wait for that one task. A transport with a response stream for each request can avoid this: it
//! registers an [`InlineSender`], and the engine offers it each request before using the queue.

use std::pin::Pin;

use crate::transport::message::{OutboundMessage, RequestId};

/// A request in progress, up to the last frame of its response stream. It reports the result to the frame sink itself.
pub(crate) type ExchangeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A transport that can send a request from any task.
pub(crate) trait InlineSender: Send + Sync {
    /// Starts a request if it does not have to wait for anything. Returns the message if it must use the queue.
    fn start(&self, message: OutboundMessage) -> Result<ExchangeFuture, Box<OutboundMessage>>;

    /// Whether this is the runtime that the transport belongs to. An exchange is polled only there; from
    /// another runtime it is handed back with [`hand_over`](InlineSender::hand_over).
    fn is_own_runtime(&self) -> bool;

    /// Takes over the exchange of request `id`, whose caller was dropped: the rest of a stream, or a request
    /// that is about to be cancelled.
    fn hand_over(&self, id: RequestId, rest: ExchangeFuture);
}

//! Sending a request from the task that makes the call.
//!
//! Passing a request through the transport's task costs a wake-up in each direction, and all exchanges of a
//! connection wait for that one task. A transport with a response stream for each request can avoid this: it
//! registers an [`InlineSender`], and the engine offers it each request before using the queue.

use std::pin::Pin;

use crate::transport::message::{OutboundMessage, RequestId};

/// The exchange of a request: sends it and reads its response stream to the end. Its messages and errors are delivered
/// to the frame sink.
pub(crate) type ExchangeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A transport that can send a request from any task.
pub(crate) trait InlineSender: Send + Sync {
    /// Starts a request if it does not have to wait for anything. Returns the message if it must use the queue.
    fn start(&self, message: OutboundMessage) -> Result<ExchangeFuture, Box<OutboundMessage>>;

    /// Whether the current runtime is that of the transport. On another runtime an exchange must not be polled; it is
    /// passed to [`hand_over`](InlineSender::hand_over).
    fn is_own_runtime(&self) -> bool;

    /// Takes over the exchange of request `id`, because its caller was dropped or runs on another runtime.
    fn hand_over(&self, id: RequestId, exchange: ExchangeFuture);
}

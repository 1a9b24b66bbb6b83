//! How a request is carried by the task that makes it, over wires where each has a lane of its own.
//!
//! Between a caller and a wire's task stands a wake-up each way, and all exchanges of a connection wait for one task. A wire
//! that can do without lends itself as a [`Carrier`]: the engine asks it first, and puts into the queue what it gives back.

use std::pin::Pin;

use crate::transport::OutboundMessage;

/// A request on its way, with all that comes for it. It ends when its lane is over, and has told the inbox how.
pub(crate) type Exchange = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A wire whose requests can be carried by anybody.
pub(crate) trait InlineSender: Send + Sync {
    /// Begins a request where it need not wait, and nothing before it. Gives the message back where it is to go through
    /// the queue.
    fn start(&self, message: OutboundMessage) -> Result<Exchange, Box<OutboundMessage>>;

    /// Is this the runtime that the wire belongs to? An exchange is polled there alone; elsewhere it is
    /// [taken over](Carrier::take_over).
    fn is_own_runtime(&self) -> bool;

    /// Takes what is left of an exchange whose caller is gone: the rest of a stream, or a request that is about to be
    /// abandoned.
    fn adopt(&self, rest: Exchange);
}

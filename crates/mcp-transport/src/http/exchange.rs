//! Exchanges. An exchange sends a message and handles its response; the task of the caller polls it if possible, the
//! driver otherwise.

use std::sync::{Arc, Weak};

use futures_util::future::{AbortHandle, Abortable};
use tokio::runtime::{Handle, Id};

use super::connection::{DriverCommand, HttpConnection};
use super::post;
use crate::transport::inline_sender::{ExchangeFuture, InlineSender};
use crate::transport::{OutboundMessage, RequestId};

/// Lets callers send their requests themselves. Does not keep the connection alive.
pub(super) struct HttpInlineSender {
    connection: Weak<HttpConnection>,
    /// The runtime of the driver. A caller in another runtime does not send its own requests: a socket belongs to the
    /// runtime in which it was opened, and other callers reuse it.
    runtime: Id,
}

impl HttpInlineSender {
    /// Records the current runtime. Call it in the task of the driver.
    pub(super) fn new(connection: &Arc<HttpConnection>) -> HttpInlineSender {
        HttpInlineSender { connection: Arc::downgrade(connection), runtime: Handle::current().id() }
    }
}

impl InlineSender for HttpInlineSender {
    fn start(&self, message: OutboundMessage) -> Result<ExchangeFuture, Box<OutboundMessage>> {
        let Some(connection) = self.connection.upgrade() else { return Err(Box::new(message)) };
        {
            let mut send_queue = connection.send_queue.lock();
            if !send_queue.can_send_now(&message) || !connection.client.is_exclusive() {
                return Err(Box::new(message));
            }
            send_queue.mark_in_flight(&message);
        }
        Ok(start_exchange(&connection, message))
    }

    fn is_own_runtime(&self) -> bool {
        Handle::try_current().is_ok_and(|it| it.id() == self.runtime)
    }

    fn hand_over(&self, id: RequestId, exchange: ExchangeFuture) {
        let Some(connection) = self.connection.upgrade() else { return };
        let send_queue = connection.send_queue.lock();
        if !send_queue.is_closed {
            // Under the lock, so that no command is sent after the queue was closed.
            connection.send_command(DriverCommand::TakeOver(id, exchange));
            return;
        }
        drop(send_queue);
        // After the lock, which the drop of an exchange takes.
        drop(exchange);
    }
}

/// Closes the queue when the connection ends. The driver drops its exchanges then, and callers drop theirs.
pub(super) struct CloseQueueOnDrop<'a>(pub(super) &'a HttpConnection);

impl Drop for CloseQueueOnDrop<'_> {
    fn drop(&mut self) {
        self.0.send_queue.lock().is_closed = true;
    }
}

/// An exchange that the driver polls. It can be aborted.
pub(super) type DriverExchange = Abortable<ExchangeFuture>;

/// Prepares an exchange for the driver to poll. `None` if its request was already cancelled.
pub(super) fn make_abortable(
    connection: &HttpConnection,
    id: Option<RequestId>,
    exchange: ExchangeFuture,
) -> Option<DriverExchange> {
    let (abort, registration) = AbortHandle::new_pair();
    let is_pending = id.is_none_or(|id| connection.send_queue.lock().set_abort_handle(id, abort));
    is_pending.then(|| Abortable::new(exchange, registration))
}

/// Starts the exchange of a message that is marked as in flight. The future ends with the message's stream.
pub(super) fn start_exchange(connection: &Arc<HttpConnection>, message: OutboundMessage) -> ExchangeFuture {
    let guard = InFlightGuard { connection: Arc::clone(connection), id: message.head.id };
    Box::pin(async move {
        let connection = &*guard.connection;
        if let Some(opened) = post::send_message(connection, &message).await {
            connection.send_command(DriverCommand::Listen(opened));
        }
    })
}

/// Removes a message from those in flight when it is dropped.
struct InFlightGuard {
    connection: Arc<HttpConnection>,
    id: Option<RequestId>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        // After a panic, the request stays in the table: when its caller is dropped, the server is told to cancel it.
        let id = self.id.filter(|_| !std::thread::panicking());
        // `state` is dropped after the lock, because its abort handle wakes another task.
        let (state, has_queued) = self.connection.send_queue.lock().finish(id);
        drop(state);
        if has_queued {
            self.connection.send_command(DriverCommand::SendQueued);
        }
    }
}

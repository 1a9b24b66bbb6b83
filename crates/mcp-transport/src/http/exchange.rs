//! Exchanges: a message and its response, sent by the caller's task if possible, by the driver otherwise.

use std::sync::{Arc, Weak};

use futures_util::future::{AbortHandle, Abortable, Aborted};
use parking_lot::MutexGuard;
use tokio::runtime::{Handle, Id};

use super::send_queue::{HttpSendQueue, OPENING};
use super::{DriverCommand, HttpConnection, post};
use crate::transport::inline_sender::{Exchange, InlineSender};
use crate::transport::{OutboundMessage, RequestId};

/// Lets callers send their requests themselves. Does not keep the connection alive.
pub(super) struct HttpInlineSender {
    connection: Weak<HttpConnection>,
    /// Sockets belong to the runtime in which they were opened, and are reused by other callers.
    runtime: Id,
}

impl HttpInlineSender {
    /// Must be called by the driver.
    pub(super) fn new(connection: &Arc<HttpConnection>) -> HttpInlineSender {
        HttpInlineSender { connection: Arc::downgrade(connection), runtime: Handle::current().id() }
    }
}

impl InlineSender for HttpInlineSender {
    fn start(&self, message: OutboundMessage) -> Result<Exchange, Box<OutboundMessage>> {
        let Some(connection) = self.connection.upgrade() else { return Err(Box::new(message)) };
        let send_queue = connection.send_queue.lock();
        if !send_queue.can_send_now(&message) || !connection.client.is_exclusive() {
            return Err(Box::new(message));
        }
        Ok(start_exchange(&connection, send_queue, message))
    }

    fn is_own_runtime(&self) -> bool {
        Handle::try_current().is_ok_and(|it| it.id() == self.runtime)
    }

    fn adopt(&self, rest: Exchange) {
        let Some(connection) = self.connection.upgrade() else { return };
        let send_queue = connection.send_queue.lock();
        if !send_queue.is_closed() {
            // Under the lock, so that no command is sent after the queue was closed.
            connection.command(DriverCommand::TakeOver(rest));
            return;
        }
        drop(send_queue);
        drop(rest);
    }
}

/// Aborts all exchanges when the connection ends.
pub(super) struct AbortAllOnDrop<'a>(pub(super) &'a HttpConnection);

impl Drop for AbortAllOnDrop<'_> {
    fn drop(&mut self) {
        let handles = self.0.send_queue.lock().close();
        handles.iter().for_each(AbortHandle::abort);
    }
}

/// Starts the exchange of a message. The future ends with the message's stream, or when it is aborted.
pub(super) fn start_exchange(
    connection: &Arc<HttpConnection>,
    mut send_queue: MutexGuard<'_, HttpSendQueue>,
    message: OutboundMessage,
) -> Exchange {
    let (abort, registration) = AbortHandle::new_pair();
    send_queue.mark_in_flight(&message, abort);
    drop(send_queue);
    let guard = InFlightGuard { connection: Arc::clone(connection), id: message.head.id };
    let opening = (message.head.method == OPENING).then_some(message.epoch);
    Box::pin(async move {
        let connection = &*guard.connection;
        match (Abortable::new(post::send_message(connection, &message), registration).await, opening) {
            (Ok(Some(opened)), _) => connection.command(DriverCommand::SessionOpened(opened)),
            // The handshake has failed, so there is nothing to wait for.
            (Err(Aborted), Some(epoch)) => connection.command(DriverCommand::OpeningDone(epoch)),
            (Ok(None), _) | (Err(Aborted), None) => {}
        }
    })
}

/// Marks a message as in flight until it is dropped.
struct InFlightGuard {
    connection: Arc<HttpConnection>,
    id: Option<RequestId>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        // After a panic, the request stays known: its caller abandons it, and the server is notified.
        let id = self.id.filter(|_| !std::thread::panicking());
        // Dropped outside of the lock: it holds another task's waker.
        let (state, has_queued) = self.connection.send_queue.lock().finish(id);
        drop(state);
        if has_queued {
            self.connection.command(DriverCommand::CapacityFree);
        }
    }
}

//! Exchanges: a message and its response, sent by the caller's task if possible, by the driver otherwise.

use std::sync::{Arc, MutexGuard, Weak};

use futures_util::future::{AbortHandle, Abortable, Aborted};
use tokio::runtime::{Handle, Id};

use super::send_queue::{HttpSendQueue, OPENING};
use super::{DriverCommand, HttpConnection, post};
use crate::transport::inline_sender::{Exchange, InlineSender};
use crate::transport::{OutboundMessage, RequestId};

/// Lets callers send their requests themselves. Does not keep the connection alive.
pub(super) struct HttpInlineSender {
    wire: Weak<HttpConnection>,
    /// Sockets belong to the runtime in which they were opened, and are reused by other callers.
    runtime: Id,
}

impl HttpInlineSender {
    /// Must be called by the driver.
    pub(super) fn of(wire: &Arc<HttpConnection>) -> HttpInlineSender {
        HttpInlineSender { wire: Arc::downgrade(wire), runtime: Handle::current().id() }
    }
}

impl InlineSender for HttpInlineSender {
    fn start(&self, message: OutboundMessage) -> Result<Exchange, Box<OutboundMessage>> {
        let Some(wire) = self.wire.upgrade() else { return Err(Box::new(message)) };
        let lanes = wire.lanes();
        if !lanes.can_send_now(&message) || !wire.client.is_exclusive() {
            return Err(Box::new(message));
        }
        Ok(start_exchange(&wire, lanes, message))
    }

    fn is_own_runtime(&self) -> bool {
        Handle::try_current().is_ok_and(|it| it.id() == self.runtime)
    }

    fn adopt(&self, rest: Exchange) {
        let Some(wire) = self.wire.upgrade() else { return };
        let lanes = wire.lanes();
        if !lanes.is_closed() {
            // Under the lock, so that no command is sent after the queue was closed.
            wire.command(DriverCommand::TakeOver(rest));
            return;
        }
        drop(lanes);
        drop(rest);
    }
}

/// Aborts all exchanges when the connection ends.
pub(super) struct AbortAllOnDrop<'a>(pub(super) &'a HttpConnection);

impl Drop for AbortAllOnDrop<'_> {
    fn drop(&mut self) {
        let open = self.0.lanes().close();
        open.iter().for_each(AbortHandle::abort);
    }
}

/// Starts the exchange of a message. The future ends with the message's stream, or when it is aborted.
pub(super) fn start_exchange(
    wire: &Arc<HttpConnection>,
    mut lanes: MutexGuard<'_, HttpSendQueue>,
    message: OutboundMessage,
) -> Exchange {
    let (abort, registration) = AbortHandle::new_pair();
    lanes.mark_in_flight(&message, abort);
    drop(lanes);
    let on_its_way = InFlightGuard { wire: Arc::clone(wire), id: message.head.id };
    let opening = (message.head.method == OPENING).then_some(message.epoch);
    Box::pin(async move {
        let wire = &*on_its_way.wire;
        match (Abortable::new(post::send_message(wire, message), registration).await, opening) {
            (Ok(Some(opened)), _) => wire.command(DriverCommand::SessionOpened(opened)),
            // The handshake has failed, so there is nothing to wait for.
            (Err(Aborted), Some(epoch)) => wire.command(DriverCommand::OpeningDone(epoch)),
            (Ok(None), _) | (Err(Aborted), None) => {}
        }
    })
}

/// Marks a message as in flight until it is dropped.
struct InFlightGuard {
    wire: Arc<HttpConnection>,
    id: Option<RequestId>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        // After a panic, the request stays known: its caller abandons it, and the server is notified.
        let id = self.id.filter(|_| !std::thread::panicking());
        // Dropped outside of the lock: it holds another task's waker.
        let (lane, waits) = self.wire.lanes().finish(id);
        drop(lane);
        if waits {
            self.wire.command(DriverCommand::CapacityFree);
        }
    }
}

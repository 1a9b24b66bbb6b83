//! Who carries a message: its caller where he can, the wire's own task otherwise.

use std::sync::{Arc, MutexGuard, Weak};

use futures_util::future::{AbortHandle, Abortable, Aborted};
use tokio::runtime::{Handle, Id};

use super::send_queue::{HttpSendQueue, OPENING};
use super::{DriverCommand, HttpConnection, post};
use crate::transport::inline_sender::{Exchange, InlineSender};
use crate::transport::{OutboundMessage, RequestId};

/// A wire that lets callers carry their requests. It does not keep the wire alive.
pub(super) struct HttpInlineSender {
    wire: Weak<HttpConnection>,
    /// Sockets belong to the runtime that they were opened in, and are used by others later.
    runtime: Id,
}

impl HttpInlineSender {
    /// Called in the wire's own task.
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
            // Under the lock, so that it is never put where nobody looks any more.
            wire.command(DriverCommand::TakeOver(rest));
            return;
        }
        drop(lanes);
        drop(rest);
    }
}

/// Takes everything back when the wire is over, however it ends.
pub(super) struct AbortAllOnDrop<'a>(pub(super) &'a HttpConnection);

impl Drop for AbortAllOnDrop<'_> {
    fn drop(&mut self) {
        let open = self.0.lanes().close();
        open.iter().for_each(AbortHandle::abort);
    }
}

/// Begins a message that may be sent now: what carries it until its lane is over, or it is taken back.
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
            // Nothing follows it that others would have to wait for.
            (Err(Aborted), Some(epoch)) => wire.command(DriverCommand::OpeningDone(epoch)),
            (Ok(None), _) | (Err(Aborted), None) => {}
        }
    })
}

/// A message that has begun. Dropped when it is through, or when nobody carries it any more.
struct InFlightGuard {
    wire: Arc<HttpConnection>,
    id: Option<RequestId>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        // What has panicked is about to be abandoned: the server is to hear of it.
        let id = self.id.filter(|_| !std::thread::panicking());
        // Dropped outside of the lock: it holds a stranger's waker.
        let (lane, waits) = self.wire.lanes().finish(id);
        drop(lane);
        if waits {
            self.wire.command(DriverCommand::CapacityFree);
        }
    }
}

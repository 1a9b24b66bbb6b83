//! Who carries a message: its caller where he can, the wire's own task otherwise.

use std::sync::{Arc, MutexGuard, Weak};

use futures_util::future::{AbortHandle, Abortable, Aborted};
use tokio::runtime::{Handle, Id};

use super::lanes::{Lanes, OPENING};
use super::{Told, Wire, post};
use crate::transport::inline_sender::{Exchange, InlineSender};
use crate::transport::{OutboundMessage, RequestId};

/// A wire that lets callers carry their requests. It does not keep the wire alive.
pub(super) struct Lent {
    wire: Weak<Wire>,
    /// Sockets belong to the runtime that they were opened in, and are used by others later.
    runtime: Id,
}

impl Lent {
    /// Called in the wire's own task.
    pub(super) fn of(wire: &Arc<Wire>) -> Lent {
        Lent { wire: Arc::downgrade(wire), runtime: Handle::current().id() }
    }
}

impl InlineSender for Lent {
    fn start(&self, message: OutboundMessage) -> Result<Exchange, Box<OutboundMessage>> {
        let Some(wire) = self.wire.upgrade() else { return Err(Box::new(message)) };
        let lanes = wire.lanes();
        if !lanes.admits(&message) || !wire.client.shares_nothing() {
            return Err(Box::new(message));
        }
        Ok(begin(&wire, lanes, message))
    }

    fn is_own_runtime(&self) -> bool {
        Handle::try_current().is_ok_and(|it| it.id() == self.runtime)
    }

    fn adopt(&self, rest: Exchange) {
        let Some(wire) = self.wire.upgrade() else { return };
        let lanes = wire.lanes();
        if !lanes.is_closed() {
            // Under the lock, so that it is never put where nobody looks any more.
            wire.tell(Told::Rest(rest));
            return;
        }
        drop(lanes);
        drop(rest);
    }
}

/// Takes everything back when the wire is over, however it ends.
pub(super) struct Closing<'a>(pub(super) &'a Wire);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let open = self.0.lanes().close();
        open.iter().for_each(AbortHandle::abort);
    }
}

/// Begins a message that may be sent now: what carries it until its lane is over, or it is taken back.
pub(super) fn begin(
    wire: &Arc<Wire>,
    mut lanes: MutexGuard<'_, Lanes>,
    message: OutboundMessage,
) -> Exchange {
    let (abort, registration) = AbortHandle::new_pair();
    lanes.began(&message, abort);
    drop(lanes);
    let on_its_way = OnItsWay { wire: Arc::clone(wire), id: message.head.id };
    let opening = (message.head.method == OPENING).then_some(message.epoch);
    Box::pin(async move {
        let wire = &*on_its_way.wire;
        match (Abortable::new(post::carry(wire, message), registration).await, opening) {
            (Ok(Some(opened)), _) => wire.tell(Told::Opened(opened)),
            // Nothing follows it that others would have to wait for.
            (Err(Aborted), Some(epoch)) => wire.tell(Told::Ready(epoch)),
            (Ok(None), _) | (Err(Aborted), None) => {}
        }
    })
}

/// A message that has begun. Dropped when it is through, or when nobody carries it any more.
struct OnItsWay {
    wire: Arc<Wire>,
    id: Option<RequestId>,
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        // What has panicked is about to be abandoned: the server is to hear of it.
        let id = self.id.filter(|_| !std::thread::panicking());
        // Dropped outside of the lock: it holds a stranger's waker.
        let (lane, waits) = self.wire.lanes().settled(id);
        drop(lane);
        if waits {
            self.wire.tell(Told::Room);
        }
    }
}

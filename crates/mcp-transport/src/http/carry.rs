//! Who carries a message: its caller where he can, the wire's own task otherwise.

use std::sync::{Arc, Weak};

use futures_util::future::{AbortHandle, AbortRegistration, Abortable};
use tokio::runtime::{Handle, Id};

use super::{Told, Wire, post};
use crate::carrier::{Carrier, Exchange};
use crate::{Outgoing, RequestId};

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

impl Carrier for Lent {
    fn carry(&self, message: Outgoing) -> Result<Exchange, Box<Outgoing>> {
        let is_here = Handle::try_current().is_ok_and(|it| it.id() == self.runtime);
        let Some(wire) = self.wire.upgrade().filter(|_| is_here) else { return Err(Box::new(message)) };
        let registration = {
            let mut lanes = wire.lanes();
            if !lanes.admits(&message) {
                return Err(Box::new(message));
            }
            let (abort, registration) = AbortHandle::new_pair();
            lanes.began(&message, abort);
            registration
        };
        Ok(Box::pin(perform(wire, message, registration)))
    }

    fn take_over(&self, rest: Exchange) {
        if let Some(wire) = self.wire.upgrade() {
            wire.tell(Told::Rest(rest));
        }
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

/// Carries a message that has begun until its lane is over, or it is taken back.
pub(super) fn perform(
    wire: Arc<Wire>,
    message: Outgoing,
    registration: AbortRegistration,
) -> impl Future<Output = ()> + Send {
    let on_its_way = OnItsWay { wire, id: message.head.id };
    async move {
        let wire = &*on_its_way.wire;
        let opened = Abortable::new(post::carry(wire, message), registration).await;
        if let Ok(Some(epoch)) = opened {
            wire.tell(Told::Opened(epoch));
        }
    }
}

/// A message that has begun. Dropped when it is through, or when nobody carries it any more.
struct OnItsWay {
    wire: Arc<Wire>,
    id: Option<RequestId>,
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        let waits = self.wire.lanes().settled(self.id);
        if waits {
            self.wire.tell(Told::Room);
        }
    }
}

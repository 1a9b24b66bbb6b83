//! A call from its beginning to its outcome, as its caller polls it.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::SemaphorePermit;

use super::{Engine, GivenUp};
use crate::rpc::inline_sender::Exchange;
use crate::rpc::pending::Outcome;
use crate::transport::{Outbound, RequestId};

/// A call that waits. Dropped before it was told, it tells the peer.
pub(super) struct Waiting<'a> {
    engine: &'a Engine,
    id: RequestId,
    told: bool,
    given_up: GivenUp,
    /// What is left to do to have it answered, where that is the caller's.
    pub(super) carried: Option<Exchange>,
    _permit: SemaphorePermit<'a>,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        id: RequestId,
        given_up: GivenUp,
        permit: SemaphorePermit<'a>,
    ) -> Waiting<'a> {
        Waiting { engine, id, told: false, given_up, carried: None, _permit: permit }
    }
}

impl Future for Waiting<'_> {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        // Not there while it is looked at: what panics must not be looked at again.
        if let Some(mut carried) = self.carried.take() {
            match self.engine.out.inline_sender().filter(|it| !it.is_own_runtime()) {
                Some(carrier) => carrier.adopt(carried),
                None if carried.as_mut().poll(context).is_ready() => {}
                None => self.carried = Some(carried),
            }
        }
        let poll = self.engine.pending.poll(self.id, context);
        self.told = poll.is_ready();
        poll
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let (Some(rest), Some(carrier)) = (self.carried.take(), self.engine.out.inline_sender()) {
            carrier.adopt(rest);
        }
        if self.told || !self.engine.pending.forget(self.id) {
            return;
        }
        match self.given_up {
            GivenUp::Told => self.engine.abandon(self.id, "nobody waits for the answer any more"),
            // The wire lets go of the request all the same: it may hold a socket for it.
            GivenUp::Silent => self.engine.out.send(Outbound::Cancel { id: self.id, notice: None }),
        }
    }
}

//! The future of a call.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::SemaphorePermit;

use super::{CancelNotice, Engine};
use crate::rpc::pending::CallOutcome;
use crate::transport::inline_sender::Exchange;
use crate::transport::{Outbound, RequestId};

/// A call in flight. Dropping it before its outcome is known cancels the call at the server.
pub(super) struct CallFuture<'a> {
    engine: &'a Engine,
    id: RequestId,
    is_done: bool,
    was_polled: bool,
    cancel_notice: CancelNotice,
    /// The rest of the exchange, if the calling task sends the request itself.
    pub(super) exchange: Option<Exchange>,
    _permit: SemaphorePermit<'a>,
}

impl<'a> CallFuture<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        id: RequestId,
        cancel_notice: CancelNotice,
        permit: SemaphorePermit<'a>,
    ) -> CallFuture<'a> {
        CallFuture {
            engine,
            id,
            is_done: false,
            was_polled: false,
            cancel_notice,
            exchange: None,
            _permit: permit,
        }
    }
}

impl Future for CallFuture<'_> {
    type Output = CallOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallOutcome> {
        // Taken out while it is polled: a future that panicked must not be polled again.
        if let Some(mut exchange) = self.exchange.take() {
            // The exchange may complete the call, which must not schedule this task once more.
            if std::mem::replace(&mut self.was_polled, true) {
                self.engine.pending.clear_waker(self.id);
            }
            match self.engine.out.inline_sender().filter(|it| !it.is_own_runtime()) {
                Some(inline_sender) => inline_sender.hand_over(self.id, exchange),
                None if exchange.as_mut().poll(context).is_ready() => {}
                None => self.exchange = Some(exchange),
            }
        }
        let poll = self.engine.pending.poll(self.id, context);
        self.is_done = poll.is_ready();
        poll
    }
}

impl Drop for CallFuture<'_> {
    fn drop(&mut self) {
        if let (Some(exchange), Some(inline_sender)) = (self.exchange.take(), self.engine.out.inline_sender())
        {
            inline_sender.hand_over(self.id, exchange);
        }
        if self.is_done || !self.engine.pending.remove(self.id) {
            return;
        }
        match self.cancel_notice {
            CancelNotice::Send => self.engine.cancel(self.id, "the caller no longer needs the response"),
            // The transport releases what it holds for the request, for example a socket.
            CancelNotice::Suppress => self.engine.out.send(Outbound::Cancel { id: self.id, notice: None }),
        }
    }
}

//! The future of a call.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::SemaphorePermit;

use crate::rpc::frame;
use crate::rpc::outcome::RpcOutcome;
use crate::rpc::pending::PendingCalls;
use crate::transport::inline_sender::ExchangeFuture;
use crate::transport::{Outbound, OutboundSender, RequestId};

/// What the server receives when a call is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CancelNotice {
    /// A `notifications/cancelled`.
    #[default]
    Send,
    /// Nothing: `initialize` must not be cancelled.
    Suppress,
}

/// A call in flight. Dropping it before its outcome is known cancels the call at the server.
pub(super) struct CallFuture<'a> {
    pub(super) pending: &'a PendingCalls,
    pub(super) out: &'a OutboundSender,
    pub(super) id: RequestId,
    pub(super) cancel_notice: CancelNotice,
    /// The rest of the exchange, if the calling task sends the request itself.
    pub(super) exchange: Option<ExchangeFuture>,
    pub(super) was_polled: bool,
    pub(super) is_done: bool,
    pub(super) _permit: SemaphorePermit<'a>,
}

impl Future for CallFuture<'_> {
    type Output = RpcOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<RpcOutcome> {
        // Taken out while it is polled: a future that panicked must not be polled again.
        if let Some(mut exchange) = self.exchange.take() {
            // The exchange may complete the call, which must not schedule this task once more.
            if std::mem::replace(&mut self.was_polled, true) {
                self.pending.clear_waker(self.id);
            }
            match self.out.inline_sender().filter(|it| !it.is_own_runtime()) {
                Some(inline_sender) => inline_sender.hand_over(self.id, exchange),
                None if exchange.as_mut().poll(context).is_ready() => {}
                None => self.exchange = Some(exchange),
            }
        }
        let poll = self.pending.poll(self.id, context);
        self.is_done = poll.is_ready();
        poll
    }
}

impl Drop for CallFuture<'_> {
    fn drop(&mut self) {
        if let (Some(exchange), Some(inline_sender)) = (self.exchange.take(), self.out.inline_sender()) {
            inline_sender.hand_over(self.id, exchange);
        }
        if self.is_done || !self.pending.remove(self.id) {
            return;
        }
        match self.cancel_notice {
            CancelNotice::Send => cancel(self.out, self.id, "the caller no longer needs the response"),
            // The transport releases what it holds for the request, for example a socket.
            CancelNotice::Suppress => self.out.send(Outbound::Cancel { id: self.id, notice: None }),
        }
    }
}

/// Cancels a request at the server.
pub(super) fn cancel(out: &OutboundSender, id: RequestId, reason: &str) {
    out.send(Outbound::Cancel { id, notice: Some(frame::cancelled(id, reason)) });
}

//! The future of a call.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::SemaphorePermit;

use crate::rpc::frame;
use crate::rpc::outcome::RpcOutcome;
use crate::rpc::pending::PendingCalls;
use crate::transport::inline_sender::ExchangeFuture;
use crate::transport::{Outbound, OutboundSender, RequestId};

/// Whether the server is notified when a call is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CancelNotice {
    /// With a `notifications/cancelled`.
    #[default]
    Send,
    /// No message.
    Suppress,
}

/// A call in flight. Dropping it before its outcome is known cancels the call at the server.
pub(super) struct CallFuture<'a> {
    pub(super) pending: &'a PendingCalls,
    pub(super) outbound: &'a OutboundSender,
    pub(super) id: RequestId,
    pub(super) cancel_notice: CancelNotice,
    /// The rest of the exchange, if the calling task sends the request itself.
    pub(super) exchange: Option<ExchangeFuture>,
    /// Whether the exchange was polled before, so that the table may have a waker of this call.
    pub(super) was_polled: bool,
    /// Whether the outcome was returned.
    pub(super) is_done: bool,
    /// One of the permits for calls in flight.
    pub(super) _permit: SemaphorePermit<'a>,
}

impl Future for CallFuture<'_> {
    type Output = RpcOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<RpcOutcome> {
        // The exchange is taken out while it is polled, because a future that panicked must not be polled again.
        if let Some(mut exchange) = self.exchange.take() {
            // The exchange may complete the call, which must not schedule this task once more.
            if std::mem::replace(&mut self.was_polled, true) {
                self.pending.clear_waker(self.id);
            }
            match self.outbound.inline_sender().filter(|it| !it.is_own_runtime()) {
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
        if let (Some(exchange), Some(inline_sender)) = (self.exchange.take(), self.outbound.inline_sender()) {
            inline_sender.hand_over(self.id, exchange);
        }
        if self.is_done || !self.pending.remove(self.id) {
            return;
        }
        match self.cancel_notice {
            CancelNotice::Send => {
                send_cancel(self.outbound, self.id, "the caller no longer needs the response")
            }
            // The transport releases what it holds for the request, for example a socket.
            CancelNotice::Suppress => self.outbound.send(Outbound::Cancel { id: self.id, notice: None }),
        }
    }
}

/// Cancels a request at the server, with a cancel notice.
pub(super) fn send_cancel(outbound: &OutboundSender, id: RequestId, reason: &str) {
    outbound.send(Outbound::Cancel { id, notice: Some(frame::cancel_notification(id, reason)) });
}

//! `subscriptions/listen` over HTTP.

use bytes::Bytes;
use futures_util::stream;
use mcp_host_model::RawJson;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::http::app_state::{AppState, RevocationFuture};
use crate::http::connection::stall_detector::KEEP_ALIVE;
use crate::http::reply::response::Response;
use crate::http::reply::sse;
use crate::methods::subscriptions::SubscriptionStream;
use crate::protocol::message_writer;

/// Responds to the `subscriptions/listen` with this id with the events of `stream`. They end when `revoked` resolves.
/// `guards` are dropped with the stream.
pub(crate) fn respond(
    app: &AppState,
    id: RawJson,
    stream: SubscriptionStream,
    revoked: RevocationFuture,
    guards: impl Send + 'static,
) -> Response {
    let shutdown = app.shutdown.clone();
    let events = SubscriptionEvents { id, stream, shutdown, revoked, is_over: false, _guards: guards };
    sse::response(stream::unfold(events, |mut events| async {
        let event = events.next().await?;
        Some((event, events))
    }))
}

/// The events of a subscription.
struct SubscriptionEvents<Guards> {
    id: RawJson,
    stream: SubscriptionStream,
    shutdown: CancellationToken,
    /// Resolves when the client's token is no longer accepted.
    revoked: RevocationFuture,
    /// Whether the last event was sent, or the token is no longer accepted.
    is_over: bool,
    /// Held until the end of the stream.
    _guards: Guards,
}

impl<Guards> SubscriptionEvents<Guards> {
    /// The next event; `None` at the end. When the gateway shuts down, the last event is the request's result.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        tokio::select! {
            biased;
            message = self.stream.next() => Some(sse::event(&message)),
            () = &mut self.revoked => {
                self.is_over = true;
                None
            }
            () = self.shutdown.cancelled() => {
                self.is_over = true;
                Some(sse::event(&message_writer::write_result(&self.id, self.stream.end_result().as_bytes())))
            }
            () = sleep(KEEP_ALIVE) => Some(sse::keep_alive()),
        }
    }
}

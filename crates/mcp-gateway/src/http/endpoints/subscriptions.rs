//! `subscriptions/listen` over HTTP.

use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use mcp_host_model::RawJson;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::http::app_state::{AppState, RevocationFuture};
use crate::http::connection::stall_detector::KEEP_ALIVE;
use crate::http::reply::errors::{ResponseResult, refusal};
use crate::http::reply::sse;
use crate::methods::subscriptions::SubscriptionStream;
use crate::metrics::counters::CountedRequest;
use crate::protocol::frame::Request;
use crate::protocol::message_writer;
use crate::session::request_client::RequestClient;

/// Opens the stream. The request is counted once the stream is open. `guards` is dropped with the stream.
pub(crate) async fn listen(
    app: &AppState,
    (caller, revoked): (RequestClient, RevocationFuture),
    (request, counted): (&Request, CountedRequest),
    guards: impl Send + 'static,
) -> ResponseResult {
    let stream = SubscriptionStream::open(&app.gateway, &caller, request).await;
    counted.end(&stream);
    let stream = stream.map_err(|error| refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error))?;
    let events = EventSource {
        id: request.id.clone(),
        stream,
        shutdown: app.shutdown.clone(),
        revoked,
        is_over: false,
        _guards: guards,
    };
    Ok(sse::response(stream::unfold(events, |mut events| async {
        let event = events.next().await?;
        Some((event, events))
    })))
}

struct EventSource<H> {
    id: RawJson,
    stream: SubscriptionStream,
    shutdown: CancellationToken,
    /// Resolves when the client's token is removed.
    revoked: RevocationFuture,
    /// Whether the result was sent.
    is_over: bool,
    /// What exists as long as the stream.
    _guards: H,
}

impl<H> EventSource<H> {
    /// The next event. The last one is the request's result, when the gateway shuts down.
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
                Some(sse::event(&message_writer::result(&self.id, self.stream.end_result().as_bytes())))
            }
            () = sleep(KEEP_ALIVE) => Some(sse::keep_alive()),
        }
    }
}

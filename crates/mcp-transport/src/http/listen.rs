//! The listening stream of a legacy session, for unsolicited messages: a GET that is repeated while the session lives.
//!
//! A server without such a stream responds with 405; then it is not requested again in this session. Any
//! other failure is retried with backoff.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::connection::HttpConnection;
use super::events::{StreamEnd, StreamReader};
use crate::net::error_body::retry_after;
use crate::net::{RequestParts, Response};
use crate::transport::{Epoch, StreamId};

/// A stream that lived this long resets the backoff.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// The response to a GET.
pub(super) enum ListenResponse {
    /// A stream.
    Stream(Response),
    /// HTTP 404.
    NotFound,
    /// The server has no listening stream.
    Unsupported,
    /// A failure that may be temporary, and how long the server asks to wait.
    Unavailable(Duration),
}

/// Listens until the session of `epoch` ends.
pub(super) async fn listen(connection: &HttpConnection, epoch: Epoch) {
    let mut reader = StreamReader::new(StreamId::Notifications(epoch));
    let mut backoff = Backoff::default();
    let mut was_open = false;
    while let Some(headers) = connection.sessions.listen_headers(epoch, reader.last_event_id.as_ref()) {
        let mut requested_wait = Duration::ZERO;
        match open_stream(connection, &headers).await {
            ListenResponse::Stream(mut response) => {
                was_open = true;
                let started = Instant::now();
                let messages_before = reader.messages;
                let end = reader.read_stream(connection, &mut response).await;
                tracing::debug!("the listening stream of {} ended: {end:?}", connection.endpoint.label);
                if let Some(retry) = reader.retry {
                    backoff.set_retry(retry);
                }
                if started.elapsed() >= STABLE_AFTER
                    || (end == StreamEnd::Closed && reader.messages > messages_before)
                {
                    backoff.reset();
                }
            }
            ListenResponse::NotFound if was_open => {
                // There was a stream in this session, so the session is lost.
                connection.sessions.mark_lost(epoch);
                return;
            }
            ListenResponse::NotFound | ListenResponse::Unsupported => return,
            ListenResponse::Unavailable(wait) => requested_wait = wait,
        }
        tokio::time::sleep(backoff.next_delay().max(requested_wait)).await;
    }
}

/// Requests a listening stream, or the rest of another stream if `headers` have a `Last-Event-ID`.
pub(super) async fn open_stream(connection: &HttpConnection, headers: &HeaderMap) -> ListenResponse {
    let request = RequestParts::new(&Method::GET, headers, None);
    let Ok(response) = connection.send(request).await else {
        return ListenResponse::Unavailable(Duration::ZERO);
    };
    match response.status.as_u16() {
        200 if response.is_event_stream() => ListenResponse::Stream(response),
        404 => ListenResponse::NotFound,
        200..=299 | 405 | 501 => ListenResponse::Unsupported,
        status => {
            tracing::debug!("{} responds to a GET with HTTP {status}", connection.endpoint.label);
            let after = retry_after(&response.headers, SystemTime::now());
            ListenResponse::Unavailable(after.map(|after| after.wait()).unwrap_or_default())
        }
    }
}

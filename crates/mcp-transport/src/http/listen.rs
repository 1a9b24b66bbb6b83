//! The stream on which a legacy server says what nobody asked for: a GET, again and again, for as long as its session
//! lives.
//!
//! A server need not offer it, and says so with 405: then it is not asked again in this session. Everything else that
//! fails is tried again, ever more slowly, so that a server which comes back is heard.

use std::time::Duration;

use http::{HeaderMap, Method};
use tokio::time::Instant;

use super::HttpConnection;
use super::backoff::Backoff;
use super::events::{StreamEnd, StreamReader};
use crate::net::Response;
use crate::transport::{Epoch, StreamId};

/// A stream that lived so long was good.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// What a GET brought.
pub(super) enum ListenResponse {
    /// A stream.
    Stream(Response),
    /// There is nothing there.
    NotFound,
    /// The server has none there.
    Unsupported,
    /// Nothing that lasts: it may be otherwise later.
    Unavailable,
}

/// Listens until the session of `epoch` is over.
pub(super) async fn listen(wire: &HttpConnection, epoch: Epoch) {
    let mut hearing = StreamReader::new(StreamId::Notifications(epoch));
    let mut backoff = Backoff::default();
    let mut heard = false;
    while let Some(headers) = wire.sessions.listen_headers(epoch, hearing.last_id.as_ref()) {
        match open(wire, &headers).await {
            ListenResponse::Stream(mut response) => {
                heard = true;
                let begun = Instant::now();
                let before = hearing.messages;
                let end = hearing.read_stream(wire, &mut response).await;
                tracing::debug!("the stream that listens to {} ended: {end:?}", wire.place.label);
                if let Some(retry) = hearing.retry {
                    backoff.set_retry(retry);
                }
                if begun.elapsed() >= STABLE_AFTER || (end == StreamEnd::Closed && hearing.messages > before)
                {
                    backoff.reset();
                }
            }
            ListenResponse::NotFound if heard => {
                // There was a stream in this session: what is missing now is the session.
                wire.sessions.mark_lost(epoch);
                return;
            }
            ListenResponse::NotFound | ListenResponse::Unsupported => return,
            ListenResponse::Unavailable => {}
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// Asks for a stream once.
pub(super) async fn open(wire: &HttpConnection, headers: &HeaderMap) -> ListenResponse {
    let Ok(response) = wire.send(Method::GET, headers, None).await else {
        return ListenResponse::Unavailable;
    };
    match response.status().as_u16() {
        200 if response.is_event_stream() => ListenResponse::Stream(response),
        404 => ListenResponse::NotFound,
        200..=299 | 405 | 501 => ListenResponse::Unsupported,
        status => {
            tracing::debug!("{} answers a GET with HTTP {status}", wire.place.label);
            ListenResponse::Unavailable
        }
    }
}

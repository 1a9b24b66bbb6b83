//! The stream on which a legacy server says what nobody asked for: a GET, again and again, for as long as its session
//! lives.
//!
//! A server need not offer it, and says so with 405: then it is not asked again in this session. Everything else that
//! fails is tried again, ever more slowly, so that a server which comes back is heard.

use std::time::Duration;

use http::{HeaderMap, Method};
use tokio::time::Instant;

use super::Wire;
use super::backoff::Backoff;
use super::events::{Hearing, StreamEnd};
use crate::net::Response;
use crate::transport::{Epoch, StreamId};

/// A stream that lived so long was good.
const STEADY: Duration = Duration::from_secs(10);

/// What a GET brought.
pub(super) enum Opened {
    /// A stream.
    Stream(Response),
    /// There is nothing there.
    Gone,
    /// The server has none there.
    None,
    /// Nothing that lasts: it may be otherwise later.
    NotNow,
}

/// Listens until the session of `epoch` is over.
pub(super) async fn listen(wire: &Wire, epoch: Epoch) {
    let mut hearing = Hearing::new(StreamId::Notifications(epoch));
    let mut backoff = Backoff::default();
    let mut heard = false;
    while let Some(headers) = wire.sessions.listen(epoch, hearing.last_id.as_ref()) {
        match open(wire, &headers).await {
            Opened::Stream(mut response) => {
                heard = true;
                let begun = Instant::now();
                let before = hearing.messages;
                let end = hearing.hear(wire, &mut response).await;
                tracing::debug!("the stream that listens to {} ended: {end:?}", wire.place.label);
                if let Some(retry) = hearing.retry {
                    backoff.asked(retry);
                }
                if begun.elapsed() >= STEADY || (end == StreamEnd::Closed && hearing.messages > before) {
                    backoff.reset();
                }
            }
            Opened::Gone if heard => {
                // There was a stream in this session: what is missing now is the session.
                wire.sessions.forgotten(epoch);
                return;
            }
            Opened::Gone | Opened::None => return,
            Opened::NotNow => {}
        }
        tokio::time::sleep(backoff.next()).await;
    }
}

/// Asks for a stream once.
pub(super) async fn open(wire: &Wire, headers: &HeaderMap) -> Opened {
    let Ok(response) = wire.send(Method::GET, headers, None).await else { return Opened::NotNow };
    match response.status().as_u16() {
        200 if response.is_event_stream() => Opened::Stream(response),
        404 => Opened::Gone,
        200..=299 | 405 | 501 => Opened::None,
        status => {
            tracing::debug!("{} answers a GET with HTTP {status}", wire.place.label);
            Opened::NotNow
        }
    }
}

//! Takes up the stream of a request where it broke off, as legacy servers that number their events allow.
//!
//! That a stream ends early is no failure there: such a server may end it on purpose, say how long to wait, and go on
//! with the answer when asked again.

use super::HttpConnection;
use super::backoff::Backoff;
use super::events::StreamReader;
use super::listen::{ListenResponse, open};
use crate::transport::Epoch;

/// How often a stream is asked for without anything new.
const MAX_ATTEMPTS: u32 = 5;

/// Asks for the rest of a stream until it brings the answer. False when it cannot be had.
pub(super) async fn resume(wire: &HttpConnection, epoch: Epoch, hearing: &mut StreamReader) -> bool {
    let mut backoff = Backoff::default();
    while backoff.attempts() < MAX_ATTEMPTS {
        if let Some(retry) = hearing.retry {
            backoff.set_retry(retry);
        }
        tokio::time::sleep(backoff.next_delay()).await;
        let Some(headers) = wire.sessions.listen_headers(epoch, hearing.last_id.as_ref()) else {
            return false;
        };
        match open(wire, &headers).await {
            ListenResponse::Stream(mut response) => {
                let before = (hearing.messages, hearing.last_id.clone());
                let end = hearing.read_stream(wire, &mut response).await;
                tracing::debug!("a stream of {} that was taken up ended: {end:?}", wire.place.label);
                if hearing.answered {
                    return true;
                }
                if before != (hearing.messages, hearing.last_id.clone()) {
                    backoff.reset();
                }
            }
            ListenResponse::NotFound | ListenResponse::Unsupported => return false,
            ListenResponse::Unavailable => {}
        }
    }
    false
}

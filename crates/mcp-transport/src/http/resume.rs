//! Takes up the stream of a request where it broke off, as legacy servers that number their events allow.
//!
//! That a stream ends early is no failure there: such a server may end it on purpose, say how long to wait, and go on
//! with the answer when asked again.

use super::Wire;
use super::backoff::Backoff;
use super::events::Hearing;
use super::listen::{Opened, open};
use crate::transport::Epoch;

/// How often a stream is asked for without anything new.
const MOST_ATTEMPTS: u32 = 5;

/// Asks for the rest of a stream until it brings the answer. False when it cannot be had.
pub(super) async fn resume(wire: &Wire, epoch: Epoch, hearing: &mut Hearing) -> bool {
    let mut backoff = Backoff::default();
    while backoff.streak() < MOST_ATTEMPTS {
        if let Some(retry) = hearing.retry {
            backoff.asked(retry);
        }
        tokio::time::sleep(backoff.next()).await;
        let Some(headers) = wire.sessions.listen(epoch, hearing.last_id.as_ref()) else { return false };
        match open(wire, &headers).await {
            Opened::Stream(mut response) => {
                let before = (hearing.messages, hearing.last_id.clone());
                let end = hearing.hear(wire, &mut response).await;
                tracing::debug!("a stream of {} that was taken up ended: {end:?}", wire.place.label);
                if hearing.answered {
                    return true;
                }
                if before != (hearing.messages, hearing.last_id.clone()) {
                    backoff.reset();
                }
            }
            Opened::Gone | Opened::None => return false,
            Opened::NotNow => {}
        }
    }
    false
}

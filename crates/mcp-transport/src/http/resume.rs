//! Resumption of a request's stream after its last event, for legacy servers with event ids.
//!
//! An early end of the stream is no failure: such a server may end it on purpose, with a retry delay, and send the
//! response on the resumed stream.

use std::time::Duration;

use super::backoff::Backoff;
use super::connection::HttpConnection;
use super::events::{StreamEnd, StreamReader};
use super::listen::{ListenResponse, open_stream};
use crate::transport::Epoch;

/// Maximum number of attempts without progress.
const MAX_ATTEMPTS: u32 = 5;

/// Resumes a stream until its response is delivered. Returns whether it was.
pub(super) async fn resume(connection: &HttpConnection, epoch: Epoch, reader: &mut StreamReader) -> bool {
    let mut backoff = Backoff::default();
    let mut requested_wait = Duration::ZERO;
    while backoff.attempts < MAX_ATTEMPTS {
        if let Some(retry) = reader.retry {
            backoff.set_retry(retry);
        }
        tokio::time::sleep(backoff.next_delay().max(requested_wait)).await;
        requested_wait = Duration::ZERO;
        let Some(headers) = connection.sessions.listen_headers(epoch, reader.last_event_id.as_ref()) else {
            return false;
        };
        match open_stream(connection, &headers).await {
            ListenResponse::Stream(mut response) => {
                let progress_before = (reader.messages, reader.last_event_id.clone());
                let end = reader.read_stream(connection, &mut response).await;
                tracing::debug!("a resumed stream of {} ended: {end:?}", connection.endpoint.label);
                if reader.answered {
                    return true;
                }
                if end == StreamEnd::Flooded {
                    return false;
                }
                if progress_before != (reader.messages, reader.last_event_id.clone()) {
                    backoff.reset();
                }
            }
            ListenResponse::NotFound | ListenResponse::Unsupported => return false,
            ListenResponse::Unavailable(wait) => requested_wait = wait,
        }
    }
    false
}

//! Resumption of a request's stream after its last event, for legacy servers with event ids.
//!
//! An early end of the stream is no failure: such a server may end it on purpose, with a retry delay, and send the
//! response on the resumed stream.

use super::backoff::Backoff;
use super::connection::HttpConnection;
use super::events::{StreamEnd, StreamReader};
use super::listen::{ListenResponse, open};
use crate::transport::Epoch;

/// Maximum number of attempts without progress.
const MAX_ATTEMPTS: u32 = 5;

/// Resumes a stream until it brings the response. Returns false if it cannot.
pub(super) async fn resume(connection: &HttpConnection, epoch: Epoch, reader: &mut StreamReader) -> bool {
    let mut backoff = Backoff::default();
    while backoff.attempts < MAX_ATTEMPTS {
        if let Some(retry) = reader.retry {
            backoff.set_retry(retry);
        }
        tokio::time::sleep(backoff.next_delay()).await;
        let Some(headers) = connection.sessions.listen_headers(epoch, reader.last_id.as_ref()) else {
            return false;
        };
        match open(connection, &headers).await {
            ListenResponse::Stream(mut response) => {
                let before = (reader.messages, reader.last_id.clone());
                let end = reader.read_stream(connection, &mut response).await;
                tracing::debug!("a resumed stream of {} ended: {end:?}", connection.endpoint.label);
                if reader.answered {
                    return true;
                }
                if end == StreamEnd::Flooded {
                    return false;
                }
                if before != (reader.messages, reader.last_id.clone()) {
                    backoff.reset();
                }
            }
            ListenResponse::NotFound | ListenResponse::Unsupported => return false,
            ListenResponse::Unavailable => {}
        }
    }
    false
}

//! Reads an event stream, from its first chunk to its end.

use std::time::Duration;

use http::HeaderValue;
use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::body;
use super::connection::HttpConnection;
use crate::net::Response;
use crate::net::event_stream::{Event, EventStreamParser};
use crate::net::timeouts::MAX_TIMEOUT;
use crate::rpc::idle_lines::{IdleLineCounter, idle_lines_message};
use crate::transport::{MessageClass, StreamId};

/// How long a stream is read after the response. Most servers end it at once, and the connection can be reused.
const READ_AFTER_RESPONSE: Duration = Duration::from_millis(250);

/// Reads an event stream and delivers its messages. Keeps its state across resumptions.
pub(super) struct StreamReader {
    pub(super) stream_id: StreamId,
    /// The request of the stream has its response, or no longer waits for it.
    pub(super) answered: bool,
    /// Number of messages.
    pub(super) messages: u64,
    /// The id of the last event, after which the stream can be resumed.
    pub(super) last_event_id: Option<HeaderValue>,
    /// The delay before a resumption that the server requests.
    pub(super) retry: Option<Duration>,
    /// The last chunk contained something that counts towards the rate limit.
    has_unsolicited: bool,
    /// Counts data that was received without a message. Boxed because it is rare, and would enlarge every request's
    /// future.
    idle_lines: Option<Box<IdleLineCounter>>,
}

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// The server ended it.
    Closed,
    /// The connection failed for this reason.
    Failed(String),
    /// Nothing was received for too long.
    Silent,
    /// A message exceeds the limit.
    TooLarge,
    /// An event has not ended after this many bytes.
    Endless(usize),
    /// It contained too much data without a message.
    Flooded,
}

impl StreamReader {
    pub(super) fn new(stream_id: StreamId) -> StreamReader {
        StreamReader {
            stream_id,
            answered: false,
            messages: 0,
            last_event_id: None,
            retry: None,
            has_unsolicited: false,
            idle_lines: None,
        }
    }

    /// Delivers the messages of a stream until it ends.
    pub(super) async fn read_stream(
        &mut self,
        connection: &HttpConnection,
        response: &mut Response,
    ) -> StreamEnd {
        let mut stream = EventStreamParser::new(connection.endpoint.max_message_bytes);
        let end = self.read(connection, response, &mut stream).await;
        // An id that is not a valid header value cannot be sent.
        if let Some(id) = &stream.last_id {
            self.last_event_id = HeaderValue::from_bytes(id).ok().filter(|it| !it.is_empty());
        }
        self.retry = stream.retry.or(self.retry);
        end
    }

    /// Reads until the stream ends.
    async fn read(
        &mut self,
        connection: &HttpConnection,
        response: &mut Response,
        stream: &mut EventStreamParser,
    ) -> StreamEnd {
        // After the response there is one deadline for the rest, or a server could keep the stream open forever.
        let mut drain_deadline = None;
        let mut is_draining = false;
        loop {
            // The clock is read only if needed: most streams are one chunk and its end.
            if std::mem::take(&mut self.has_unsolicited) && connection.rate_limiter.lock().has_uncharged() {
                let now = Instant::now();
                let pause_end = connection.rate_limiter.lock().pause_until(now);
                if let Some(mut pause_end) = pause_end {
                    // After the response, the pause ends with the drain.
                    if self.answered {
                        pause_end = pause_end.min(*drain_deadline.get_or_insert(now + READ_AFTER_RESPONSE));
                    }
                    tokio::time::sleep_until(pause_end).await;
                }
            }
            // An endless stream always has more to read, so the timeout below would not fire.
            if is_draining {
                let now = Instant::now();
                if *drain_deadline.get_or_insert(now + READ_AFTER_RESPONSE) <= now {
                    return StreamEnd::Silent;
                }
            }
            is_draining = self.answered;
            let deadline = || {
                if is_draining {
                    *drain_deadline.get_or_insert_with(|| Instant::now() + READ_AFTER_RESPONSE)
                } else {
                    Instant::now() + connection.endpoint.stream_timeout.min(MAX_TIMEOUT)
                }
            };
            let chunk = match response.chunk_before(deadline).await {
                Some(Ok(Some(chunk))) => chunk,
                Some(Ok(None)) => {
                    // A complete message is accepted without the empty line that should follow it.
                    let is_whole = |it: &[u8]| serde_json::from_slice::<IgnoredAny>(it).is_ok();
                    if let Some(rest) = stream.finish(is_whole) {
                        self.deliver(connection, rest);
                    }
                    return StreamEnd::Closed;
                }
                Some(Err(error)) => return StreamEnd::Failed(error.to_string()),
                None => return StreamEnd::Silent,
            };
            let mut too_large = false;
            stream.feed(chunk, |event| match event {
                Event::Message(message) => self.deliver(connection, message),
                // Only the SSE transport uses it.
                Event::Endpoint(_) => {}
                Event::TooLarge(_) => too_large = true,
            });
            let overhead = stream.take_overhead();
            if overhead > 0 {
                self.has_unsolicited = true;
                connection.rate_limiter.lock().charge(overhead, 0);
                let now = Instant::now();
                let idle_lines = self.idle_lines.get_or_insert_with(|| Box::new(IdleLineCounter::new(now)));
                if idle_lines.record(overhead, now) {
                    return StreamEnd::Flooded;
                }
            }
            // A too large message on a request's stream can only be its response.
            if too_large || stream.is_skipping() {
                return StreamEnd::TooLarge;
            }
            if let Some(len) = stream.endless_bytes() {
                return StreamEnd::Endless(len);
            }
        }
    }

    /// Passes a message to the engine.
    fn deliver(&mut self, connection: &HttpConnection, message: bytes::Bytes) {
        self.messages += 1;
        if let Some(idle_lines) = &mut self.idle_lines {
            idle_lines.reset();
        }
        let bytes = message.len();
        let class = connection.inbound.deliver(self.stream_id, body::copy_if_short(message));
        self.answered = self.stream_id.request().is_some_and(|id| !connection.inbound.is_pending(id));
        // The lock is taken only if needed, so that concurrent calls do not contend.
        if class != MessageClass::Solicited {
            self.has_unsolicited = true;
            connection.rate_limiter.lock().record(class, bytes);
        }
    }
}

impl StreamEnd {
    /// The error message for a request that has no response because of this end.
    pub(super) fn message(&self, connection: &HttpConnection) -> String {
        let endpoint = &connection.endpoint;
        match self {
            StreamEnd::Closed => "the server ended the stream before the response".to_owned(),
            StreamEnd::Failed(why) => format!("the stream failed before the response: {why}"),
            StreamEnd::Silent => {
                format!("nothing was received on the stream for {} s", endpoint.stream_timeout.as_secs_f64())
            }
            StreamEnd::TooLarge => {
                format!("a message on the stream is larger than {} bytes", endpoint.max_message_bytes)
            }
            StreamEnd::Endless(len) => {
                format!("the stream contains an event that does not end ({len} bytes so far)")
            }
            StreamEnd::Flooded => format!("{}: {}", endpoint.label, idle_lines_message()),
        }
    }
}

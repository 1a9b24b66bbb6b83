//! The stream of a connection. It is never resumed: the session ends with it.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde::de::IgnoredAny;
use tokio::time::Instant;
use url::Url;

use super::message_endpoint;
use crate::error::disconnect::DisconnectReason;
use crate::error::request_error::RequestError;
use crate::net::event_stream::{Event, EventStreamParser};
use crate::net::timeouts::{ERROR_BODY_TIMEOUT, MAX_TIMEOUT};
use crate::net::{Client, HttpEndpoint, RequestParts, RequestTarget, Response, error_body, headers};
use crate::rpc::idle_lines::{IdleLineCounter, idle_lines_message};
use crate::rpc::rate_limiter::RateLimiter;

/// An open stream.
pub(super) struct SseStream {
    response: Response,
    parser: EventStreamParser,
    /// Events that are not processed yet.
    events: VecDeque<Event>,
    limits: StreamLimits,
    /// When something was last read, or the last pause ended.
    last_read: Instant,
    pub(super) rate_limiter: RateLimiter,
    idle_lines: IdleLineCounter,
    /// Reading is paused until this time.
    paused_until: Option<Instant>,
}

/// The limits of a stream.
#[derive(Clone, Copy)]
pub(super) struct StreamLimits {
    /// Maximum silence.
    max_silence: Duration,
    /// Maximum size of an event.
    max_event_bytes: usize,
}

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SseStreamEnd {
    /// The server ended it.
    Closed,
    /// The connection failed for this reason.
    Failed(String),
    /// Nothing was received for this long.
    Silent(Duration),
    /// An event has not ended after this many bytes.
    Endless(usize),
    /// It contained too much data without a message.
    Flooded,
}

impl StreamLimits {
    pub(super) fn from_endpoint(endpoint: &HttpEndpoint) -> StreamLimits {
        StreamLimits {
            max_silence: endpoint.stream_timeout.min(MAX_TIMEOUT),
            max_event_bytes: endpoint.max_message_bytes,
        }
    }
}

/// Opens the stream and waits for the endpoint event, both within the connect timeout. Returns the stream and the URL
/// for messages.
pub(super) async fn open_stream(
    client: &Client,
    endpoint: &HttpEndpoint,
    target: &RequestTarget,
    post_headers: &HeaderMap,
) -> Result<(SseStream, Url), RequestError> {
    let deadline = Instant::now() + endpoint.connect_timeout.min(MAX_TIMEOUT);
    let late =
        |what: &str| format!("{} {what} within {} s", endpoint.label, endpoint.connect_timeout.as_secs_f64());
    let headers = headers::get_or_delete_headers(post_headers.clone());
    let sending = client.send(target, RequestParts::new(&Method::GET, &headers, None));
    let response = match tokio::time::timeout_at(deadline, sending).await {
        Err(_) => return Err(RequestError::Other(late("did not answer"))),
        Ok(Err(error)) => return Err(error.into_error()),
        Ok(Ok(response)) => response,
    };
    let status = response.status.as_u16();
    if !response.status.is_success() || !response.is_event_stream() {
        return Err(status_error(endpoint, response).await);
    }
    let invalid = |problem| RequestError::InvalidResponse { status, problem };
    let mut stream = SseStream::new(response, StreamLimits::from_endpoint(endpoint));
    match tokio::time::timeout_at(deadline, stream.wait_for_endpoint()).await {
        Err(_) => Err(invalid(late("opened its stream without an endpoint event"))),
        Ok(Err(end)) => Err(invalid(format!("{} before the endpoint event", end.message()))),
        Ok(Ok(data)) => match message_endpoint::resolve(&target.url, &data) {
            Ok(message_url) => Ok((stream, message_url)),
            Err(why) => Err(invalid(why)),
        },
    }
}

/// The error for a response that is not an event stream.
async fn status_error(endpoint: &HttpEndpoint, mut response: Response) -> RequestError {
    let status = response.status.as_u16();
    let body = response.read_beginning(ERROR_BODY_TIMEOUT.min(endpoint.connect_timeout)).await;
    let error_body = error_body::parse_error_body(&body, None, &endpoint.redactor);
    let error = error_body::error_response(status, &response.headers, error_body, &endpoint.redactor);
    if response.status.is_success() { RequestError::NotEventStream(Box::new(error)) } else { error.into() }
}

impl SseStream {
    pub(super) fn new(response: Response, limits: StreamLimits) -> SseStream {
        let parser = EventStreamParser::new(limits.max_event_bytes);
        let now = Instant::now();
        SseStream {
            response,
            parser,
            events: VecDeque::new(),
            limits,
            last_read: now,
            rate_limiter: RateLimiter::new(now),
            idle_lines: IdleLineCounter::new(now),
            paused_until: None,
        }
    }

    /// Waits for the `endpoint` event. Earlier events are dropped, because nothing was requested yet.
    async fn wait_for_endpoint(&mut self) -> Result<Bytes, SseStreamEnd> {
        loop {
            match self.next_event() {
                Some(Event::Endpoint(data)) => return Ok(data),
                Some(Event::Message(message)) => self.rate_limiter.charge(1, message.len()),
                Some(Event::TooLarge(_)) => self.rate_limiter.charge(1, 0),
                None => self.read().await?,
            }
        }
    }

    /// Reads more of the stream, after a pause if the rate limit requires one. Comments count as activity. Cancel-safe.
    pub(super) async fn read(&mut self) -> Result<(), SseStreamEnd> {
        if self.rate_limiter.has_uncharged() {
            self.paused_until = self.rate_limiter.pause_until(Instant::now()).or(self.paused_until);
        }
        if let Some(until) = self.paused_until {
            tokio::time::sleep_until(until).await;
            self.paused_until = None;
            self.last_read = Instant::now();
        }
        let until = self.last_read + self.limits.max_silence;
        let chunk = match tokio::time::timeout_at(until, self.response.chunk()).await {
            Err(_) => return Err(SseStreamEnd::Silent(self.limits.max_silence)),
            Ok(Err(error)) if !error.is_early_close() => {
                return Err(SseStreamEnd::Failed(error.to_string()));
            }
            // A server that exits closes the connection without the end of the body.
            Ok(Ok(None) | Err(_)) => {
                // A complete message is accepted without the empty line that should follow it.
                let is_whole = |it: &[u8]| serde_json::from_slice::<IgnoredAny>(it).is_ok();
                self.events.extend(self.parser.finish(is_whole).map(Event::Message));
                return Err(SseStreamEnd::Closed);
            }
            Ok(Ok(Some(chunk))) => chunk,
        };
        self.last_read = Instant::now();
        let SseStream { parser, events, idle_lines, .. } = self;
        parser.feed(chunk, |event| {
            idle_lines.reset();
            events.push_back(event);
        });
        let overhead = parser.take_overhead();
        self.rate_limiter.charge(overhead, 0);
        if overhead > 0 && idle_lines.record(overhead, self.last_read) {
            return Err(SseStreamEnd::Flooded);
        }
        match parser.endless_bytes() {
            Some(len) => Err(SseStreamEnd::Endless(len)),
            None => Ok(()),
        }
    }

    /// Removes the next event that was read.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

impl SseStreamEnd {
    /// The error message for this end.
    fn message(&self) -> String {
        match self {
            SseStreamEnd::Closed => "the server ended the stream".to_owned(),
            SseStreamEnd::Failed(why) => format!("the stream failed ({why})"),
            SseStreamEnd::Silent(limit) => {
                format!("nothing was received on the stream for {} s", limit.as_secs_f64())
            }
            SseStreamEnd::Endless(len) => {
                format!("the stream contains an event that does not end ({len} bytes so far)")
            }
            SseStreamEnd::Flooded => idle_lines_message(),
        }
    }
}

impl From<SseStreamEnd> for DisconnectReason {
    fn from(end: SseStreamEnd) -> DisconnectReason {
        match end {
            SseStreamEnd::Closed => DisconnectReason::PeerClosed,
            SseStreamEnd::Failed(_)
            | SseStreamEnd::Silent(_)
            | SseStreamEnd::Endless(_)
            | SseStreamEnd::Flooded => DisconnectReason::Broken(end.message()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tests::flood::{self, FLOODS};
    use futures_util::{StreamExt, stream};

    /// A stream of chunks, each after a delay in seconds. Without `ends`, it stays open.
    fn stream_of(chunks: &[(u64, &'static str)], ends: bool) -> SseStream {
        let chunks: Vec<_> = chunks.to_vec();
        let body = stream::iter(chunks).then(|(seconds, chunk)| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Bytes::from_static(chunk.as_bytes())
        });
        let response = if ends {
            Response::from_stream(body)
        } else {
            Response::from_stream(body.chain(stream::pending()))
        };
        let limits = StreamLimits { max_silence: Duration::from_secs(5), max_event_bytes: 20 };
        SseStream::new(response, limits)
    }

    /// Checks the events and the end of a stream, with the second of its end.
    #[track_caller]
    fn check(chunks: &'static [(u64, &'static str)], ends: bool, want: &str) -> impl Future<Output = ()> {
        let location = std::panic::Location::caller();
        async move {
            let started = Instant::now();
            let mut stream = stream_of(chunks, ends);
            let mut events = Vec::new();
            let end = loop {
                let more = stream.read().await;
                while let Some(event) = stream.next_event() {
                    events.push(match event {
                        Event::Message(data) => String::from_utf8_lossy(&data).into_owned(),
                        Event::Endpoint(data) => format!("at {}", String::from_utf8_lossy(&data)),
                        Event::TooLarge(it) => format!("one of {}", it.len),
                    });
                }
                if let Err(end) = more {
                    break end;
                }
            };
            let events = events.join(", ");
            let got = format!("{events}; {} after {} s", end.message(), started.elapsed().as_secs());
            assert_eq!(got, want, "{location}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn hd_122_silence_ends_the_stream_and_comments_count_as_activity() {
        let silent = "nothing was received on the stream for 5 s";
        check(&[], false, &format!("; {silent} after 5 s")).await;
        check(
            &[(4, ": ping\n\n"), (4, ":\n\n"), (4, "data: a\n\n")],
            false,
            &format!("a; {silent} after 17 s"),
        )
        .await;
        check(&[(4, "data: "), (6, "late\n\n")], false, &format!("; {silent} after 9 s")).await;
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_complete_with_any_chunks() {
        let closed = "the server ended the stream";
        check(
            &[
                (0, "\u{feff}event: endpoint\r\ndata: /m\r\n\r\ndata: a\rdata: b\r\r"),
                (1, "da"),
                (1, "ta:c\n\n"),
            ],
            true,
            &format!("at /m, a\nb, c; {closed} after 2 s"),
        )
        .await;
        check(&[(0, "data: {}")], true, &format!("{{}}; {closed} after 0 s")).await;
        check(&[(0, "data: {\"id\":")], true, &format!("; {closed} after 0 s")).await;
        check(&[(0, "event: ping\ndata: x\n\ndata: y\n\n")], true, &format!("y; {closed} after 0 s")).await;
        check(
            &[(0, "data: a\n\ndata: 123456789012345678901\n\ndata: b\n\n")],
            true,
            &format!("a, one of 21, b; {closed} after 0 s"),
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn events_before_the_endpoint_are_dropped() {
        let mut stream = stream_of(&[(0, "data: a\n\nevent: endpoint\ndata: /m\n\ndata: b\n\n")], false);
        assert_eq!(stream.wait_for_endpoint().await, Ok(Bytes::from_static(b"/m")));
        assert_eq!(stream.next_event(), Some(Event::Message(Bytes::from_static(b"b"))));
    }

    #[tokio::test(start_paused = true)]
    async fn flood_before_the_endpoint_is_rate_limited() {
        for (text, weight) in FLOODS {
            let (response, sent) = flood::response(text);
            let limits = StreamLimits { max_silence: Duration::from_secs(5), max_event_bytes: 1 << 20 };
            let mut stream = SseStream::new(response, limits);
            assert!(tokio::time::timeout(Duration::from_secs(10), stream.wait_for_endpoint()).await.is_err());
            let sent = sent.load(std::sync::atomic::Ordering::Relaxed) * weight;
            assert!((78_000..100_000).contains(&sent), "{text:?}: {sent}");
        }
    }
}

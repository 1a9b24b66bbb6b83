//! HTTP with server-sent events, the transport of 2024-11-05: one open GET for the messages of the server,
//! and a POST for each message to it, at the endpoint that the server names first.
//!
//! One task drives the stream and all POSTs of a connection. No task is spawned for a call, and dropping the
//! future closes all sockets. The stream is the session: when it ends, the connection ends, and nothing is
//! resumed.
//!
//! Decisions are pure ([`message_endpoint`], [`send_queue`]); [`stream`] and [`post`] do the I/O. Absent on
//! purpose: OAuth, `Last-Event-ID`, and retries.

mod connection;
mod message_endpoint;
mod post;
mod send_queue;
mod stream;

use std::pin::{Pin, pin};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use mcp_host_model::UrlEndpoint;
use tokio::time::Instant;

use crate::error::ConnectError;
use crate::error::disconnect::{Disconnect, DisconnectReason, StartError};
use crate::error::request_error::RequestError;
use crate::net::event_stream::Event;
use crate::net::url_endpoint::UrlOptions;
use crate::net::{Client, HttpEndpoint, RequestTarget};
use crate::rpc::rate_limiter::RateLimiter;
use crate::transport::scan::{ResponseId, ScannedFrame, scan};
use crate::transport::{Dial, Link, OutboundQueue, RequestId, StreamError, StreamId, Transport};
use connection::SseConnection;
use post::PostResult;
use send_queue::SseSendQueue;
use stream::SseStream;

/// Maximum number of queue entries that are taken at once.
const MAX_BATCH_MESSAGES: usize = 128;

/// Whether the stream was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamOutcome {
    Opened,
    Refused,
}

/// Called after each attempt to open the stream. Must not block.
pub(crate) type OnStreamOutcome = Arc<dyn Fn(StreamOutcome) + Send + Sync>;

/// Connects to a server of 2024-11-05.
#[derive(Clone)]
pub(crate) struct SseDial {
    endpoint: Arc<HttpEndpoint>,
    /// Called after each attempt to open the stream.
    on_outcome: Option<OnStreamOutcome>,
}

/// A connection that is not started yet.
struct SseTransport(SseDial);

impl SseDial {
    /// Checks the configuration. Does no I/O. No error message contains a header's value.
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &UrlOptions) -> Result<SseDial, ConnectError> {
        Ok(SseDial { endpoint: Arc::new(HttpEndpoint::new(endpoint, options)?), on_outcome: None })
    }

    /// Adds a callback after each attempt to open the stream.
    #[cfg(feature = "http")]
    pub(crate) fn with_observer(self, on_outcome: OnStreamOutcome) -> SseDial {
        SseDial { on_outcome: Some(on_outcome), ..self }
    }
}

impl Dial for SseDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(SseTransport(self.clone()))
    }

    fn label(&self) -> String {
        self.endpoint.label.clone()
    }

    fn redact(&self, text: &str) -> String {
        self.endpoint.redactor.clean(text, 2000)
    }

    fn redact_json(&self, json: &str) -> Option<String> {
        self.endpoint.redactor.redact_json(json)
    }

    fn is_authorizing(&self) -> bool {
        self.endpoint.is_awaiting_authorization()
    }
}

#[async_trait]
impl Transport for SseTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let SseTransport(SseDial { endpoint, on_outcome }) = *self;
        let Link { mut outbound, inbound, shutdown: mut shutdown_signal } = link;
        let mut shutdown_requested = pin!(shutdown_signal.requested());
        let client = match Client::new(Arc::clone(&endpoint)).await {
            Ok(client) => client,
            Err(failure) => return Disconnect::new(DisconnectReason::NotStarted(failure)),
        };
        let (target, headers) = client.target_and_headers();
        let opened = tokio::select! {
            biased;
            _ = &mut shutdown_requested => return Disconnect::new(DisconnectReason::Stopped),
            opened = stream::open_stream(&client, &endpoint, &target, &headers) => opened,
        };
        if let Some(on_outcome) = on_outcome {
            on_outcome(if opened.is_ok() { StreamOutcome::Opened } else { StreamOutcome::Refused });
        }
        let (stream, message_url) = match opened {
            Ok(opened) => opened,
            Err(error) => return Disconnect::new(DisconnectReason::NotStarted(StartError::Refused(error))),
        };
        let connection = SseConnection {
            endpoint,
            client,
            message_target: RequestTarget::new(message_url),
            headers,
            inbound,
        };
        Disconnect::new(drive(&connection, stream, &mut outbound, shutdown_requested).await)
    }
}

/// Sends and receives messages until the stream ends or a shutdown is requested. The stream and all POSTs are dropped
/// when it returns.
async fn drive(
    connection: &SseConnection,
    mut stream: SseStream,
    outbound: &mut OutboundQueue,
    mut shutdown_requested: Pin<&mut impl Future<Output = Instant>>,
) -> DisconnectReason {
    let mut posts = FuturesUnordered::new();
    let mut send_queue = SseSendQueue::default();
    let mut batch = Vec::with_capacity(MAX_BATCH_MESSAGES);
    loop {
        while let Some(event) = stream.next_event() {
            deliver(connection, &mut send_queue, &mut stream.rate_limiter, event);
        }
        while let Some((message, abort)) = send_queue.take_next() {
            posts.push(post::post_message(connection, message, abort));
        }
        tokio::select! {
            biased;
            _ = &mut shutdown_requested => return DisconnectReason::Stopped,
            Some(PostResult { head, session_loss }) = posts.next(), if !posts.is_empty() => {
                send_queue.finish(&head);
                if let Some(reason) = session_loss {
                    return DisconnectReason::Broken(format!("it no longer knows the session: {reason}"));
                }
            }
            count = outbound.next_many(&mut batch, MAX_BATCH_MESSAGES) => {
                if count == 0 {
                    return DisconnectReason::Stopped;
                }
                for entry in batch.drain(..) {
                    if let Some(id) = send_queue.push(entry) {
                        let error = StreamError::Refused(RequestError::InputNotRead);
                        connection.inbound.fail_stream(id, error);
                    }
                }
            }
            more = stream.read() => if let Err(end) = more {
                // Events before the end are delivered.
                while let Some(event) = stream.next_event() {
                    deliver(connection, &mut send_queue, &mut stream.rate_limiter, event);
                }
                return end.into();
            },
        }
    }
}

/// Passes the message of an event to the engine, and charges anything else to the rate limit.
fn deliver(
    connection: &SseConnection,
    send_queue: &mut SseSendQueue,
    rate_limiter: &mut RateLimiter,
    event: Event,
) {
    match event {
        Event::Message(message) => {
            if send_queue.is_posting_requests() {
                for id in answered_request_ids(&message) {
                    send_queue.mark_answered(id);
                }
            }
            let bytes = message.len();
            rate_limiter.record(connection.inbound.deliver(StreamId::Shared, message), bytes);
        }
        Event::TooLarge(oversize) => {
            // Its bytes are counted already.
            rate_limiter.charge(1, 0);
            connection.inbound.record_noise(oversize.len);
            // Its call fails now instead of at its deadline.
            if let Some(id) = oversize.response_id() {
                send_queue.mark_answered(id);
                connection
                    .inbound
                    .fail_stream(id, StreamError::TooLarge(connection.endpoint.max_message_bytes));
            }
        }
        // The endpoint does not change.
        Event::Endpoint(data) => {
            rate_limiter.charge(1, data.len());
            tracing::debug!("{} sends another endpoint event", connection.endpoint.label);
        }
    }
}

/// The ids of our requests that a frame responds to.
fn answered_request_ids(frame: &[u8]) -> Vec<RequestId> {
    match scan(frame) {
        ScannedFrame::Response { id: ResponseId::Number(id), .. } | ScannedFrame::EmptyResponse(id) => {
            vec![id]
        }
        // A batch inside a batch is not JSON-RPC.
        ScannedFrame::Batch(ranges) => {
            let ids = ranges.into_iter().filter_map(|range| match scan(&frame[range]) {
                ScannedFrame::Response { id: ResponseId::Number(id), .. }
                | ScannedFrame::EmptyResponse(id) => Some(id),
                _ => None,
            });
            ids.collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;

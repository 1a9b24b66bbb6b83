//! HTTP with server-sent events, the transport of 2024-11-05: one GET that stays open and brings what the server says,
//! and a POST for each message, to the place that the server names first.
//!
//! One task drives the stream and all POSTs of a connection: nothing is spawned for a call, and dropping the task's
//! future drops the client with all its sockets. The stream is the session: when it ends, the connection is over, and
//! nothing is taken up again.
//!
//! Decisions are values elsewhere ([`endpoint`], [`lanes`]); what awaits is here, in [`stream`] and [`post`]. Absent on
//! purpose: OAuth, `Last-Event-ID`, and any retry.

mod message_endpoint;
mod post;
mod send_queue;
mod stream;

use std::pin::{Pin, pin};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::HeaderMap;
use mcp_model::UrlEndpoint;
use tokio::time::{Instant, sleep_until};

use crate::dial::options::DialOptions;
use crate::error::ConnectError;
use crate::error::disconnect::{Disconnect, DisconnectReason, RequestError, StartError};
use crate::net::event_stream::Event;
use crate::net::{Client, HttpEndpoint, RequestTarget};
use crate::rpc::rate_limiter::RateLimiter;
use crate::rpc::scan::{Id, ScannedFrame, scan};
use crate::transport::{
    Dial, FrameSink, HandshakeMode, Link, OutboundQueue, StreamError, StreamId, Transport,
};
use post::PostResult;
use send_queue::SseSendQueue;
use stream::SseStream;

/// How many things to do are taken from the queue at once.
const BATCH: usize = 128;

/// Whether a stream that was asked for was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamOutcome {
    Opened,
    Refused,
}

/// Who hears of streams that were asked for. Must not wait.
pub(crate) type OnStreamOutcome = Arc<dyn Fn(StreamOutcome) + Send + Sync>;

/// Where a server of 2024-11-05 can be had.
#[derive(Clone)]
pub(crate) struct SseDial {
    place: Arc<HttpEndpoint>,
    /// Hears of each stream that was asked for.
    on_outcome: Option<OnStreamOutcome>,
}

/// One connection, not yet begun.
struct SseTransport(SseDial);

/// One connection.
struct SseConnection {
    place: Arc<HttpEndpoint>,
    client: Client,
    /// Where messages go.
    endpoint: RequestTarget,
    /// The headers of each POST.
    headers: HeaderMap,
    inbox: Arc<dyn FrameSink>,
}

impl SseDial {
    /// Checks what was configured; does nothing yet. No message of an error holds a header's value.
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &DialOptions) -> Result<SseDial, ConnectError> {
        Ok(SseDial { place: Arc::new(HttpEndpoint::new(endpoint, options)?), on_outcome: None })
    }

    /// The same, with somebody who hears of each stream that was asked for.
    #[cfg(feature = "http")]
    pub(crate) fn with_observer(self, told: OnStreamOutcome) -> SseDial {
        SseDial { on_outcome: Some(told), ..self }
    }
}

impl Dial for SseDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(SseTransport(self.clone()))
    }

    fn label(&self) -> String {
        self.place.label.clone()
    }

    fn redact(&self, text: &str) -> String {
        self.place.redactor.clean(text, 2000)
    }

    fn redact_json(&self, json: &str) -> Option<String> {
        self.place.redactor.json(json)
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }

    fn is_authorizing(&self) -> bool {
        self.place.is_awaiting_authorization()
    }
}

#[async_trait]
impl Transport for SseTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let SseTransport(SseDial { place, on_outcome: told }) = *self;
        let Link { outbound: mut out, inbound: inbox, shutdown: mut stop } = link;
        let mut stopping = pin!(stop.requested());
        let client = match Client::new(Arc::clone(&place)) {
            Ok(client) => client,
            Err(failure) => return Disconnect::new(DisconnectReason::NotStarted(failure)),
        };
        let (target, plain) = client.post_target();
        let opened = tokio::select! {
            biased;
            _ = &mut stopping => return Disconnect::new(DisconnectReason::Stopped),
            opened = stream::open(&client, &place, &target, &plain) => opened,
        };
        if let Some(told) = told {
            told(if opened.is_ok() { StreamOutcome::Opened } else { StreamOutcome::Refused });
        }
        let (stream, endpoint) = match opened {
            Ok(opened) => opened,
            Err(fault) => return Disconnect::new(DisconnectReason::NotStarted(StartError::Refused(fault))),
        };
        let wire =
            SseConnection { place, client, endpoint: RequestTarget::new(endpoint), headers: plain, inbox };
        Disconnect::new(drive(&wire, stream, &mut out, stopping).await)
    }
}

/// Carries messages until the stream ends or the wire is stopped. The stream and all POSTs are gone when it returns.
async fn drive(
    wire: &SseConnection,
    mut stream: SseStream,
    out: &mut OutboundQueue,
    mut stopping: Pin<&mut impl Future<Output = Instant>>,
) -> DisconnectReason {
    let mut work = FuturesUnordered::new();
    let mut lanes = SseSendQueue::default();
    let mut batch = Vec::with_capacity(BATCH);
    let mut rate_limiter = RateLimiter::new(Instant::now());
    let mut paused = None;
    loop {
        while let Some(event) = stream.next_event() {
            deliver(wire, &mut lanes, &mut rate_limiter, event);
        }
        rate_limiter.charge(stream.take_idle(), 0);
        if rate_limiter.is_charged() {
            paused = rate_limiter.pause_until(Instant::now());
        }
        while let Some((message, left)) = lanes.next() {
            work.push(post::post_message(wire, message, left));
        }
        tokio::select! {
            biased;
            _ = &mut stopping => return DisconnectReason::Stopped,
            Some(PostResult { head, session_lost }) = work.next(), if !work.is_empty() => {
                lanes.finish(&head);
                if let Some(words) = session_lost {
                    return DisconnectReason::Broken(format!("it does not know the session any more: {words}"));
                }
            }
            count = out.next_many(&mut batch, BATCH) => {
                if count == 0 {
                    return DisconnectReason::Stopped;
                }
                for out in batch.drain(..) {
                    if let Some(id) = lanes.push(out) {
                        let message = "the server does not read what is sent to it".to_owned();
                        let fault = RequestError { status: None, message, error: None };
                        wire.inbox.stream_failed(id, StreamError::Refused(fault));
                    }
                }
            }
            () = sleep_until(paused.unwrap_or_else(Instant::now)), if paused.is_some() => paused = None,
            more = stream.read(), if paused.is_none() => if let Err(end) = more {
                // What came before the end counts.
                while let Some(event) = stream.next_event() {
                    deliver(wire, &mut lanes, &mut rate_limiter, event);
                }
                return end.into();
            },
        }
    }
}

/// Delivers what came.
fn deliver(wire: &SseConnection, lanes: &mut SseSendQueue, rate_limiter: &mut RateLimiter, event: Event) {
    match event {
        Event::Message(message) => {
            if lanes.posts_requests() {
                answered_requests(&message, &mut |id| lanes.answered(id));
            }
            let bytes = message.len();
            rate_limiter.record(wire.inbox.deliver(StreamId::Shared, message), bytes);
        }
        Event::TooLarge(oversize) => {
            // Its bytes were counted as they came.
            rate_limiter.charge(1, 0);
            wire.inbox.noise(oversize.len);
            // The call that it answered need not wait for its deadline.
            if let Some(id) = oversize.response_id() {
                lanes.answered(id);
                wire.inbox.stream_failed(id, StreamError::TooLarge(wire.place.max_message_bytes));
            }
        }
        // The place was named once, and stays.
        Event::Endpoint(place) => {
            rate_limiter.charge(1, place.len());
            tracing::debug!("{} names a place for messages again", wire.place.label);
        }
    }
}

/// Says which of our requests a message answers.
fn answered_requests(frame: &[u8], answered: &mut impl FnMut(crate::transport::RequestId)) {
    match scan(frame) {
        ScannedFrame::Response { id: Id::Number(id), .. } => answered(id),
        ScannedFrame::Batch(items) => {
            for item in items {
                if let ScannedFrame::Response { id: Id::Number(id), .. } = scan(&frame[item]) {
                    answered(id);
                }
            }
        }
        ScannedFrame::Response { id: Id::Absent | Id::Foreign, .. }
        | ScannedFrame::Request { .. }
        | ScannedFrame::Notification { .. }
        | ScannedFrame::Noise => {}
    }
}

#[cfg(test)]
mod tests;

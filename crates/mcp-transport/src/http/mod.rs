//! Streamable HTTP, in both eras of the protocol.
//!
//! A request is carried by the task that makes it, as a rule; one task of the connection's own carries everything else,
//! and what is left when a caller is gone. Nothing is spawned for a call. When the wire ends, or its future is dropped,
//! every exchange is taken back: its socket goes with it, or as soon as its caller looks at it. The wire is connectionless,
//! so a request that fails ends its own lane and nothing else; only being stopped ends the wire.
//!
//! Decisions are values elsewhere ([`reply`], [`backoff`], [`lanes`], [`sessions`]); what awaits is here, in [`post`],
//! [`listen`] and [`resume`]. Absent on purpose: OAuth, the older HTTP with SSE, and any retry of a
//! request that may have run.

mod backoff;
mod body;
mod events;
mod exchange;
mod listen;
mod post;
mod response;
mod resume;
mod send_queue;
mod sessions;

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use http::{HeaderMap, HeaderValue, Method};
use mcp_model::UrlEndpoint;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::dial::options::DialOptions;
use crate::error::ConnectError;
use crate::error::disconnect::{Disconnect, DisconnectReason, RequestError};
use crate::net::{Client, ExchangeError, HttpEndpoint, RequestTarget, Response};
use crate::rpc::rate_limiter::RateLimiter;
use crate::transport::inline_sender::Exchange;
use crate::transport::{
    Dial, Epoch, FrameSink, HandshakeMode, Link, OutboundQueue, RequestId, StreamError, Transport,
};
use send_queue::{HttpSendQueue, QueueOutcome};
use sessions::HttpSessions;

/// How many things to do are taken from the queue at once.
const BATCH: usize = 128;

/// Where a Streamable HTTP server can be had.
pub(crate) struct HttpDial(HttpSettings);

/// What stays the same from connection to connection.
#[derive(Clone)]
struct HttpSettings {
    endpoint: Arc<HttpEndpoint>,
    /// The configured session.
    session_id: Option<HeaderValue>,
    terminate_on_close: bool,
}

/// One connection, not yet begun.
struct HttpTransport(HttpSettings);

/// One connection.
struct HttpConnection {
    place: Arc<HttpEndpoint>,
    client: Client,
    target: RequestTarget,
    inbox: Arc<dyn FrameSink>,
    sessions: HttpSessions,
    terminate_on_close: bool,
    lanes: Mutex<HttpSendQueue>,
    /// One for all streams, for a server can open many.
    rate_limiter: Mutex<RateLimiter>,
    /// The wire's own task.
    driver: mpsc::UnboundedSender<DriverCommand>,
}

/// What the wire's own task is told.
enum DriverCommand {
    /// The opening of a session needs to be waited for no longer.
    OpeningDone(Epoch),
    /// This session is known to be open by now.
    SessionOpened(Epoch),
    /// There is room for a message that waits.
    CapacityFree,
    /// Nobody else carries this any more.
    TakeOver(Exchange),
}

impl HttpDial {
    /// Checks what was configured; does nothing yet. No message of an error holds a header's value.
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &DialOptions) -> Result<HttpDial, ConnectError> {
        Ok(HttpDial(HttpSettings {
            endpoint: Arc::new(HttpEndpoint::new(endpoint, options)?),
            session_id: sessions::configured_session(endpoint)?,
            terminate_on_close: endpoint.terminate_on_close,
        }))
    }
}

impl Dial for HttpDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(HttpTransport(self.0.clone()))
    }

    fn label(&self) -> String {
        self.0.endpoint.label.clone()
    }

    fn redact(&self, text: &str) -> String {
        self.0.endpoint.redactor.clean(text, 2000)
    }

    fn redact_json(&self, json: &str) -> Option<String> {
        self.0.endpoint.redactor.json(json)
    }

    fn handshake_mode(&self) -> HandshakeMode {
        match self.0.session_id {
            Some(_) => HandshakeMode::Resume,
            None => HandshakeMode::Negotiate,
        }
    }

    fn is_authorizing(&self) -> bool {
        self.0.endpoint.is_awaiting_authorization()
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let HttpTransport(HttpSettings { endpoint: place, session_id, terminate_on_close }) = *self;
        let Link { outbound: mut out, inbound: inbox, shutdown: mut stop } = link;
        let client = match Client::new(Arc::clone(&place)) {
            Ok(client) => client,
            Err(failure) => return Disconnect::new(DisconnectReason::NotStarted(failure)),
        };
        let (target, plain) = client.post_target();
        let sessions = HttpSessions::new(plain, session_id);
        let (driver, mut told) = mpsc::unbounded_channel();
        let lanes = Mutex::default();
        let rate_limiter = Mutex::new(RateLimiter::new(Instant::now()));
        let wire = Arc::new(HttpConnection {
            place,
            client,
            target,
            inbox,
            sessions,
            terminate_on_close,
            lanes,
            rate_limiter,
            driver,
        });
        out.set_inline_sender(Box::new(exchange::HttpInlineSender::of(&wire)));
        let deadline = {
            let _closing = exchange::AbortAllOnDrop(&wire);
            let stopping = pin!(stop.requested());
            drive(&wire, &mut out, &mut told, stopping).await
        };
        if let Some(deadline) = deadline {
            // Whether the server heard it changes nothing for us.
            let _ = tokio::time::timeout_at(deadline, wire.end_session()).await;
        }
        Disconnect::new(DisconnectReason::Stopped)
    }
}

impl HttpConnection {
    /// Sends a request; resolves when the head of the response is there. Cancel-safe: dropping the future closes the
    /// connection, or the stream of a connection that carries several.
    async fn send(
        &self,
        method: Method,
        headers: &HeaderMap,
        body: Option<&Bytes>,
    ) -> Result<Response, ExchangeError> {
        self.client.send(&self.target, method, headers, body).await
    }

    fn rate_limiter(&self) -> MutexGuard<'_, RateLimiter> {
        self.rate_limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lanes(&self) -> MutexGuard<'_, HttpSendQueue> {
        // Every change under the lock is complete before anything can panic.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was answered elsewhere: the response that it was expected on is dropped.
    fn release(&self, id: RequestId) {
        // Not under the lock: it wakes whoever carries it.
        let open = self.lanes().abort_handle(id);
        if let Some(open) = open {
            open.abort();
        }
    }

    /// Tells the wire's own task something. One that is over needs to know nothing.
    fn command(&self, told: DriverCommand) {
        let _ = self.driver.send(told);
    }

    /// Ends the session where there is one that is ours to end.
    async fn end_session(&self) {
        if !self.terminate_on_close {
            return;
        }
        let Some(headers) = self.sessions.delete_headers() else { return };
        match self.send(Method::DELETE, &headers, None).await {
            // 405 says that the server leaves sessions to their time-out.
            Ok(response) => tracing::debug!(status = response.status().as_u16(), "the session was ended"),
            Err(ExchangeError::Refused(fault) | ExchangeError::Lost(fault)) => {
                tracing::debug!("the session could not be ended: {fault}");
            }
        }
    }
}

/// Carries messages until the wire is stopped; returns by when that is to be over, or `None` when nobody is there to
/// wait for it. What it carries is gone when it returns.
async fn drive(
    wire: &Arc<HttpConnection>,
    out: &mut OutboundQueue,
    told: &mut mpsc::UnboundedReceiver<DriverCommand>,
    mut stopping: std::pin::Pin<&mut impl Future<Output = Instant>>,
) -> Option<Instant> {
    let mut work: FuturesUnordered<Exchange> = FuturesUnordered::new();
    let mut listener: Option<(Epoch, AbortHandle)> = None;
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        loop {
            let mut lanes = wire.lanes();
            let Some(message) = lanes.next() else { break };
            work.push(exchange::start_exchange(wire, lanes, message));
        }
        tokio::select! {
            biased;
            deadline = &mut stopping => return Some(deadline),
            // Before anything new: a stream that is to be listened to is asked for before the others are let go.
            Some(()) = work.next(), if !work.is_empty() => {}
            Some(told) = told.recv() => match told {
                DriverCommand::OpeningDone(epoch) => wire.lanes().opening_done(epoch),
                DriverCommand::SessionOpened(epoch) => work.extend(start_listening(wire, epoch, &mut listener)),
                DriverCommand::CapacityFree => {}
                DriverCommand::TakeOver(exchange) => work.push(exchange),
            },
            count = out.next_many(&mut batch, BATCH) => {
                if count == 0 {
                    return None;
                }
                for out in batch.drain(..) {
                    let taken = wire.lanes().push(out);
                    match taken {
                        QueueOutcome::Accepted => {}
                        QueueOutcome::Abort(open) => open.abort(),
                        QueueOutcome::Refused(id) => {
                            let message = "the server does not read what is sent to it".to_owned();
                            let fault = RequestError { status: None, message, error: None };
                            wire.inbox.stream_failed(id, StreamError::Refused(fault));
                        }
                    }
                }
            }
        }
    }
}

/// Begins to listen in a session that is open now, and ends what listened in an earlier one.
fn start_listening(
    wire: &Arc<HttpConnection>,
    epoch: Epoch,
    listener: &mut Option<(Epoch, AbortHandle)>,
) -> Option<Exchange> {
    if listener.as_ref().is_some_and(|(listened, _)| *listened >= epoch) {
        return None;
    }
    let (abort, registration) = AbortHandle::new_pair();
    if let Some((_, former)) = listener.replace((epoch, abort)) {
        former.abort();
    }
    let wire = Arc::clone(wire);
    let listening = async move { listen::listen(&wire, epoch).await };
    Some(Box::pin(async {
        // Taken back or over: either way it is not listened to any more.
        let _ = Abortable::new(listening, registration).await;
    }))
}

#[cfg(test)]
mod tests;

//! Streamable HTTP, in both eras of the protocol.
//!
//! The task that makes a call usually also sends its request. The driver, one task per connection, sends
//! everything else and finishes the exchanges of callers that were dropped. No task is spawned for a call.
//! When the connection ends, or its future is dropped, the driver drops its exchanges, which closes their
//! sockets. The engine then ends the other calls, and they drop theirs. A failed request ends only its own
//! stream; only a shutdown ends the connection.
//!
//! Decisions are pure ([`response`], [`backoff`], [`send_queue`], [`sessions`]); [`post`], [`listen`] and
//! [`resume`] do the I/O. Absent on purpose: OAuth, HTTP with SSE, and retries of a request that may have
//! run.

mod backoff;
mod body;
mod connection;
mod events;
mod exchange;
mod listen;
mod post;
mod response;
mod resume;
mod send_queue;
mod sessions;

use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use http::HeaderValue;
use mcp_host_model::UrlEndpoint;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::error::ConnectError;
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::error::request_error::RequestError;
use crate::net::url_endpoint::UrlOptions;
use crate::net::{Client, HttpEndpoint};
use crate::rpc::rate_limiter::RateLimiter;
use crate::transport::{Dial, Epoch, HandshakeMode, Link, OutboundQueue, StreamError, Transport};
use connection::{DriverCommand, HttpConnection};
use exchange::DriverExchange;
use send_queue::QueueOutcome;
use sessions::HttpSessions;

/// Maximum number of queue entries that are taken at once.
const MAX_BATCH_MESSAGES: usize = 128;

/// Connects to a Streamable HTTP server.
#[derive(Clone)]
pub(crate) struct HttpDial {
    endpoint: Arc<HttpEndpoint>,
    /// The configured session id.
    session_id: Option<HeaderValue>,
    /// Delete the session when the connection ends.
    terminate_on_close: bool,
}

/// A connection that is not started yet.
struct HttpTransport(HttpDial);

impl HttpDial {
    /// Checks the configuration. Does no I/O. No error message contains a header's value.
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &UrlOptions) -> Result<HttpDial, ConnectError> {
        Ok(HttpDial {
            endpoint: Arc::new(HttpEndpoint::new(endpoint, options)?),
            session_id: sessions::configured_session_id(endpoint)?,
            terminate_on_close: endpoint.terminate_on_close,
        })
    }
}

impl Dial for HttpDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(HttpTransport(self.clone()))
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

    fn can_lose_session(&self) -> bool {
        true
    }

    fn handshake_mode(&self) -> HandshakeMode {
        if self.session_id.is_some() { HandshakeMode::Resume } else { HandshakeMode::Negotiate }
    }

    fn is_authorizing(&self) -> bool {
        self.endpoint.is_awaiting_authorization()
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let HttpTransport(HttpDial { endpoint, session_id, terminate_on_close }) = *self;
        let Link { mut outbound, inbound, shutdown: mut shutdown_signal } = link;
        let client = match Client::new(Arc::clone(&endpoint)).await {
            Ok(client) => client,
            Err(failure) => return Disconnect::new(DisconnectReason::NotStarted(failure)),
        };
        let (target, headers) = client.target_and_headers();
        let sessions = HttpSessions::new(headers, session_id);
        let (driver, mut commands) = mpsc::unbounded_channel();
        let send_queue = Mutex::default();
        let rate_limiter = Mutex::new(RateLimiter::new(Instant::now()));
        let connection = Arc::new(HttpConnection {
            endpoint,
            client,
            target,
            inbound,
            sessions,
            terminate_on_close,
            send_queue,
            rate_limiter,
            driver,
        });
        outbound.set_inline_sender(Box::new(exchange::HttpInlineSender::new(&connection)));
        let deadline = {
            let _closing = exchange::CloseQueueOnDrop(&connection);
            let shutdown_requested = pin!(shutdown_signal.requested());
            drive(&connection, &mut outbound, &mut commands, shutdown_requested).await
        };
        if let Some(deadline) = deadline {
            connection.inbound.end_calls();
            // The result does not matter.
            let _ = tokio::time::timeout_at(deadline, connection.delete_session()).await;
        }
        Disconnect::new(DisconnectReason::Stopped)
    }
}

/// Sends messages until the shutdown, and returns its deadline; `None` if the engine has ended. All exchanges are
/// dropped when it returns.
async fn drive(
    connection: &Arc<HttpConnection>,
    outbound: &mut OutboundQueue,
    commands: &mut mpsc::UnboundedReceiver<DriverCommand>,
    mut shutdown_requested: std::pin::Pin<&mut impl Future<Output = Instant>>,
) -> Option<Instant> {
    let mut exchanges: FuturesUnordered<DriverExchange> = FuturesUnordered::new();
    // The session whose stream is listened to, and what aborts it.
    let mut listener: Option<(Epoch, AbortHandle)> = None;
    let mut batch = Vec::with_capacity(MAX_BATCH_MESSAGES);
    loop {
        loop {
            let mut send_queue = connection.send_queue.lock();
            let Some(message) = send_queue.take_next() else { break };
            let id = message.head.id;
            send_queue.mark_in_flight(&message);
            drop(send_queue);
            let exchange = exchange::start_exchange(connection, message);
            exchanges.extend(exchange::make_abortable(connection, id, exchange));
        }
        tokio::select! {
            biased;
            deadline = &mut shutdown_requested => return Some(deadline),
            // Before new messages: the listening stream is requested before the first call is sent.
            Some(_) = exchanges.next(), if !exchanges.is_empty() => {}
            Some(command) = commands.recv() => match command {
                DriverCommand::EndHandshake(epoch) => connection.send_queue.lock().end_handshake(epoch),
                DriverCommand::Listen(epoch) => exchanges.extend(start_listening(connection, epoch, &mut listener)),
                DriverCommand::SendQueued => {}
                DriverCommand::TakeOver(id, exchange) => {
                    exchanges.extend(exchange::make_abortable(connection, Some(id), exchange));
                }
            },
            count = outbound.next_many(&mut batch, MAX_BATCH_MESSAGES) => {
                if count == 0 {
                    return None;
                }
                for entry in batch.drain(..) {
                    let outcome = connection.send_queue.lock().push(entry);
                    match outcome {
                        QueueOutcome::Accepted => {}
                        QueueOutcome::Abort(abort) => abort.abort(),
                        QueueOutcome::Refused(id) => {
                            let error = StreamError::Refused(RequestError::InputNotRead);
                            connection.inbound.fail_stream(id, error);
                        }
                    }
                }
            }
        }
    }
}

/// Starts listening in the session of `epoch`, and aborts the listening stream of an earlier session. `None` if this
/// or a later session is listened to already.
fn start_listening(
    connection: &Arc<HttpConnection>,
    epoch: Epoch,
    listener: &mut Option<(Epoch, AbortHandle)>,
) -> Option<DriverExchange> {
    if listener.as_ref().is_some_and(|(listened, _)| *listened >= epoch) {
        return None;
    }
    let (abort, registration) = AbortHandle::new_pair();
    if let Some((_, previous)) = listener.replace((epoch, abort)) {
        previous.abort();
    }
    let connection = Arc::clone(connection);
    let listening = async move { listen::listen(&connection, epoch).await };
    Some(Abortable::new(Box::pin(listening), registration))
}

#[cfg(test)]
mod tests;

//! The state of a connection, and the commands to its driver.

use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::send_queue::HttpSendQueue;
use super::sessions::HttpSessions;
use crate::net::{Client, ExchangeError, HttpEndpoint, RequestParts, RequestTarget, Response};
use crate::rpc::rate_limiter::RateLimiter;
use crate::transport::inline_sender::ExchangeFuture;
use crate::transport::{Epoch, FrameSink, RequestId};

/// The state that the exchanges and the driver of a connection share.
pub(super) struct HttpConnection {
    pub(super) endpoint: Arc<HttpEndpoint>,
    pub(super) client: Client,
    pub(super) target: RequestTarget,
    /// The engine, which receives the messages of the server.
    pub(super) inbound: Arc<dyn FrameSink>,
    pub(super) sessions: HttpSessions,
    /// Whether the session is deleted on the server when the connection ends.
    pub(super) terminate_on_close: bool,
    pub(super) send_queue: Mutex<HttpSendQueue>,
    /// Shared by all streams, because a server can open many.
    pub(super) rate_limiter: Mutex<RateLimiter>,
    /// Sends commands to the driver.
    pub(super) driver: mpsc::UnboundedSender<DriverCommand>,
}

/// A command to the driver.
pub(super) enum DriverCommand {
    /// The handshake of this session has ended: messages no longer wait for it.
    EndHandshake(Epoch),
    /// Open the listening stream of this session.
    Listen(Epoch),
    /// Send queued messages, because another one has finished.
    SendQueued,
    /// Finish this exchange, because its caller was dropped.
    TakeOver(RequestId, ExchangeFuture),
}

impl HttpConnection {
    /// Sends a request and waits for the head of its response. Dropping the future closes the connection, or resets the
    /// stream of an HTTP/2 connection.
    pub(super) fn send<'a>(
        &'a self,
        request: RequestParts<'a>,
    ) -> impl Future<Output = Result<Response, ExchangeError>> + 'a {
        self.client.send(&self.target, request)
    }

    /// Sends a command to the driver, unless it has ended.
    pub(super) fn send_command(&self, command: DriverCommand) {
        let _ = self.driver.send(command);
    }

    /// Deletes the session on the server, if it was opened on this connection and the configuration allows it.
    pub(super) async fn delete_session(&self) {
        if !self.terminate_on_close {
            return;
        }
        let Some(headers) = self.sessions.delete_headers() else { return };
        match self.send(RequestParts::new(&Method::DELETE, &headers, None)).await {
            // 405 means that sessions end by timeout only.
            Ok(response) => tracing::debug!(status = response.status.as_u16(), "the session was deleted"),
            Err(error) => tracing::debug!("the session could not be deleted: {}", error.into_error()),
        }
    }
}

//! The WebSocket transport: one socket for all messages of a connection, subprotocol `mcp`.
//!
//! One task reads, writes and sends pings. Only the upgrade spawns a task, and owns it, so dropping the
//! future closes the socket. Each text message is one JSON-RPC message. Decisions are pure ([`keep_alive`],
//! and the check of the response in [`upgrade`]); [`open`], [`reader`], [`writer`] and [`connection`] do the
//! I/O.
//!
//! tungstenite implements the protocol, except for the opening handshake: tungstenite's refuses servers that choose no
//! subprotocol, and reports few details of a refusal. Absent on purpose: compression, redirects, and the sessions of
//! Streamable HTTP.

mod activity;
mod connection;
mod endpoint;
mod keep_alive;
mod open;
mod reader;
mod socket;
mod upgrade;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_host_model::UrlEndpoint;

use crate::error::ConnectError;
use crate::error::disconnect::{Disconnect, DisconnectReason, StartError};
use crate::net::url_endpoint;
use crate::net::url_endpoint::UrlOptions;
use crate::transport::{Dial, Link, Transport};
use endpoint::WebSocketEndpoint;

/// Minimum timeout of a pong. A longer request timeout applies instead: a server that handles one request at
/// a time does not answer pings meanwhile.
const MIN_PONG_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum timeout. A longer one might overflow the clock.
const MAX_TIMEOUT: Duration = Duration::from_secs(60 * 60 * 24);

/// Connects to a WebSocket server.
pub(crate) struct WebSocketDial(Arc<WebSocketEndpoint>);

impl WebSocketDial {
    /// Checks the configuration. Does no I/O. No error message contains a header's value.
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &UrlOptions) -> Result<WebSocketDial, ConnectError> {
        let limits = &options.limits;
        if !matches!(endpoint.url.scheme(), "ws" | "wss") {
            return Err(ConnectError::Invalid(format!("{} is not a ws or wss URL", endpoint.label())));
        }
        if endpoint.session_id.is_some() {
            let message = "a WebSocket has no session that could be resumed".to_owned();
            return Err(ConnectError::Invalid(message));
        }
        Ok(WebSocketDial(Arc::new(WebSocketEndpoint {
            url: endpoint.url.clone(),
            label: endpoint.label(),
            target: upgrade::request_target(&endpoint.url)?,
            headers: upgrade::upgrade_headers(endpoint)?,
            authorities: options.authorities.clone(),
            connect_timeout: limits.connect.min(MAX_TIMEOUT),
            write_timeout: limits.request.min(MAX_TIMEOUT),
            pong_timeout: limits.request.clamp(MIN_PONG_TIMEOUT, MAX_TIMEOUT),
            max_message_bytes: limits.message_bytes,
            redactor: url_endpoint::redactor(endpoint, options),
        })))
    }
}

impl Dial for WebSocketDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(WebSocketTransport(Arc::clone(&self.0)))
    }

    fn label(&self) -> String {
        self.0.label.clone()
    }

    fn redact(&self, text: &str) -> String {
        self.0.redactor.clean(text, 2000)
    }

    fn redact_json(&self, json: &str) -> Option<String> {
        self.0.redactor.redact_json(json)
    }
}

/// A connection that is not started yet.
struct WebSocketTransport(Arc<WebSocketEndpoint>);

#[async_trait]
impl Transport for WebSocketTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let WebSocketTransport(endpoint) = *self;
        let Link { outbound, inbound, shutdown: mut shutdown_signal } = link;
        let opened = tokio::select! {
            _ = shutdown_signal.requested() => return Disconnect::new(DisconnectReason::Stopped),
            opened = open::open_socket(&endpoint) => opened,
        };
        match opened {
            Ok(socket) => {
                connection::run_connection(
                    &endpoint,
                    socket,
                    Link { outbound, inbound, shutdown: shutdown_signal },
                )
                .await
            }
            Err(error) => Disconnect::new(DisconnectReason::NotStarted(StartError::Refused(error))),
        }
    }
}

//! The WebSocket wire: one socket that carries every message of a connection, both ways, subprotocol `mcp`.
//!
//! One task reads, writes and keeps alive; nothing is spawned, so that dropping its future drops the socket. Each text
//! message is one JSON-RPC message. Decisions are values ([`pulse`], what an answer to the upgrade means in
//! [`upgrade`]); what awaits is in [`open`], [`reader`], [`writer`] and [`conversation`].
//!
//! The protocol's frames are tungstenite's. Its opening handshake is not used, for it turns away servers that choose no
//! subprotocol, and says little of a server that refuses. Absent on purpose: compression, redirects, and the sessions of
//! Streamable HTTP.

mod activity;
mod connection;
mod keep_alive;
mod open;
mod reader;
mod socket;
mod upgrade;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, Uri};
use mcp_model::UrlEndpoint;
use url::Url;

use crate::dial::options::DialOptions;
use crate::error::ConnectError;
use crate::error::disconnect::{Disconnect, DisconnectReason, StartError};
use crate::net::tls::Authorities;
use crate::net::url_endpoint;
use crate::redact::Redactor;
use crate::transport::{Dial, HandshakeMode, Link, Transport};

/// How long nothing may come from the peer before we send a ping. Proxies let a connection go after a minute of rest.
const PING_AFTER: Duration = Duration::from_secs(30);

/// The least time that a peer has to answer a ping. It is given the time of a call where that is longer: a server that
/// does one thing at a time answers nothing while it does it.
const MIN_PONG_TIMEOUT: Duration = Duration::from_secs(30);

/// No limit is longer: nobody waits for it, and it might be more than the clock can count.
const MAX_TIMEOUT: Duration = Duration::from_secs(60 * 60 * 24);

/// Where a WebSocket server can be had.
pub(crate) struct WebSocketDial(Arc<WebSocketEndpoint>);

/// What stays the same from connection to connection.
struct WebSocketEndpoint {
    url: Url,
    label: String,
    /// The request's path and query.
    target: Uri,
    /// The headers of the upgrade, but for its key.
    headers: HeaderMap,
    authorities: Authorities,
    connect_timeout: Duration,
    /// How long the peer may take no byte of what is sent to it.
    write_timeout: Duration,
    /// How long it may leave a ping unanswered.
    pong_timeout: Duration,
    max_message_bytes: usize,
    redactor: Redactor,
}

impl WebSocketDial {
    /// Checks what was configured; does nothing yet. No message of an error holds a header's value.
    pub(crate) fn new(endpoint: &UrlEndpoint, options: &DialOptions) -> Result<WebSocketDial, ConnectError> {
        let limits = &options.limits;
        if !matches!(endpoint.url.scheme(), "ws" | "wss") {
            return Err(ConnectError::Invalid(format!("{} is no ws or wss URL", endpoint.label())));
        }
        if endpoint.session_id.is_some() {
            let message = "a WebSocket has no session that could be taken up".to_owned();
            return Err(ConnectError::Invalid(message));
        }
        Ok(WebSocketDial(Arc::new(WebSocketEndpoint {
            url: endpoint.url.clone(),
            label: endpoint.label(),
            target: upgrade::target(&endpoint.url)?,
            headers: upgrade::headers(endpoint)?,
            authorities: options.authorities.clone(),
            connect_timeout: limits.connect.min(MAX_TIMEOUT),
            write_timeout: limits.request.min(MAX_TIMEOUT),
            pong_timeout: limits.request.clamp(MIN_PONG_TIMEOUT, MAX_TIMEOUT),
            max_message_bytes: limits.message_bytes,
            redactor: Redactor::new(
                url_endpoint::secrets(endpoint)
                    .into_iter()
                    .chain(options.all_extra_secrets())
                    .collect::<Vec<_>>()
                    .iter(),
            ),
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
        self.0.redactor.json(json)
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

/// One connection, not yet begun.
struct WebSocketTransport(Arc<WebSocketEndpoint>);

#[async_trait]
impl Transport for WebSocketTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let WebSocketTransport(place) = *self;
        let Link { outbound: out, inbound: inbox, shutdown: mut stop } = link;
        let opened = tokio::select! {
            _ = stop.requested() => return Disconnect::new(DisconnectReason::Stopped),
            opened = open::open(&place) => opened,
        };
        match opened {
            Ok(socket) => {
                connection::run(&place, socket, Link { outbound: out, inbound: inbox, shutdown: stop }).await
            }
            Err(fault) => Disconnect::new(DisconnectReason::NotStarted(StartError::Refused(fault))),
        }
    }
}

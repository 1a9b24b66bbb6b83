//! `GET`: the notification stream of a session.
//!
//! A session has one stream. A new stream replaces the old one; with `Last-Event-ID` it resumes after that
//! event, as far as the event log reaches. Notifications are not stored while there is no stream, except that
//! changed lists are reported when the next one opens.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{Method, StatusCode};
use mcp_host_model::ProtocolVersion;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::http::app_state::{AppState, RevocationFuture};
use crate::http::authorization::authorized_client::AuthorizedClient;
use crate::http::connection::client_connection::ClientConnection;
use crate::http::connection::connection_table::ConnectionsExceeded;
use crate::http::connection::stall_detector::KEEP_ALIVE;
use crate::http::permits::ClientPermit;
use crate::http::reply::errors::{
    ResponseResult, bad_request, busy_error, invalid_request, no_such_session, refusal, too_many_connections,
};
use crate::http::reply::sse;
use crate::http::request::header_names::{LAST_EVENT_ID, MCP_SESSION_ID, first_value, only_value};
use crate::http::request::headers::{self, AcceptedFormat};
use crate::notifications::watch::ChangeWatcher;
use crate::session::client_session::ClientSession;
use crate::session::event_log::EventId;
use crate::session::outbound_queue::{MessageReceiver, MessageSender, message_channel};

/// Opens the notification stream of the session that the request names.
pub(crate) fn open_session_stream(
    app: &AppState,
    connection: &ClientConnection,
    server: Option<&str>,
    head: &Parts,
) -> ResponseResult {
    let refuse_with = |status, message: &str| refusal(status, None, &invalid_request(message));
    if head.method == Method::HEAD {
        // A HEAD request must not replace the open stream.
        let message = "the notification stream has no HEAD: use GET";
        return Err(refuse_with(StatusCode::METHOD_NOT_ALLOWED, message));
    }
    let client = AuthorizedClient::authorize(app, connection, head, server)?;
    connection
        .permit
        .admit(&client.principal)
        .map_err(|ConnectionsExceeded| too_many_connections(app.bounds().connections))?;
    let session_id = only_value(&head.headers, &MCP_SESSION_ID).map_err(|error| bad_request(&error))?;
    let Some(id) = session_id else {
        let message = "GET opens the stream of a session: the header `Mcp-Session-Id` is missing";
        return Err(refuse_with(StatusCode::METHOD_NOT_ALLOWED, message));
    };
    let session = client.find_session(app, id)?;
    if *session.scope != *client.scope {
        // The stream has what the session may see. A client whose access token grants something else begins another.
        return Err(no_such_session());
    }
    if headers::accepted_format(&head.headers) == AcceptedFormat::Json {
        let message = "the header `Accept` must contain `text/event-stream`";
        return Err(refuse_with(StatusCode::NOT_ACCEPTABLE, message));
    }
    let permit = app
        .acquire_stream_permit(&client.principal)
        .ok_or_else(|| refusal(StatusCode::SERVICE_UNAVAILABLE, None, &busy_error()))?;
    let last_event = first_value(&head.headers, &LAST_EVENT_ID).and_then(|id| id.parse().ok());
    let (sender, messages) = message_channel(app.bounds());
    let replaced = session.channel.open_stream(sender.clone());
    let watcher = ChangeWatcher::new(&app.gateway, &session.scope, session.features.audience);
    let sent = session.event_log.resume(last_event);
    let state = SessionStream {
        session,
        messages,
        watcher,
        sent,
        sender,
        replaced,
        revoked: app.watch_revocation(client.credential),
        is_started: false,
        _permit: permit,
    };
    Ok(sse::response(stream::unfold(state, |mut state| async {
        let event = state.next().await?;
        Some((event, state))
    })))
}

/// The open notification stream of a session.
struct SessionStream {
    session: Arc<ClientSession>,
    messages: MessageReceiver,
    watcher: ChangeWatcher,
    /// The id of the last event that was sent.
    sent: EventId,
    /// The sender of `messages`, which identifies this stream to the session.
    sender: MessageSender,
    /// Cancelled when another stream replaces this one.
    replaced: CancellationToken,
    /// Resolves when the client's token is no longer accepted.
    revoked: RevocationFuture,
    /// Whether the first bytes were sent.
    is_started: bool,
    _permit: ClientPermit,
}

impl SessionStream {
    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.is_started {
            // Some clients wait for the first bytes before they consider a stream open.
            self.is_started = true;
            // Older clients cannot parse an event without data.
            let accepts_empty_event = self.session.version >= ProtocolVersion::V2025_11_25;
            return Some(if accepts_empty_event { sse::start_event(self.sent) } else { sse::keep_alive() });
        }
        loop {
            let SessionStream { session, messages, watcher, replaced, revoked, .. } = self;
            if session.ended.is_cancelled() || replaced.is_cancelled() {
                return None;
            }
            if let Some((id, message)) = session.event_log.next_after(self.sent) {
                self.sent = id;
                return Some(sse::event_with_id(id, &message));
            }
            tokio::select! {
                biased;
                () = session.ended.cancelled() => return None,
                () = replaced.cancelled() => return None,
                () = revoked => return None,
                Some(message) = messages.next() => session.event_log.append(message),
                () = session.event_log.wait_for_append() => {}
                change = watcher.next(&session.known_lists) => {
                    for message in watcher.session_notifications(session, &change) {
                        session.event_log.append(message);
                    }
                }
                () = sleep(KEEP_ALIVE) => return Some(sse::keep_alive()),
            }
        }
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        self.session.channel.close_stream(&self.sender);
        // Log the messages that this stream has not sent, so that the next stream sends them.
        while let Some(message) = self.messages.try_next() {
            self.session.event_log.append(message);
        }
        self.session.touch(Instant::now());
    }
}

//! `POST`: a message of a client, in a session or without one.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use hyper::body::Incoming as IncomingBody;
use mcp_model::{Era, ProtocolVersion, RawJson, RpcError, code};
use tokio::time::Instant;

use super::client::Client;
use super::connection::Connection;
use super::errors::{busy, invalid_request, no_session, refusal, too_many_sessions};
use super::header_names::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID, text};
use super::headers::{self, Accepts};
use super::pending_response::{OnDisconnect, PendingResponse, Reply, Work, accepted};
use super::permits::ClientPermit;
use super::request_body::{self, BodyError};
use super::response::{self, Response, with_header};
use super::server::AppState;
use super::stateless;
use crate::methods::{RequestContext, initialize};
use crate::protocol;
use crate::protocol::frame::{self, Incoming, Request};
use crate::session::caller::Caller;
use crate::session::outbound_queue::{MessageSender, message_channel};
use crate::session::state::Session;

/// Reads the message of an authorized client and handles it.
pub(super) async fn post(
    connection: &Connection,
    head: &Parts,
    body: IncomingBody,
    client: Client,
) -> Response {
    let body = match read_body(connection, body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    match text(&head.headers, &MCP_SESSION_ID) {
        Some(id) => in_session(connection, head, &client, id, body).await,
        None => without_session(connection, head, client, body).await,
    }
}

async fn read_body(connection: &Connection, body: IncomingBody) -> Result<Bytes, Response> {
    let app = &connection.app;
    let bounds = app.bounds();
    let reading = pin!(request_body::read(body, bounds.message_bytes, &app.gateway.budget));
    let refused = |status, message: &str| {
        // The rest of the body is not read, so nothing can follow it.
        let response = refusal(status, None, &invalid_request(message));
        with_header(response, header::CONNECTION, HeaderValue::from_static("close"))
    };
    match connection.timer().timeout(bounds.receive_timeout, reading).await {
        Some(Ok(body)) => Ok(body),
        Some(Err(BodyError::TooLarge)) => {
            let message = format!("a message may have {} bytes", bounds.message_bytes);
            Err(refused(StatusCode::PAYLOAD_TOO_LARGE, &message))
        }
        Some(Err(BodyError::OverBudget)) => {
            let response = refusal(StatusCode::SERVICE_UNAVAILABLE, None, &busy());
            let response = with_header(response, header::CONNECTION, HeaderValue::from_static("close"));
            Err(with_header(response, header::RETRY_AFTER, HeaderValue::from_static("1")))
        }
        Some(Err(BodyError::Incomplete)) => {
            Err(refused(StatusCode::BAD_REQUEST, "the body cannot be read to its end"))
        }
        None => Err(refused(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    }
}

async fn in_session(
    connection: &Connection,
    head: &Parts,
    client: &Client,
    id: &str,
    body: Bytes,
) -> Response {
    let app = &connection.app;
    let Some(session) = find_session(app, client, id) else { return no_session() };
    if let Some(version) = text(&head.headers, &MCP_PROTOCOL_VERSION)
        && version.parse::<ProtocolVersion>().map_or(true, |version| version.era() != Era::Legacy)
    {
        let error = invalid_request("the header `MCP-Protocol-Version` names no version of this session");
        return refusal(StatusCode::BAD_REQUEST, None, &error);
    }
    session.touch(Instant::now());
    let accepts = headers::accepts(&head.headers);
    let has_batches = session.version == ProtocolVersion::V2025_03_26;
    if has_batches && body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return batch(app, &session, &body).await;
    }
    match frame::read(&body) {
        Ok(Incoming::Request(request)) => {
            let (mut sender, messages) = message_channel(app.bounds());
            if accepts == Accepts::Json {
                // The response can contain only the result. Other messages, such as server requests, need another
                // stream.
                (sender, _) = message_channel(app.bounds());
            }
            match start(app, &session, sender, request) {
                Ok(work) => {
                    let pending = PendingResponse::new(work, messages, OnDisconnect::Finish);
                    pending.respond(accepts, connection.timer()).await
                }
                Err((id, error)) => refusal(StatusCode::OK, Some(&id), &error),
            }
        }
        Ok(other) => {
            receive(app, &session, other);
            accepted()
        }
        Err(unreadable) => refusal(StatusCode::BAD_REQUEST, unreadable.id.as_ref(), &unreadable.error),
    }
}

/// The session with this id, if it belongs to the client and has the client's scope.
pub(super) fn find_session(app: &AppState, client: &Client, id: &str) -> Option<Arc<Session>> {
    let session = app.gateway.sessions.get(id, &client.principal)?;
    (session.scope == client.scope).then_some(session)
}

/// Acquires the permits of a request and prepares its work.
fn start(
    app: &AppState,
    session: &Arc<Session>,
    sender: MessageSender,
    request: Request,
) -> Result<Work, (RawJson, RpcError)> {
    if request.method == "initialize" {
        return Err((request.id, invalid_request("this session is initialized already")));
    }
    let Ok(permit) = Arc::clone(&app.requests).try_acquire_owned() else {
        return Err((request.id, busy()));
    };
    // Many sessions of one token share the token's permits.
    let client_permit = if session.principal.is_anybody() {
        None
    } else {
        match ClientPermit::session_request(app, &session.principal) {
            None => return Err((request.id, busy())),
            permit => permit,
        }
    };
    let mut guard = match session.running.start(&request.id, app.bounds().requests_per_client) {
        Ok(guard) => guard,
        Err(error) => return Err((request.id, error)),
    };
    let gateway = Arc::clone(&app.gateway);
    let session = Arc::clone(session);
    Ok(Box::pin(async move {
        let caller = Caller::of_session(&session, sender);
        let result = tokio::select! {
            biased;
            () = guard.cancelled() => None,
            result = gateway.handle(RequestContext::new(&gateway, &caller, &request)) => Some(result),
        };
        session.touch(Instant::now());
        drop((guard, permit, client_permit));
        let body = match result? {
            Ok(result) => protocol::response::result(&request.id, &result),
            Err(error) => protocol::response::error(Some(&request.id), &error),
        };
        Some(Reply { status: StatusCode::OK, body: gateway.budget.track(body) })
    }))
}

/// Handles a notification or a response of the client.
fn receive(app: &AppState, session: &Arc<Session>, message: Incoming) {
    match message {
        Incoming::Notification(notification) => {
            // A notification has no response that could carry messages.
            let (sender, _) = message_channel(app.bounds());
            app.gateway.handle_notification(&Caller::of_session(session, sender), &notification);
        }
        Incoming::Response(response) => session.server_requests.resolve(&response.id, response.outcome),
        Incoming::Request(_) => unreachable!("requests have a response"),
    }
}

/// Handles the messages of a batch concurrently. The responses are in the order of the requests.
async fn batch(app: &AppState, session: &Arc<Session>, body: &Bytes) -> Response {
    let messages = match frame::read_many(body) {
        Ok(messages) => messages,
        Err(unreadable) => {
            return refusal(StatusCode::BAD_REQUEST, unreadable.id.as_ref(), &unreadable.error);
        }
    };
    let failed = |id: Option<&RawJson>, error: &RpcError| -> Work {
        let body = protocol::response::error(id, error);
        Box::pin(std::future::ready(Some(Reply { status: StatusCode::OK, body })))
    };
    let mut work = Vec::new();
    for message in messages {
        // The response to a batch contains only responses, no other messages.
        let (sender, _) = message_channel(app.bounds());
        match message {
            Ok(Incoming::Request(request)) => match start(app, session, sender, request) {
                Ok(running) => work.push(running),
                Err((id, error)) => work.push(failed(Some(&id), &error)),
            },
            Ok(other) => receive(app, session, other),
            Err(unreadable) => work.push(failed(unreadable.id.as_ref(), &unreadable.error)),
        }
    }
    let replies = futures_util::future::join_all(work).await;
    let replies: Vec<Bytes> = replies.into_iter().flatten().map(|reply| reply.body).collect();
    if replies.is_empty() {
        accepted()
    } else {
        response::json(StatusCode::OK, protocol::response::batch(&replies))
    }
}

async fn without_session(connection: &Connection, head: &Parts, client: Client, body: Bytes) -> Response {
    let app = &connection.app;
    let message = match frame::read(&body) {
        Ok(message) => message,
        Err(unreadable) => {
            return refusal(StatusCode::BAD_REQUEST, unreadable.id.as_ref(), &unreadable.error);
        }
    };
    let version = text(&head.headers, &MCP_PROTOCOL_VERSION).map(str::parse::<ProtocolVersion>);
    let is_legacy = matches!(version, Some(Ok(version)) if version.era() == Era::Legacy);
    match message {
        Incoming::Request(request) => {
            // A legacy client sends the version header only once it has a session.
            let is_stateless = request.meta.is_modern() || (version.is_some() && !is_legacy);
            match &*request.method {
                _ if is_stateless => stateless::respond(connection, head, client, request).await,
                "initialize" => {
                    app.gateway.wait_for_startup().await;
                    initialize(app, client, &request)
                }
                _ => {
                    let message =
                        "there is no session: send `initialize` first, and its `Mcp-Session-Id` then";
                    let error = RpcError::new(code::SERVER_ERROR, message);
                    refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error)
                }
            }
        }
        // Notifications of a stateless client have no effect: it cancels a request by disconnecting.
        Incoming::Notification(_) | Incoming::Response(_) if !is_legacy => accepted(),
        Incoming::Notification(_) | Incoming::Response(_) => {
            let error = RpcError::new(code::SERVER_ERROR, "there is no session: `Mcp-Session-Id` is missing");
            refusal(StatusCode::BAD_REQUEST, None, &error)
        }
    }
}

fn initialize(app: &AppState, client: Client, request: &Request) -> Response {
    let handshake = match initialize::read_handshake(request.params.raw()) {
        Ok(handshake) => handshake,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error),
    };
    let Client { principal, scope } = client;
    let result = initialize::initialize_result(&app.gateway, &handshake, &scope);
    let Ok(session) = app.gateway.start_session(principal, scope, handshake) else {
        return too_many_sessions(&request.id);
    };
    let body = protocol::response::result(&request.id, result.as_bytes());
    let id = HeaderValue::from_str(&session.id).expect("a session id is hexadecimal");
    with_header(response::json(StatusCode::OK, body), MCP_SESSION_ID.clone(), id)
}

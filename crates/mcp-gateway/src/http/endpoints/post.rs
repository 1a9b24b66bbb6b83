//! `POST`: a message of a client, in a session or without one.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use hyper::body::Incoming as IncomingBody;
use mcp_host_model::{Era, Method, ProtocolVersion, RawJson, RpcError, code};
use tokio::time::{Instant, timeout};

use crate::http::app_state::AppState;
use crate::http::authorization::authorized_client::{self, AuthorizedClient};
use crate::http::connection::client_connection::ClientConnection;
use crate::http::connection::connection_table::ConnectionsExceeded;
use crate::http::endpoints::stateless;
use crate::http::reply::errors::{
    ResponseResult, bad_request, busy, invalid_request, refusal, too_many_connections, too_many_sessions,
};
use crate::http::reply::pending_response::{OnDisconnect, PendingResponse, Reply, Work, accepted};
use crate::http::reply::response::{self, Response, with_header};
use crate::http::request::header_names::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID, single, text};
use crate::http::request::headers::{self, Accepts};
use crate::http::request::request_body::{self, BodyError};
use crate::limits::bounds::Bounds;
use crate::limits::byte_budget::BudgetExceeded;
use crate::methods::context::RequestContext;
use crate::methods::initialize;
use crate::metrics::counters::CountedRequest;
use crate::protocol::frame::{self, FrameError, Incoming, Request};
use crate::protocol::message_writer;
use crate::session::dialogs::ConnectionId;
use crate::session::outbound_queue::{MessageSender, message_channel};
use crate::session::request_client::RequestClient;
use crate::session::state::ClientSession;
use crate::session::usage::CapacityError;

/// Authorizes a client, reads its message and handles it.
pub(crate) async fn post(
    app: &Arc<AppState>,
    connection: &ClientConnection,
    server: Option<&str>,
    head: &Parts,
    body: IncomingBody,
) -> ResponseResult {
    let client = AuthorizedClient::authorize_message(app, connection.id, head, server)?;
    connection
        .permit
        .admit(&client.principal)
        .map_err(|ConnectionsExceeded| too_many_connections(app.bounds().connections))?;
    let session_id = single(&head.headers, &MCP_SESSION_ID).map_err(|error| bad_request(&error))?;
    let body = read_body(app, &client, body).await?;
    match session_id {
        Some(id) => in_session(app, head, &client, id, body).await,
        None => without_session(app, connection.id, head, client, body).await,
    }
}

async fn read_body(
    app: &AppState,
    client: &AuthorizedClient<'_>,
    body: IncomingBody,
) -> Result<Bytes, Response> {
    let Bounds { message_bytes, receive_timeout, .. } = *app.bounds();
    let budget = &app.gateway.budget;
    let read = request_body::read(body, message_bytes, (budget, &client.account));
    let (status, error) = match timeout(receive_timeout, read).await {
        Ok(Ok(body)) => return Ok(body),
        Ok(Err(BodyError::TooLarge)) => {
            let message = format!("a message may have at most {message_bytes} bytes");
            (StatusCode::PAYLOAD_TOO_LARGE, invalid_request(&message))
        }
        Ok(Err(BodyError::OverBudget)) => (StatusCode::SERVICE_UNAVAILABLE, budget.exceeded()),
        Ok(Err(BodyError::Incomplete)) => {
            (StatusCode::BAD_REQUEST, invalid_request("the body ends too early, or its framing is invalid"))
        }
        Err(_) => {
            let message = format!("the body was not received within {receive_timeout:?}");
            (StatusCode::REQUEST_TIMEOUT, invalid_request(&message))
        }
    };
    // The rest of the body is not read, so nothing can follow it.
    let mut response =
        with_header(refusal(status, None, &error), header::CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    Err(response)
}

async fn in_session(
    app: &AppState,
    head: &Parts,
    client: &AuthorizedClient<'_>,
    id: &str,
    body: Bytes,
) -> ResponseResult {
    let session = client.find_session(app, id)?;
    let version = single(&head.headers, &MCP_PROTOCOL_VERSION).map_err(|error| bad_request(&error))?;
    let era = version.map(|version| version.parse().map(ProtocolVersion::era));
    if !matches!(era, None | Some(Ok(Era::Legacy))) {
        let message = "the header `MCP-Protocol-Version` is not a version with sessions";
        return Err(bad_request(&invalid_request(message)));
    }
    session.touch(Instant::now());
    authorized_client::set_subject(&session.dialog, client.grant.as_ref(), head);
    if session.version == ProtocolVersion::V2025_03_26 && frame::is_batch(&body) {
        return batch(app, &session, client, &body).await;
    }
    let request = match frame::read(&body).map_err(unreadable)? {
        Incoming::Request(request) => request,
        other => {
            receive(app, &session, other);
            return Ok(accepted());
        }
    };
    let counted = app.gateway.counters.start_request(&request.method);
    client.require_scope(app, &request)?;
    let accepts = headers::accepts(&head.headers);
    let (mut sender, messages) = message_channel(app.bounds());
    if accepts == Accepts::Json {
        // The response can contain only the result. Other messages, such as server requests, need another stream.
        sender = closed_sender(app);
    }
    let work = start(app, &session, client, (sender, request), counted)
        .map_err(|(id, error)| refusal(StatusCode::OK, Some(&id), &error))?;
    Ok(PendingResponse::new(work, messages, OnDisconnect::Finish).respond(accepts).await)
}

/// A sender for a response that can contain no other messages.
fn closed_sender(app: &AppState) -> MessageSender {
    message_channel(app.bounds()).0
}

fn unreadable(FrameError { id, error }: FrameError) -> Response {
    refusal(StatusCode::BAD_REQUEST, id.as_ref(), &error)
}

/// Acquires the permits of a request and prepares its work.
fn start(
    app: &AppState,
    session: &Arc<ClientSession>,
    client: &AuthorizedClient<'_>,
    (sender, request): (MessageSender, Request),
    mut counted: CountedRequest,
) -> Result<Work, (RawJson, RpcError)> {
    if request.method == Method::Initialize {
        return Err((request.id, invalid_request("this session is already initialized")));
    }
    if client.is_over_share {
        return Err((request.id, app.gateway.budget.exceeded()));
    }
    // Many sessions of one token share the token's permits.
    let client_permit = match app.session_permit(&session.principal) {
        None if !session.principal.is_anonymous() => return Err((request.id, busy())),
        permit => permit,
    };
    let Some(permit) = app.running_permit(client_permit.as_ref()) else {
        return Err((request.id, busy()));
    };
    let mut guard = match session.running.start(&request.id, app.bounds().requests_per_client) {
        Ok(guard) => guard,
        Err(error) => return Err((request.id, error)),
    };
    session.record_request(&request.method);
    counted.begin();
    let gateway = Arc::clone(&app.gateway);
    let session = Arc::clone(session);
    let account = client.account.clone();
    let granted_scope = client.grant.as_ref().map(|_| Arc::clone(&client.scope));
    Ok(Box::pin(async move {
        let mut caller = RequestClient::of_session(&session, sender);
        if let Some(scope) = granted_scope {
            caller.scope = scope;
        }
        let result = tokio::select! {
            biased;
            () = guard.cancelled() => None,
            result = gateway.handle(RequestContext::new(&gateway, &caller, &request)) => Some(result),
        };
        session.touch(Instant::now());
        drop((guard, permit, client_permit));
        let result = result?;
        counted.end(&result);
        let body = gateway.tracked_response(&account, &request.id, &result);
        Some(Reply { status: StatusCode::OK, body, retry_after: None })
    }))
}

/// Handles a notification or a response of the client.
fn receive(app: &AppState, session: &Arc<ClientSession>, message: Incoming) {
    match message {
        Incoming::Notification(notification) => {
            let caller = RequestClient::of_session(session, closed_sender(app));
            app.gateway.handle_notification(&caller, &notification);
        }
        Incoming::Response(response) => session.port.requests.resolve(&response.id, response.outcome),
        Incoming::Request(_) => unreachable!("requests have a response"),
    }
}

/// Handles the messages of a batch concurrently. The responses are in the order of the requests.
async fn batch(
    app: &AppState,
    session: &Arc<ClientSession>,
    client: &AuthorizedClient<'_>,
    body: &Bytes,
) -> ResponseResult {
    let messages = frame::read_many(body).map_err(unreadable)?;
    let failed = |id: Option<&RawJson>, error: &RpcError| -> Work {
        let body = message_writer::error(id, error);
        Box::pin(std::future::ready(Some(Reply { status: StatusCode::OK, body, retry_after: None })))
    };
    let mut work = Vec::new();
    for message in messages {
        match message {
            Ok(Incoming::Request(request)) => {
                let counted = app.gateway.counters.start_request(&request.method);
                match start(app, session, client, (closed_sender(app), request), counted) {
                    Ok(running) => work.push(running),
                    Err((id, error)) => work.push(failed(Some(&id), &error)),
                }
            }
            Ok(other) => receive(app, session, other),
            Err(unreadable) => work.push(failed(unreadable.id.as_ref(), &unreadable.error)),
        }
    }
    let replies = futures_util::future::join_all(work).await;
    let replies: Vec<Bytes> = replies.into_iter().flatten().map(|reply| reply.body).collect();
    if replies.is_empty() {
        return Ok(accepted());
    }
    let body = message_writer::batch(&replies);
    // The copies are released before the whole is counted.
    drop(replies);
    let budget = &app.gateway.budget;
    let body = budget
        .track(&client.account, body)
        .map_err(|BudgetExceeded| refusal(StatusCode::SERVICE_UNAVAILABLE, None, &budget.exceeded()))?;
    Ok(response::json(StatusCode::OK, body))
}

async fn without_session(
    app: &Arc<AppState>,
    connection: ConnectionId,
    head: &Parts,
    client: AuthorizedClient<'_>,
    body: Bytes,
) -> ResponseResult {
    let version = text(&head.headers, &MCP_PROTOCOL_VERSION).map(str::parse::<ProtocolVersion>);
    let is_legacy = matches!(version, Some(Ok(version)) if version.era() == Era::Legacy);
    match frame::read(&body).map_err(unreadable)? {
        // A legacy client sends the version header only once it has a session.
        Incoming::Request(request) if request.meta().is_modern() || (version.is_some() && !is_legacy) => {
            let counted = app.gateway.counters.start_request(&request.method);
            client.require_scope(app, &request)?;
            stateless::respond(app, connection, head, client, (request, counted)).await
        }
        Incoming::Request(request) if request.method == Method::Initialize => {
            let mut counted = app.gateway.counters.start_request(&request.method);
            counted.begin();
            app.gateway.wait_for_startup().await;
            let response = initialize(app, client, &request);
            counted.end(&response);
            response
        }
        Incoming::Request(request) => {
            drop(app.gateway.counters.start_request(&request.method));
            let message =
                "this request needs a session: send `initialize`, then the `Mcp-Session-Id` of its response";
            let error = RpcError::new(code::SERVER_ERROR, message);
            Err(refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error))
        }
        // Notifications of a stateless client have no effect: it cancels a request by disconnecting.
        Incoming::Notification(_) | Incoming::Response(_) if !is_legacy => Ok(accepted()),
        Incoming::Notification(_) | Incoming::Response(_) => {
            let message = "this message needs a session: the header `Mcp-Session-Id` is missing";
            Err(bad_request(&RpcError::new(code::SERVER_ERROR, message)))
        }
    }
}

fn initialize(app: &AppState, client: AuthorizedClient<'_>, request: &Request) -> ResponseResult {
    let handshake = initialize::read_handshake(request.params.raw())
        .map_err(|error| refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error))?;
    let AuthorizedClient { principal, scope, .. } = client;
    let result = initialize::initialize_result(&app.gateway, &handshake, &scope);
    let session = app.gateway.start_session(principal, scope, handshake);
    let session = session.map_err(|CapacityError| too_many_sessions(&request.id))?;
    let body = message_writer::result(&request.id, result.as_bytes());
    let id = HeaderValue::from_str(&session.id).expect("a session id is hexadecimal");
    Ok(with_header(response::json(StatusCode::OK, body), MCP_SESSION_ID.clone(), id))
}

//! `POST`: a message of a client, in a session or without one.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use hyper::body::{Body, Incoming as IncomingBody};
use mcp_host_model::{Era, Method, ProtocolVersion, RawJson, RpcError, code};
use tokio::time::{Instant, timeout};

use crate::http::app_state::AppState;
use crate::http::authorization::authorized_client::{self, AuthorizedClient};
use crate::http::connection::client_connection::ClientConnection;
use crate::http::connection::connection_table::ConnectionsExceeded;
use crate::http::endpoints::stateless;
use crate::http::reply::errors::{
    ResponseResult, bad_request, busy_error, invalid_request, refusal, too_many_connections,
    too_many_sessions,
};
use crate::http::reply::pending_response::{OnDisconnect, PendingResponse, Reply, Work, accepted};
use crate::http::reply::response::{self, Response, with_header};
use crate::http::request::header_names::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID, first_value, only_value};
use crate::http::request::headers::{self, AcceptedFormat};
use crate::http::request::request_body::{self, BodyError};
use crate::limits::bounds::Bounds;
use crate::limits::byte_budget::{Account, BudgetExceeded};
use crate::lists::resolution::Resolution;
use crate::methods::context::RequestContext;
use crate::methods::initialize;
use crate::metrics::counters::CountedRequest;
use crate::protocol::frame::{self, ClientMessage, ClientRequest, FrameError};
use crate::protocol::message_writer;
use crate::protocol::oversized::message_size_error;
use crate::session::client_session::ClientSession;
use crate::session::outbound_queue::{MessageSender, message_channel};
use crate::session::request_client::RequestClient;
use crate::session::usage::CapacityError;

/// Authorizes a client, reads its message and handles it.
pub(crate) async fn handle_post(
    app: &Arc<AppState>,
    connection: &ClientConnection,
    server: Option<&str>,
    head: &Parts,
    body: IncomingBody,
) -> ResponseResult {
    let client = AuthorizedClient::authorize(app, connection, head, server)?;
    check_body_headers(head)?;
    connection
        .permit
        .admit(&client.principal)
        .map_err(|ConnectionsExceeded| too_many_connections(app.bounds().connections))?;
    let session_id = only_value(&head.headers, &MCP_SESSION_ID).map_err(|error| bad_request(&error))?;
    let body = read_body(app, &client.account, head, body).await?;
    match session_id {
        Some(id) => handle_in_session(app, head, &client, id, body).await,
        None => handle_without_session(app, connection, head, client, body).await,
    }
}

/// Checks that the body is JSON in a supported coding.
fn check_body_headers(head: &Parts) -> Result<(), Response> {
    let is_supported_coding = match only_value(&head.headers, &header::TRANSFER_ENCODING) {
        Ok(coding) => coding.is_none_or(|coding| coding.eq_ignore_ascii_case("chunked")),
        Err(_) => false,
    };
    let refused = |status, message: &str| Err(refusal(status, None, &invalid_request(message)));
    if !headers::has_json_body(&head.headers) {
        refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be `application/json`")
    } else if head.headers.contains_key(header::CONTENT_ENCODING) {
        refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must have no `Content-Encoding`")
    } else if !is_supported_coding {
        let message = "the only supported `Transfer-Encoding` is `chunked`";
        // A proxy may see another end of the body.
        refused(StatusCode::NOT_IMPLEMENTED, message)
            .map_err(|response| with_header(response, header::CONNECTION, HeaderValue::from_static("close")))
    } else {
        Ok(())
    }
}

/// Reads the body within the limits on size, time and memory. An error is the response that refuses the request.
async fn read_body(
    app: &AppState,
    account: &Account,
    head: &Parts,
    body: IncomingBody,
) -> Result<Bytes, Response> {
    let Bounds { message_bytes, receive_timeout, .. } = *app.bounds();
    let budget = &app.gateway.budget;
    // A body that is refused by its length is not requested with `100 Continue`.
    let is_unsent =
        head.headers.contains_key(header::EXPECT) && body.size_hint().lower() > message_bytes as u64;
    let read = async {
        match is_unsent {
            true => Err(BodyError::TooLarge(None)),
            false => request_body::read(body, message_bytes, budget, account).await,
        }
    };
    let (status, id, error) = match timeout(receive_timeout, read).await {
        Ok(Ok(body)) => return Ok(body),
        Ok(Err(BodyError::TooLarge(id))) => {
            (StatusCode::PAYLOAD_TOO_LARGE, id, message_size_error(message_bytes))
        }
        Ok(Err(BodyError::OverBudget(id))) => (StatusCode::SERVICE_UNAVAILABLE, id, budget.exceeded_error()),
        Ok(Err(BodyError::Incomplete)) => {
            let message = "the body ends too early, or its framing is invalid";
            (StatusCode::BAD_REQUEST, None, invalid_request(message))
        }
        Err(_) => {
            let message = format!("the body was not received within {receive_timeout:?}");
            (StatusCode::REQUEST_TIMEOUT, None, invalid_request(&message))
        }
    };
    // The rest of the body is not read, so nothing can follow it.
    let mut response = with_header(
        refusal(status, id.as_ref(), &error),
        header::CONNECTION,
        HeaderValue::from_static("close"),
    );
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    Err(response)
}

/// Handles a message with a session id.
async fn handle_in_session(
    app: &AppState,
    head: &Parts,
    client: &AuthorizedClient<'_>,
    id: &str,
    body: Bytes,
) -> ResponseResult {
    let session = client.find_session(app, id)?;
    let version = only_value(&head.headers, &MCP_PROTOCOL_VERSION).map_err(|error| bad_request(&error))?;
    let era = version.map(|version| version.parse().map(ProtocolVersion::era));
    if !matches!(era, None | Some(Ok(Era::Legacy))) {
        let message = format!(
            "the header `MCP-Protocol-Version` is not a version with sessions: that of this session is {}",
            session.version.as_str()
        );
        return Err(bad_request(&invalid_request(&message)));
    }
    session.touch(Instant::now());
    authorized_client::set_subject_token(&session.dialog, client.grant(), head);
    if session.version == ProtocolVersion::V2025_03_26 && frame::is_batch(&body) {
        return handle_batch(app, &session, client, &body).await;
    }
    let request = match frame::read_message(&body).map_err(unreadable_message)? {
        ClientMessage::Request(request) => request,
        other => {
            handle_other_message(app, &session, other);
            return Ok(accepted());
        }
    };
    let counted = app.gateway.counters.start_request(&request.method);
    let resolution = match client.limited_item(&request) {
        Some(_) => Some(client.resolve(app, session.features.audience, &request).await?),
        None => None,
    };
    let accepts = headers::accepted_format(&head.headers);
    let (mut sender, messages) = message_channel(app.bounds());
    if accepts == AcceptedFormat::Json {
        // The response can contain only the result. Other messages, such as server requests, need another stream.
        sender = closed_sender(app);
    }
    let id = request.id.clone();
    let work = prepare_work(app, &session, client, SessionRequest { request, resolution, sender }, counted)
        .map_err(|error| refusal(StatusCode::OK, Some(&id), &error))?;
    Ok(PendingResponse::new(work, messages, OnDisconnect::Finish).respond(accepts).await)
}

/// A sender whose receiver was dropped, for a response that can contain no other messages.
fn closed_sender(app: &AppState) -> MessageSender {
    message_channel(app.bounds()).0
}

/// The response to a message that cannot be read.
fn unreadable_message(FrameError { id, error }: FrameError) -> Response {
    refusal(StatusCode::BAD_REQUEST, id.as_ref(), &error)
}

/// A request in a session.
struct SessionRequest {
    request: ClientRequest,
    /// What it refers to, if that is known.
    resolution: Option<Resolution>,
    /// The queue for messages that precede its result.
    sender: MessageSender,
}

/// Acquires the permits of a request in a session, and returns its work, which is not started yet.
fn prepare_work(
    app: &AppState,
    session: &Arc<ClientSession>,
    client: &AuthorizedClient<'_>,
    SessionRequest { request, resolution, sender }: SessionRequest,
    mut counted: CountedRequest,
) -> Result<Work, RpcError> {
    if request.method == Method::Initialize {
        return Err(invalid_request("this session is already initialized"));
    }
    if client.is_over_share {
        return Err(app.gateway.budget.exceeded_error());
    }
    let client_permit = if session.principal.is_anonymous() {
        None
    } else {
        Some(app.acquire_session_permit(&session.principal).ok_or_else(busy_error)?)
    };
    let permit = app.acquire_request_permit(client_permit.as_ref()).ok_or_else(busy_error)?;
    let mut guard = session.running.start(&request.id, app.bounds().requests_per_client)?;
    session.record_request(&request.method);
    counted.begin();
    let turn = app.queue_for_turn(&session.principal);
    let gateway = Arc::clone(&app.gateway);
    let session = Arc::clone(session);
    let account = client.account.clone();
    let source = client.source;
    let granted_scope = client.grant().map(|_| Arc::clone(&client.scope));
    Ok(Box::pin(async move {
        if let Some(turn) = turn {
            // It fails if the server has ended.
            let _ = turn.await;
        }
        let mut request_client = RequestClient::from_session(&session, sender);
        request_client.source = source;
        if let Some(scope) = granted_scope {
            request_client.scope = scope;
        }
        let context = RequestContext::new(&gateway, &request_client, &request).with_resolution(resolution);
        // Pinned in place, because moving a large future copies it.
        let handled = pin!(gateway.handle(context));
        let result = tokio::select! {
            biased;
            () = guard.cancelled() => None,
            result = handled => Some(result),
        };
        session.touch(Instant::now());
        drop((guard, permit, client_permit));
        let result = result?;
        counted.end(&result);
        let body = gateway.track_response(&account, &request.id, &result);
        Some(Reply { status: StatusCode::OK, body, retry_after: None })
    }))
}

/// Handles a notification or a response of the client.
fn handle_other_message(app: &AppState, session: &Arc<ClientSession>, message: ClientMessage) {
    match message {
        ClientMessage::Notification(notification) => {
            let request_client = RequestClient::from_session(session, closed_sender(app));
            app.gateway.handle_notification(&request_client, &notification);
        }
        ClientMessage::Response(response) => session.channel.requests.resolve(&response.id, response.outcome),
        ClientMessage::Request(_) => unreachable!("requests have a response"),
    }
}

/// Handles the messages of a batch concurrently. The responses are in the order of the requests.
async fn handle_batch(
    app: &AppState,
    session: &Arc<ClientSession>,
    client: &AuthorizedClient<'_>,
    body: &Bytes,
) -> ResponseResult {
    let messages = frame::read_messages(body).map_err(unreadable_message)?;
    let error_reply = |id: Option<&RawJson>, error: &RpcError| -> Work {
        let body = message_writer::write_error(id, error);
        Box::pin(std::future::ready(Some(Reply { status: StatusCode::OK, body, retry_after: None })))
    };
    let mut work = Vec::new();
    for message in messages {
        match message {
            Ok(ClientMessage::Request(request)) => {
                let counted = app.gateway.counters.start_request(&request.method);
                let id = request.id.clone();
                let request = SessionRequest { request, resolution: None, sender: closed_sender(app) };
                let prepared = prepare_work(app, session, client, request, counted);
                work.push(prepared.unwrap_or_else(|error| error_reply(Some(&id), &error)));
            }
            Ok(other) => handle_other_message(app, session, other),
            Err(unreadable) => work.push(error_reply(unreadable.id.as_ref(), &unreadable.error)),
        }
    }
    let replies = futures_util::future::join_all(work).await;
    let replies: Vec<Bytes> = replies.into_iter().flatten().map(|reply| reply.body).collect();
    if replies.is_empty() {
        return Ok(accepted());
    }
    let body = message_writer::write_batch(&replies);
    // The copies are released before the whole is counted.
    drop(replies);
    let budget = &app.gateway.budget;
    let body = budget
        .track(&client.account, body)
        .map_err(|BudgetExceeded| refusal(StatusCode::SERVICE_UNAVAILABLE, None, &budget.exceeded_error()))?;
    Ok(response::json(StatusCode::OK, body))
}

/// Handles a message without a session id: `initialize`, or a message of a stateless client.
async fn handle_without_session(
    app: &Arc<AppState>,
    connection: &ClientConnection,
    head: &Parts,
    client: AuthorizedClient<'_>,
    body: Bytes,
) -> ResponseResult {
    let version = first_value(&head.headers, &MCP_PROTOCOL_VERSION).map(str::parse::<ProtocolVersion>);
    let is_legacy = matches!(version, Some(Ok(version)) if version.era() == Era::Legacy);
    match frame::read_message(&body).map_err(unreadable_message)? {
        // A legacy client sends the version header only once it has a session. Some repeat the version that they
        // request as a header of `initialize`, which negotiates it.
        ClientMessage::Request(request)
            if request.meta().is_modern()
                || (version.is_some() && !is_legacy && request.method != Method::Initialize) =>
        {
            stateless::respond(app, connection, head, client, request).await
        }
        ClientMessage::Request(request) if request.method == Method::Initialize => {
            let mut counted = app.gateway.counters.start_request(&request.method);
            counted.begin();
            app.gateway.wait_for_startup().await;
            let response = start_session(app, client, &request);
            counted.end(&response);
            response
        }
        ClientMessage::Request(request) => {
            drop(app.gateway.counters.start_request(&request.method));
            let message =
                "this request needs a session: send `initialize`, then the `Mcp-Session-Id` of its response";
            let error = RpcError::new(code::SERVER_ERROR, message);
            Err(refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error))
        }
        // Notifications of a stateless client have no effect: it cancels a request by disconnecting.
        ClientMessage::Notification(_) | ClientMessage::Response(_) if !is_legacy => Ok(accepted()),
        ClientMessage::Notification(_) | ClientMessage::Response(_) => {
            let message = "this message needs a session: the header `Mcp-Session-Id` is missing";
            Err(bad_request(&RpcError::new(code::SERVER_ERROR, message)))
        }
    }
}

/// Handles `initialize`: the response has the id of a new session.
fn start_session(app: &AppState, client: AuthorizedClient<'_>, request: &ClientRequest) -> ResponseResult {
    let handshake = initialize::read_handshake(request.params.raw())
        .map_err(|error| refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error))?;
    let AuthorizedClient { principal, scope, .. } = client;
    let result = initialize::initialize_result(&app.gateway, &handshake, &scope);
    let session = app.gateway.start_session(principal, scope, handshake);
    let session = session.map_err(|CapacityError| too_many_sessions(&request.id))?;
    let body = message_writer::write_result(&request.id, result.as_bytes());
    let id = HeaderValue::from_str(&session.id).expect("a session id is hexadecimal");
    Ok(with_header(response::json(StatusCode::OK, body), MCP_SESSION_ID.clone(), id))
}

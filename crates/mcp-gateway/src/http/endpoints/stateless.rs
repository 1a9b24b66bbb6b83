//! Requests of the stateless protocol revisions (2026-07-28 and later).
//!
//! Each request is independent: it has the version and the capabilities of its client, and may name a dialog.

use std::pin::pin;
use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use mcp_host_model::{Method, ProtocolVersion, RawJson, RpcError, code};
use mcp_host_transport::CallerId;
use tokio::time::Instant;

use crate::access::admission::Credential;
use crate::http::app_state::AppState;
use crate::http::authorization::authorized_client::{self, AuthorizedClient};
use crate::http::connection::client_connection::ClientConnection;
use crate::http::endpoints::subscriptions;
use crate::http::reply::errors::{ResponseResult, busy_error, refusal, too_many_sessions};
use crate::http::reply::pending_response::{OnDisconnect, PendingResponse, Reply};
use crate::http::request::header_names::{MCP_HOST_DIALOG, only_value};
use crate::http::request::headers;
use crate::lists::resolution::Resolution;
use crate::methods::subscriptions::SubscriptionStream;
use crate::protocol::frame::ClientRequest;
use crate::protocol::result_body::HandlerError;
use crate::session::dialog_table::{DialogKey, DialogName, MAX_NAME_BYTES};
use crate::session::outbound_queue::message_channel;
use crate::session::request_client::RequestClient;
use crate::session::usage::CapacityError;

/// Handles a request.
pub(crate) async fn respond(
    app: &AppState,
    connection: &ClientConnection,
    head: &Parts,
    client: AuthorizedClient<'_>,
    request: ClientRequest,
) -> ResponseResult {
    let mut counted = app.gateway.counters.start_request(&request.method);
    let refused = |error: RpcError| refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error);
    let busy_response = || refusal(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), &busy_error());
    let (version, capabilities) = check_meta(head, &request).map_err(refused)?;
    if client.is_over_share {
        let error = app.gateway.budget.exceeded_error();
        return Err(refusal(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), &error));
    }
    let client_permit = app.acquire_stateless_permit(&client.principal).ok_or_else(busy_response)?;
    let permit = app.acquire_request_permit(Some(&client_permit)).ok_or_else(busy_response)?;
    let features = connection.features(&capabilities);
    let is_listening = request.method == Method::Listen;
    let resolution = if is_listening || request.method.as_known().is_some_and(Method::is_forwarded) {
        Some(client.resolve(app, features.audience, &request).await?)
    } else {
        None
    };
    let AuthorizedClient { principal, account, source, scope, credential, .. } = client;
    if let Some(resolution) = &resolution {
        let arguments = request.params.get("arguments");
        headers::check_argument_headers(&head.headers, resolution.header_arguments(), arguments)
            .map_err(refused)?;
    }
    let header_dialog = only_value(&head.headers, &MCP_HOST_DIALOG).map_err(refused)?;
    let header_dialog = header_dialog.filter(|name| !name.is_empty());
    let name = match header_dialog.or(request.meta().dialog.as_deref()) {
        Some(name) if name.len() > MAX_NAME_BYTES => {
            let message = format!("the name of a dialog may have at most {MAX_NAME_BYTES} bytes");
            return Err(refused(RpcError::new(code::INVALID_REQUEST, message)));
        }
        Some(name) => Some(DialogName::Named(name.to_owned())),
        // A leased server runs one instance per dialog, which is a conversation of a client.
        None if !resolution.as_ref().is_some_and(Resolution::may_use_lease) => None,
        None if principal.is_anonymous() => {
            Some(DialogName::PerConnection(connection.id, features.capabilities.clone()))
        }
        None => Some(DialogName::PerPrincipal(features.capabilities.clone())),
    };
    let dialog = name.map(|name| {
        let start = || app.gateway.new_dialog(&features);
        let key = DialogKey { principal: principal.clone(), name };
        app.gateway.dialogs.get_or_create(key, &request.method, Instant::now(), start)
    });
    let dialog = dialog.transpose().map_err(|CapacityError| too_many_sessions(&request.id))?;
    if let Some(dialog) = &dialog {
        authorized_client::set_subject_token(dialog, credential.as_ref().and_then(Credential::grant), head);
    }
    let (sender, messages) = message_channel(app.bounds());
    let client = RequestClient {
        version,
        scope,
        caller_id: dialog.as_ref().map_or_else(CallerId::unique, |dialog| dialog.caller_id),
        dialog,
        features,
        sender,
        session: None,
        principal,
        source,
    };
    counted.begin();
    if is_listening {
        drop(client_permit);
        let stream_permit = app.acquire_stream_permit(&client.principal).ok_or_else(busy_response)?;
        // The dialog and its leases exist as long as the stream.
        let guards = (stream_permit, permit, client.dialog.clone());
        let revoked = app.watch_revocation(credential);
        let stream = SubscriptionStream::open(&app.gateway, &client, &request).await;
        counted.end(&stream);
        return Ok(subscriptions::respond(
            app,
            request.id.clone(),
            stream.map_err(refused)?,
            revoked,
            guards,
        ));
    }
    let turn = app.queue_for_turn(&client.principal);
    let gateway = Arc::clone(&app.gateway);
    let id = request.id.clone();
    let work = Box::pin(async move {
        if let Some(turn) = turn {
            // It fails if the server has ended.
            let _ = turn.await;
        }
        // Pinned in place, because moving a large future copies it.
        let handled = pin!(gateway.handle_stateless(client, request, resolution));
        let result = handled.await;
        drop((client_permit, permit));
        counted.end(&result);
        let (status, retry_after) = match &result {
            Ok(_) => (StatusCode::OK, None),
            Err(HandlerError { error, retry_after }) => (error_status(error), *retry_after),
        };
        let body = gateway.track_response(&account, &id, &result);
        Some(Reply { status, body, retry_after })
    });
    let accepts = headers::accepted_format(&head.headers);
    Ok(PendingResponse::new(work, messages, OnDisconnect::Cancel).respond(accepts).await)
}

/// Checks `_meta`. Returns the version and capabilities that it must contain. Errors in order: missing member, header
/// mismatch, unsupported version.
fn check_meta(head: &Parts, request: &ClientRequest) -> Result<(ProtocolVersion, RawJson), RpcError> {
    match request.meta().required_members() {
        Err(error) if error.code == code::INVALID_PARAMS => Err(error),
        required => {
            headers::check_required_headers(&head.headers, request)?;
            required
        }
    }
}

/// The HTTP status of a response that consists of an error.
fn error_status(error: &RpcError) -> StatusCode {
    match error.code {
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::RATE_LIMITED => StatusCode::TOO_MANY_REQUESTS,
        code::HEADER_MISMATCH
        | code::MISSING_CLIENT_CAPABILITY
        | code::UNSUPPORTED_PROTOCOL_VERSION
        | code::INVALID_REQUEST
        | code::PARSE_ERROR => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

//! Requests of the modern era: each is independent and names its client, version and dialog.

use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use mcp_model::{ProtocolVersion, RawJson, RpcError, code};
use mcp_transport::CallerId;
use tokio::time::Instant;

use super::client::Client;
use super::connection::Connection;
use super::errors::{busy, refusal, too_many_sessions};
use super::header_names::{MCP_HOST_DIALOG, text};
use super::headers;
use super::pending_response::{OnDisconnect, PendingResponse, Reply};
use super::permits::ClientPermit;
use super::response::Response;
use super::server::AppState;
use super::subscriptions;
use crate::access::scope::{LeasedServers, Scope};
use crate::protocol;
use crate::protocol::frame::Request;
use crate::session::caller::{Caller, ClientFeatures};
use crate::session::dialogs::MAX_NAME_BYTES;
use crate::session::outbound_queue::message_channel;
use crate::session::registry::CapacityError;

/// Handles a request.
pub(super) async fn respond(
    connection: &Connection,
    head: &Parts,
    client: Client,
    request: Request,
) -> Response {
    let app = &connection.app;
    let refuse = |error: &RpcError| refusal(StatusCode::BAD_REQUEST, Some(&request.id), error);
    let (version, capabilities) = match required_meta(head, &request) {
        Ok(required) => required,
        Err(error) => return refuse(&error),
    };
    let Client { principal, scope } = client;
    if let Err(error) = check_argument_headers(app, head, &scope, &request) {
        return refuse(&error);
    }
    let named = text(&head.headers, &MCP_HOST_DIALOG).filter(|name| !name.is_empty());
    let (dialog, owner, scope) = match named.or(request.meta.dialog.as_deref()) {
        Some(name) if name.len() > MAX_NAME_BYTES => {
            let message = format!("the name of a dialog has at most {MAX_NAME_BYTES} bytes");
            return refuse(&RpcError::new(code::INVALID_REQUEST, message));
        }
        Some(name) => match app.gateway.dialogs.of(&app.gateway.host, &principal, name, Instant::now()) {
            Ok((dialog, owner)) => (Some(dialog), owner, scope),
            Err(CapacityError) => return too_many_sessions(&request.id),
        },
        None => {
            let hidden = if Arc::ptr_eq(&scope, &app.scope) {
                Arc::clone(&app.scope_without_leased)
            } else {
                Arc::new(Scope { leased: LeasedServers::Hidden, ..(*scope).clone() })
            };
            (None, CallerId::unique(), hidden)
        }
    };
    let (sender, messages) = message_channel(app.bounds());
    let permits = (
        ClientPermit::stateless_request(app, &principal),
        Arc::clone(&app.requests).try_acquire_owned().ok(),
    );
    let (Some(client_permit), Some(permit)) = permits else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), &busy());
    };
    let caller = Caller {
        version,
        scope,
        dialog,
        features: ClientFeatures::of(capabilities),
        sender,
        session: None,
        owner,
        principal,
    };
    if request.method == "subscriptions/listen" {
        drop(client_permit);
        let Some(stream_permit) = ClientPermit::stream(app, &caller.principal) else {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), &busy());
        };
        // The dialog and its leases exist as long as the stream.
        let held = (stream_permit, permit, caller.dialog.clone());
        return subscriptions::listen(app, caller, &request, held).await;
    }
    let gateway = Arc::clone(&app.gateway);
    let request = Arc::new(request);
    let work = Box::pin(async move {
        let result = gateway.handle_stateless(caller, Arc::clone(&request)).await;
        drop((client_permit, permit));
        Some(match result {
            Ok(result) => {
                let body = gateway.budget.track(protocol::response::result(&request.id, &result));
                Reply { status: StatusCode::OK, body }
            }
            Err(error) => {
                let body = protocol::response::error(Some(&request.id), &error);
                Reply { status: status(&error), body }
            }
        })
    });
    let accepts = headers::accepts(&head.headers);
    PendingResponse::new(work, messages, OnDisconnect::Cancel).respond(accepts, connection.timer()).await
}

/// The version and capabilities that a request must contain. Missing members are reported before headers that
/// differ, and these before an unsupported version.
fn required_meta(head: &Parts, request: &Request) -> Result<(ProtocolVersion, RawJson), RpcError> {
    match request.meta.required() {
        Err(error) if error.code == code::INVALID_PARAMS => Err(error),
        required => {
            headers::check_request(&head.headers, request, &request.meta)?;
            required
        }
    }
}

/// Checks the headers that repeat arguments of a tool.
fn check_argument_headers(
    app: &AppState,
    head: &Parts,
    scope: &Arc<Scope>,
    request: &Request,
) -> Result<(), RpcError> {
    if request.method != "tools/call" {
        return Ok(());
    }
    let Some(name) = request.params.text("name") else { return Ok(()) };
    let listing = app.gateway.listing(scope);
    let Some(target) = listing.tool(&name) else { return Ok(()) };
    let published = app.gateway.published();
    let Some(tool) = published.catalog.tool(&target.name) else { return Ok(()) };
    headers::check_arguments(&head.headers, &tool.tool.input_schema, request.params.get("arguments"))
}

/// The HTTP status of a response that consists of an error.
fn status(error: &RpcError) -> StatusCode {
    match error.code {
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::HEADER_MISMATCH
        | code::MISSING_CLIENT_CAPABILITY
        | code::UNSUPPORTED_PROTOCOL_VERSION
        | code::INVALID_REQUEST
        | code::PARSE_ERROR => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

//! `DELETE`: ends a session.

use http::StatusCode;
use http::request::Parts;

use crate::http::app_state::AppState;
use crate::http::authorization::authorized_client::AuthorizedClient;
use crate::http::connection::client_connection::ClientConnection;
use crate::http::reply::errors::{ResponseResult, bad_request, invalid_request, no_such_session};
use crate::http::reply::response;
use crate::http::request::header_names::{MCP_SESSION_ID, only_value};

/// Ends the session that the request names.
pub(crate) fn end_session(
    app: &AppState,
    connection: &ClientConnection,
    server: Option<&str>,
    head: &Parts,
) -> ResponseResult {
    let client = AuthorizedClient::authorize(app, connection, head, server)?;
    let id = only_value(&head.headers, &MCP_SESSION_ID)
        .map_err(|error| bad_request(&error))?
        .ok_or_else(|| bad_request(&invalid_request("the header `Mcp-Session-Id` is missing")))?;
    let session = app.gateway.sessions.take(id, &client.principal).ok_or_else(no_such_session)?;
    app.gateway.end_session(&session);
    Ok(response::empty(StatusCode::NO_CONTENT))
}

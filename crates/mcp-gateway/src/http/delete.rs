//! `DELETE`: ends a session and its leases.

use http::StatusCode;
use http::request::Parts;

use super::client::Client;
use super::errors::{invalid_request, no_session, refusal};
use super::header_names::{MCP_SESSION_ID, text};
use super::response::{self, Response};
use super::server::AppState;

/// Ends the session that the request names.
pub(super) fn delete(app: &AppState, server: Option<&str>, head: &Parts) -> Response {
    let client = match Client::authorize(app, head, server) {
        Ok(client) => client,
        Err(response) => return response,
    };
    let Some(id) = text(&head.headers, &MCP_SESSION_ID) else {
        return refusal(
            StatusCode::BAD_REQUEST,
            None,
            &invalid_request("the header `Mcp-Session-Id` is missing"),
        );
    };
    match app.gateway.sessions.take(id, &client.principal) {
        Some(session) => {
            app.gateway.end(&session);
            response::empty(StatusCode::NO_CONTENT)
        }
        None => no_session(),
    }
}

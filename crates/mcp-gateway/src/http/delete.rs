//! A client that ends its session.

use std::sync::Arc;

use http::StatusCode;

use super::body::Response;
use super::headers::{self, SESSION};
use super::post::{self, invalid, no_session, refusal};
use super::routes::{HttpRequest, Server, status};
use super::server::Door;

/// Ends a session: what it has leased is given back.
pub(super) fn delete(door: &Arc<Door>, server: Server, request: HttpRequest) -> Response {
    let (parts, _) = request.into_parts();
    let visitor = match post::visitor(door, &parts.headers, &parts.uri, server) {
        Ok(visitor) => visitor,
        Err(refusal) => return *refusal,
    };
    let Some(id) = headers::text(&parts.headers, &SESSION) else {
        return refusal(StatusCode::BAD_REQUEST, None, &invalid("the header `Mcp-Session-Id` is missing"));
    };
    match door.gateway.sessions.take(id, &visitor.principal) {
        Some(session) => {
            door.gateway.end(&session);
            status(StatusCode::NO_CONTENT)
        }
        None => no_session(),
    }
}

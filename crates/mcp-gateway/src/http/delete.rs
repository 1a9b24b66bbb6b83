//! A client that ends its session.

use std::sync::Arc;

use http::StatusCode;

use super::post::{self, invalid, no_session, refusal};
use super::routes::{Server, status};
use super::server::Door;
use super::wire::{Head, Name, Response};

/// Ends a session: what it has leased is given back.
pub(super) fn delete(door: &Arc<Door>, server: Server, head: &Head) -> Response {
    let visitor = match post::visitor(door, head, server) {
        Ok(visitor) => visitor,
        Err(refusal) => return refusal,
    };
    let Some(id) = head.fields.text(Name::Session) else {
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

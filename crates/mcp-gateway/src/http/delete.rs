//! A client that ends its session.

use std::sync::Arc;

use axum::extract::{Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::answering::taken_back;
use super::headers::{self, SESSION};
use super::post::{self, Server, invalid, no_session, refusal};
use super::server::Door;

/// Ends a session: what it has leased is given back.
pub(super) async fn delete(State(door): State<Arc<Door>>, server: Server, request: HttpRequest) -> Response {
    let (parts, _) = request.into_parts();
    let visitor = match post::visitor(&door, &parts, server) {
        Ok(visitor) => visitor,
        Err(refusal) => return *refusal,
    };
    let Some(id) = headers::text(&parts.headers, &SESSION) else {
        return refusal(StatusCode::BAD_REQUEST, None, &invalid("the header `Mcp-Session-Id` is missing"));
    };
    match door.gateway.sessions.take(&id, &visitor.principal) {
        Some(session) => {
            session.end();
            let mut res = taken_back();
            *res.status_mut() = StatusCode::NO_CONTENT;
            res
        }
        None => no_session(),
    }
}

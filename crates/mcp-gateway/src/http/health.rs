//! What a supervisor asks: is the process alive, and are its servers there? Neither tells of the configuration.

use std::sync::Arc;

use http::StatusCode;
use mcp_host::ServerState;

use super::routes::words;
use super::server::Door;
use super::wire::Response;

/// `/healthz`: it answers.
pub(super) fn alive() -> Response {
    words(StatusCode::OK, "ok\n")
}

/// `/readyz`: no server is being started for the first time.
pub(super) fn ready(door: &Arc<Door>) -> Response {
    let published = door.gateway.published();
    let starting = published.servers.iter().any(|it| it.state == ServerState::Starting);
    match starting {
        true => words(StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
        false => words(StatusCode::OK, "ready\n"),
    }
}

//! What a supervisor asks: is the process alive, and are its servers there? Neither tells of the configuration.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use mcp_host::ServerState;

use super::server::Door;

/// `/healthz`: it answers.
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// `/readyz`: no server is being started for the first time.
pub(super) async fn ready(State(door): State<Arc<Door>>) -> (StatusCode, &'static str) {
    let published = door.gateway.published();
    let starting = published.servers.iter().any(|it| it.state == ServerState::Starting);
    match starting {
        true => (StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
        false => (StatusCode::OK, "ready\n"),
    }
}

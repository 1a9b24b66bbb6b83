//! Health checks: whether the process is alive, and whether its servers have started. Neither reveals the configuration.

use http::StatusCode;
use mcp_host::ServerState;

use super::response::{self, Response};
use super::server::AppState;

/// `/healthz`: always succeeds.
pub(super) fn alive() -> Response {
    response::text(StatusCode::OK, "ok\n")
}

/// `/readyz`: succeeds unless a server is being started for the first time.
pub(super) fn ready(app: &AppState) -> Response {
    let published = app.gateway.snapshot();
    if published.servers.iter().any(|server| server.state == ServerState::Starting) {
        response::text(StatusCode::SERVICE_UNAVAILABLE, "starting\n")
    } else {
        response::text(StatusCode::OK, "ready\n")
    }
}

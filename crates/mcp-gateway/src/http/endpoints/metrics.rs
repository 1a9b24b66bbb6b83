//! `/metrics`: gauges and counters in the Prometheus text format.
//!
//! Only an authorized client gets them, because they name the servers, the tools and the clients. Gauges are
//! read at each request, because a server that is removed has none. The page of the recorder of this process
//! is appended.

use http::StatusCode;
use http::request::Parts;
use mcp_host_runtime::ServerState;

use crate::http::app_state::AppState;
use crate::http::authorization::authorized_client::AuthorizedClient;
use crate::http::reply::response::{self, Response};
use crate::metrics::prometheus::MetricsPage;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const STATES: [ServerState; 6] = [
    ServerState::Starting,
    ServerState::Ready,
    ServerState::Restarting,
    ServerState::Failed,
    ServerState::Disabled,
    ServerState::Stopped,
];

/// `/metrics`.
pub(crate) fn metrics(app: &AppState, head: &Parts) -> Response {
    if let Err(response) = AuthorizedClient::authorize(app, head, None) {
        return response;
    }
    let gateway = &app.gateway;
    let running = app.bounds().requests.saturating_sub(app.requests.available_permits());
    let gauges = [
        ("mcp_gateway_sessions", "Sessions over HTTP.", gateway.sessions.len()),
        ("mcp_gateway_dialogs", "Dialogs of clients without sessions.", gateway.dialogs.len()),
        ("mcp_gateway_requests", "Running requests.", running),
        ("mcp_gateway_held_bytes", "Bytes of large messages and responses in memory.", gateway.budget.used()),
        ("mcp_gateway_parked", "Calls that wait for input from their clients.", gateway.pending_inputs.len()),
    ];
    let snapshot = gateway.snapshot();
    let mut page = MetricsPage::default();
    for (name, help, value) in gauges {
        page.family(name, "gauge", help).sample(name, &[], value as f64);
    }
    let name = "mcp_gateway_generation";
    page.family(name, "gauge", "Number of the published generation.").sample(
        name,
        &[],
        snapshot.generation as f64,
    );
    let name = "mcp_host_problems";
    page.family(name, "gauge", "Problems of the configuration and the servers.").sample(
        name,
        &[],
        snapshot.problems.len() as f64,
    );
    let name = "mcp_host_server_state";
    page.family(name, "gauge", "1 for the current state of a server, 0 for the others.");
    for server in &snapshot.servers {
        for state in STATES {
            let labels = [("server", &*server.id), ("state", state.as_str())];
            page.sample(name, &labels, f64::from(u8::from(server.state == state)));
        }
    }
    gateway.calls.write_to(&mut page);
    let mut text = page.into_text();
    if let Some(recorder) = &app.metrics {
        text.push_str(&recorder.page());
    }
    response::full(StatusCode::OK, CONTENT_TYPE, text)
}

//! `/metrics`: gauges and counters in the Prometheus text format.
//!
//! They require authorization, because they name servers, tools and clients. A client that may not use everything gets
//! the series of its servers and tools, and of its own token; those without such a label are for all. Gauges are
//! computed for each request, so that a removed server has none. The page of this process's recorder is appended.

use std::time::SystemTime;

use http::StatusCode;
use http::request::Parts;
use mcp_host_model::ServerId;
use mcp_host_registry::{Catalog, ViewFilter};
use mcp_host_runtime::ServerState;

use crate::http::app_state::AppState;
use crate::http::authorization::authorized_client::AuthorizedClient;
use crate::http::connection::client_connection::ClientConnection;
use crate::http::reply::response::{self, Response};
use crate::metrics::prometheus::{MetricsPage, select_series};

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All states of a server.
const STATES: [ServerState; 6] = [
    ServerState::Starting,
    ServerState::Ready,
    ServerState::Restarting,
    ServerState::Failed,
    ServerState::Disabled,
    ServerState::Stopped,
];

/// `/metrics`: the page for an authorized client.
pub(crate) fn get_metrics(app: &AppState, connection: &ClientConnection, head: &Parts) -> Response {
    let client = match AuthorizedClient::authorize(app, connection, head, None) {
        Ok(client) => client,
        Err(response) => return response,
    };
    let gateway = &app.gateway;
    let running = app.bounds().requests.saturating_sub(app.request_permits.available_permits());
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
        page.start_metric(name, "gauge", help).write_sample(name, &[], value as f64);
    }
    let name = "mcp_gateway_generation";
    page.start_metric(name, "gauge", "Number of the published generation.").write_sample(
        name,
        &[],
        snapshot.generation as f64,
    );
    let name = "mcp_host_problems";
    page.start_metric(name, "gauge", "Problems of the configuration and the servers.").write_sample(
        name,
        &[],
        snapshot.problems.len() as f64,
    );
    let name = "mcp_host_server_state";
    page.start_metric(name, "gauge", "1 for the current state of a server, 0 for the others.");
    for server in &snapshot.servers {
        for state in STATES {
            let labels = [("server", &*server.id), ("state", state.as_str())];
            page.write_sample(name, &labels, f64::from(u8::from(server.state == state)));
        }
    }
    write_tokens(app, &mut page);
    if let Some(expiry) = app.certificate_expiry {
        let name = "mcp_gateway_certificate_expiry_timestamp_seconds";
        page.start_metric(name, "gauge", "End of the validity of the certificate, since the epoch.");
        page.write_sample(name, &[], expiry as f64);
    }
    gateway.call_series.write_to(&mut page);
    let mut text = page.into_text();
    if let Some(recorder) = &app.metrics {
        text.push_str(&recorder.render());
    }
    if !client.scope.is_unfiltered() {
        text = select_series(&text, |key, value| is_label_shown(&client, &snapshot.catalog, key, value));
    }
    response::with_body(StatusCode::OK, CONTENT_TYPE, text)
}

/// Writes the use of each token by its line in the list, because several tokens may have one name.
fn write_tokens(app: &AppState, page: &mut MetricsPage) {
    let tokens = app.tokens.borrow();
    if tokens.is_empty() {
        return;
    }
    let name = "mcp_gateway_token_requests_total";
    page.start_metric(name, "counter", "HTTP requests with a token, by its name and its line in the list.");
    for token in tokens.uses() {
        let line = token.line.to_string();
        page.write_sample(name, &[("token", token.name), ("line", &line)], token.requests as f64);
    }
    let name = "mcp_gateway_token_expiry_timestamp_seconds";
    page.start_metric(name, "gauge", "When a token expires, since the epoch; none for others.");
    for token in tokens.uses() {
        let expiry = token.expires.and_then(|expires| expires.duration_since(SystemTime::UNIX_EPOCH).ok());
        let Some(expiry) = expiry else { continue };
        let line = token.line.to_string();
        page.write_sample(name, &[("token", token.name), ("line", &line)], expiry.as_secs_f64());
    }
}

/// Whether a client may see the series with this label. The label `other`, of the series that tools and clients beyond
/// the limit share, is judged like a name.
fn is_label_shown(client: &AuthorizedClient<'_>, catalog: &Catalog, key: &str, value: &str) -> bool {
    match key {
        "server" => ServerId::parse(value).is_ok_and(|id| client.scope.may_show(&id, |_| true)),
        "tool" => {
            // A tool that is gone is judged by its name.
            let tool = catalog.tool(value);
            let shows =
                |view: &ViewFilter| tool.map_or(view.tools.contains(value), |tool| view.shows_tool(tool));
            client.scope.views.iter().all(shows)
                && (client.scope.granted.is_empty() || client.scope.granted.iter().any(shows))
        }
        "token" => value == client.principal.name(),
        _ => true,
    }
}

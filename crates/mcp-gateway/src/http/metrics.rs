//! `/metrics`: gauges and counters in the Prometheus text format.
//!
//! Only an authorized client gets them, because they name the servers. Gauges are read at each request; counters are the
//! gateway's own. The host's metrics go to the recorder of the `metrics` facade that the process installed; its page can
//! be appended here.

use std::fmt::Write as _;

use http::StatusCode;
use http::request::Parts;
use mcp_host::{HostSnapshot, ServerState};

use super::client::Client;
use super::response::{self, Response};
use super::server::AppState;

/// Why writing to a `String` cannot fail.
const INFALLIBLE: &str = "a String takes all text";

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
pub(super) fn metrics(app: &AppState, head: &Parts) -> Response {
    if let Err(response) = Client::authorize(app, head, None) {
        return response;
    }
    let gateway = &app.gateway;
    let running = app.bounds().requests.saturating_sub(app.requests.available_permits());
    let gauges = [
        ("mcp_gateway_sessions", "SessionRegistry over HTTP.", gateway.sessions.len()),
        ("mcp_gateway_dialogs", "Dialogs of clients without sessions.", gateway.dialogs.len()),
        ("mcp_gateway_requests", "Running requests.", running),
        ("mcp_gateway_held_bytes", "Bytes of large messages and responses in memory.", gateway.budget.used()),
        ("mcp_gateway_parked", "Calls that wait for input of their clients.", gateway.pending_inputs.len()),
    ];
    let mut text = page(&gauges, &gateway.published());
    gateway.counters.write_page(&mut text);
    if let Some(more) = &app.metrics {
        text.push_str(&more.page());
    }
    response::full(StatusCode::OK, CONTENT_TYPE, text)
}

fn page(gauges: &[(&str, &str, usize)], published: &HostSnapshot) -> String {
    let mut page = String::new();
    let head = |page: &mut String, name: &str, help: &str| {
        write!(page, "# HELP {name} {help}\n# TYPE {name} gauge\n").expect(INFALLIBLE);
    };
    for (name, help, value) in gauges {
        head(&mut page, name, help);
        writeln!(page, "{name} {value}").expect(INFALLIBLE);
    }
    head(&mut page, "mcp_gateway_generation", "The number of the published generation.");
    writeln!(page, "mcp_gateway_generation {}", published.generation).expect(INFALLIBLE);
    head(&mut page, "mcp_host_problems", "Problems of the configuration and the servers.");
    writeln!(page, "mcp_host_problems {}", published.problems.len()).expect(INFALLIBLE);
    head(&mut page, "mcp_host_server_state", "1 for the state that a server is in.");
    for server in &published.servers {
        for state in STATES {
            let value = u8::from(server.state == state);
            let (id, state) = (label(&server.id), state.as_str());
            writeln!(page, "mcp_host_server_state{{server=\"{id}\",state=\"{state}\"}} {value}")
                .expect(INFALLIBLE);
        }
    }
    page
}

/// Escapes the value of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(label("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}

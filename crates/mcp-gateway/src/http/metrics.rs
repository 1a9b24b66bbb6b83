//! What is counted, in the text format of Prometheus. Only who may come in is told, for it names the servers.
//!
//! The figures of the moment are read when somebody asks, what happened over time is the gateway's own count. What a
//! host counts (calls, their durations and outcomes) goes to the recorder of the `metrics` facade that the process has
//! installed, which may have its say here as well.

use std::fmt::Write as _;
use std::sync::Arc;

use http::StatusCode;
use mcp_host::{HostSnapshot, ServerState};

use super::post;
use super::server::Door;
use super::wire::{Body, Head, Response};

/// Every state that a server may be in.
const STATES: [ServerState; 6] = [
    ServerState::Starting,
    ServerState::Ready,
    ServerState::Restarting,
    ServerState::Failed,
    ServerState::Disabled,
    ServerState::Stopped,
];

/// `/metrics`.
pub(super) fn metrics(door: &Arc<Door>, head: &Head) -> Response {
    if let Err(refusal) = post::visitor(door, head, None) {
        return refusal;
    }
    let running = door.bounds().requests.saturating_sub(door.places.available_permits());
    let gauges = [
        ("mcp_gateway_sessions", "Sessions over HTTP.", door.gateway.sessions.len()),
        ("mcp_gateway_dialogs", "Dialogs of clients without sessions.", door.gateway.dialogs.len()),
        ("mcp_gateway_requests", "Requests that run.", running),
        (
            "mcp_gateway_held_bytes",
            "Bytes of large messages and answers that are held.",
            door.gateway.budget.held(),
        ),
        ("mcp_gateway_parked", "Calls that wait for input of their clients.", door.gateway.parked.len()),
    ];
    let mut text = page(&gauges, &door.gateway.published());
    door.gateway.counts.page(&mut text);
    if let Some(more) = &door.metrics {
        text.push_str(&more.page());
    }
    Response::new(StatusCode::OK, Body::Whole(text.into())).of("text/plain; version=0.0.4; charset=utf-8")
}

fn page(gauges: &[(&str, &str, usize)], published: &HostSnapshot) -> String {
    let mut res = String::new();
    let head = |res: &mut String, name: &str, help: &str| {
        write!(res, "# HELP {name} {help}\n# TYPE {name} gauge\n").expect("a String takes everything");
    };
    for (name, help, value) in gauges {
        head(&mut res, name, help);
        writeln!(res, "{name} {value}").expect("a String takes everything");
    }
    head(&mut res, "mcp_gateway_generation", "The number of the published generation.");
    writeln!(res, "mcp_gateway_generation {}", published.generation).expect("a String takes everything");
    head(&mut res, "mcp_host_problems", "Problems that a user should know of.");
    writeln!(res, "mcp_host_problems {}", published.problems.len()).expect("a String takes everything");
    head(&mut res, "mcp_host_server_state", "1 for the state that a server is in.");
    for server in &published.servers {
        for state in STATES {
            let value = u8::from(server.state == state);
            let (id, state) = (label(&server.id), state.as_str());
            writeln!(res, "mcp_host_server_state{{server=\"{id}\",state=\"{state}\"}} {value}")
                .expect("a String takes everything");
        }
    }
    res
}

/// A label's value: three characters are escaped in it.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_holds_anything() {
        assert_eq!(label("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}

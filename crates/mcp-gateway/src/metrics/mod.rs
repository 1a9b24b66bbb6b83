//! Metrics of a gateway, through the [`metrics`](https://docs.rs/metrics) facade, as those of
//! [its host](mcp_host_runtime::metrics). The recorder must be installed before the gateway is created.
//!
//! No label has a value that a client chose. The first 1,024 tools and the first 1,024 tokens have series of
//! their own; the others share one.
//!
//! | name | kind, unit | labels | what it is |
//! |---|---|---|---|
//! | [`REQUESTS`] | counter | `method`, `outcome` | finished requests |
//! | [`REQUEST_DURATION`] | histogram, seconds | | duration of requests |
//! | [`RESPONSES`] | counter | `status` | HTTP responses |
//! | [`RECEIVED_BYTES`], [`SENT_BYTES`] | counter, bytes | | bytes over HTTP connections |
//! | [`SESSION_DURATION`] | histogram, seconds | `network.transport`, `mcp.protocol.version` | duration of sessions |
//! | [`TOOL_CALLS`] | counter | `server`, `tool`, `outcome` | finished calls of a tool |
//! | [`TOOL_BYTES`] | counter, bytes | `server`, `tool`, `direction` | their parameters and results |
//! | [`TOKEN_CALLS`], [`TOKEN_BYTES`] | counter | `token` and the same | the same for the requests of a token |
//!
//! `/metrics` also has gauges, and the time that calls took. If one process has several gateways, the metrics of this
//! table are their sums; the others belong to one gateway.

pub(crate) mod call_counters;
pub(crate) mod counters;
pub(crate) mod prometheus;

use metrics::Unit;

/// Finished requests, by `method` and `outcome`.
pub const REQUESTS: &str = "mcp_gateway_requests_total";
/// Duration of requests in seconds.
pub const REQUEST_DURATION: &str = "mcp_gateway_request_duration_seconds";
/// HTTP responses, by `status`.
pub const RESPONSES: &str = "mcp_gateway_responses_total";
/// Bytes received over HTTP connections.
pub const RECEIVED_BYTES: &str = "mcp_gateway_received_bytes_total";
/// Bytes sent over HTTP connections.
pub const SENT_BYTES: &str = "mcp_gateway_sent_bytes_total";
/// Finished calls of tools, by `server`, `tool` and `outcome`.
pub const TOOL_CALLS: &str = "mcp_gateway_tool_calls_total";
/// Bytes of parameters and results, by `server`, `tool` and `direction`.
pub const TOOL_BYTES: &str = "mcp_gateway_tool_bytes_total";
/// Finished calls of clients, by `token` and `outcome`.
pub const TOKEN_CALLS: &str = "mcp_gateway_token_calls_total";
/// Bytes of parameters and results, by `token` and `direction`.
pub const TOKEN_BYTES: &str = "mcp_gateway_token_bytes_total";

/// Duration of sessions of clients in seconds, by `network.transport` and `mcp.protocol.version`. The names are from
/// OpenTelemetry's convention for MCP.
pub const SESSION_DURATION: &str = "mcp.server.session.duration";

/// The buckets of [`REQUEST_DURATION`], in seconds.
pub const REQUEST_DURATION_BUCKETS: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0];

const TOOL_SECONDS: &str = "mcp_gateway_tool_seconds_total";
const TOKEN_SECONDS: &str = "mcp_gateway_token_seconds_total";

/// Registers the units and descriptions with the recorder of this process. Call it once after the recorder is
/// installed.
pub fn describe() {
    let requests = "Requests that ended, by method and outcome.";
    metrics::describe_counter!(REQUESTS, Unit::Count, requests);
    let durations = "Time from the start of a request to its end.";
    metrics::describe_histogram!(REQUEST_DURATION, Unit::Seconds, durations);
    metrics::describe_histogram!(SESSION_DURATION, Unit::Seconds, "From the start of a session to its end.");
    metrics::describe_counter!(RESPONSES, Unit::Count, "HTTP responses, by status.");
    metrics::describe_counter!(RECEIVED_BYTES, Unit::Bytes, "Bytes received over HTTP connections.");
    metrics::describe_counter!(SENT_BYTES, Unit::Bytes, "Bytes sent over HTTP connections.");
    metrics::describe_counter!(TOOL_CALLS, Unit::Count, "Calls that ended, by tool and outcome.");
    metrics::describe_counter!(TOOL_BYTES, Unit::Bytes, "Bytes of parameters and results, by tool.");
    metrics::describe_counter!(TOKEN_CALLS, Unit::Count, "Calls that ended, by token and outcome.");
    metrics::describe_counter!(TOKEN_BYTES, Unit::Bytes, "Bytes of parameters and results, by token.");
}

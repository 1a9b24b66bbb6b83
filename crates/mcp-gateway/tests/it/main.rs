//! Tests of the gateway in front of the demo server, with well-behaved and hostile clients.

#![expect(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod asking_server;
mod audit;
mod authorization;
mod bounds;
mod call_metrics;
mod client_shares;
mod clients;
mod connections;
mod dialogs;
mod example;
mod isolation;
mod notifications;
mod protocol;
mod rates;
mod reload;
mod request_metrics;
mod resource_routes;
mod scopes;
mod scripted_server;
mod stdio;
mod stream_resumption;
mod support;
mod tasks;
mod tls;
mod tool_budget;
mod upstream_results;

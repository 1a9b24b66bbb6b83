//! End-to-end tests: the binary with real servers and clients, process cleanup, and the docs.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod acp_clients;
mod acp_proxy;
mod acp_samples;
mod acp_schema;
mod compare;
mod config_watch;
mod edits_under_load;
mod example_commands;
mod first_use;
mod gateway_clients;
mod guide;
mod list_changes;
mod login;
mod process_cleanup;
mod real_servers;
mod same_fields;
mod same_over_all_transports;
mod secret_leaks;
mod security_page;
mod server_request_owners;
mod session;
mod sigkill;
mod soak;
mod sse;
mod supervision;
mod terminal_injection;
mod threats;
mod user_secrets;
mod watched_host;
mod websocket;
mod yaml_language_server;

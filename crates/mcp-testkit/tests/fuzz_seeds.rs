//! The properties of the fuzz targets hold on their seeds and on mutations of them.

use mcp_host_config::Profile;
use mcp_testkit::properties::{config, gateway, host, recording, registry, schema, transport};
use mcp_testkit::seeds::check_seeds;

#[test]
fn configurations() {
    check_seeds("holodeck", |bytes| config::configuration(Profile::HoloDeck, bytes));
    check_seeds("dominds", |bytes| config::configuration(Profile::Dominds, bytes));
    check_seeds("acp_v1", |bytes| config::configuration(Profile::AcpV1, bytes));
    check_seeds("acp_v2", |bytes| config::configuration(Profile::AcpV2, bytes));
    check_seeds("mcp_json", |bytes| config::configuration(Profile::McpJson, bytes));
}

#[test]
fn parsers_of_configurations() {
    check_seeds("env_file", config::env_file);
    check_seeds("jsonc", config::jsonc);
    check_seeds("yaml", config::yaml);
    check_seeds("template", config::template);
}

#[test]
fn tools() {
    check_seeds("tools", registry::tools);
}

#[test]
fn names_and_patterns() {
    check_seeds("names", registry::names);
    check_seeds("patterns", registry::patterns);
}

#[test]
fn lock_files() {
    check_seeds("lock", registry::lock);
    check_seeds("digest", registry::digest);
}

#[test]
fn requests_to_the_gateway() {
    check_seeds("gateway_body", gateway::gateway_body);
    check_seeds("gateway_head", gateway::gateway_head);
    check_seeds("gateway_tokens", gateway::gateway_tokens);
}

#[test]
fn login_files() {
    check_seeds("login", host::login);
}

#[test]
fn recordings() {
    check_seeds("recording", recording::recording);
}

#[test]
fn messages_from_servers() {
    check_seeds("scan_frame", transport::scan_frame);
    check_seeds("stdio_lines", transport::stdio_lines);
    check_seeds("event_stream", transport::event_stream);
    check_seeds("error_response", transport::error_response);
}

#[test]
fn changes_of_schemas() {
    check_seeds("schema_change", schema::schema_change);
}

//! Any target and headers of a request to the gateway.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::gateway::gateway_head(bytes));

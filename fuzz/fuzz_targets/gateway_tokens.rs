//! Parsing of any token file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::gateway::gateway_tokens(bytes));

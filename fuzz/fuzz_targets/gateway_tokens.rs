//! Parsing of any token file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_gateway::fuzzing::gateway_tokens(bytes));

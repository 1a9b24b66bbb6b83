//! Any target and fields that a client of the gateway sends.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_gateway::fuzzing::gateway_head(bytes));

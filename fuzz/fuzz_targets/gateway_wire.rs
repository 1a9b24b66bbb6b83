//! The bytes of a connection to the gateway.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_gateway::fuzzing::gateway_wire(bytes));

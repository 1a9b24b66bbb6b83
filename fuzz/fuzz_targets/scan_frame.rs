//! Any bytes, classified as a JSON-RPC frame.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_transport::fuzzing::scan_frame(bytes));

//! Any error response to an HTTP request.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_transport::internal::fuzzing::error_response(bytes));

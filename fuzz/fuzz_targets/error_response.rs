//! Any error response to a request over HTTP.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_transport::internal::fuzzing::error_response(bytes));

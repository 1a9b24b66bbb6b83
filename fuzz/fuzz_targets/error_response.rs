//! Any error response to an HTTP request.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::transport::error_response(bytes));

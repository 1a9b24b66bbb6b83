//! Any bytes of a pipe, cut anywhere.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_testkit::properties::transport::stdio_lines(bytes));
